"""Weighted mini-buckets: bounds of the partition function, and draws with bounded weights.

``buckets`` shares the tables of a model out, ``weighted_sum`` makes messages and bounds, ``descent`` draws,
``proposal`` lets tables grow while time and memory last, ``metropolis`` makes moves of a chain of the draws.
"""
