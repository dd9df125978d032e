"""Benchmarks of gibbsite against plain C loops, measured in one run: ``python -m benchmarks``."""
