"""Experiments of the DoGS paper."""
