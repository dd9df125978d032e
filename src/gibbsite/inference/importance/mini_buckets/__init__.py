"""Weighted mini-buckets: bounds of the partition function, and draws with bounded weights.

``buckets`` divides the tables of a model, ``weighted_sum`` computes messages and bounds, ``descent`` draws,
``proposal`` enlarges tables while time and memory last, and ``metropolis`` uses the draws as moves of a chain.
"""
