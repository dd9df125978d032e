"""Zeros: which states are possible, how a start is found, and what single-site moves can reach."""
