"""Parallel tempering: barriers, round trips and log-partition functions."""
