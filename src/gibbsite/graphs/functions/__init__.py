"""Users' functions in compiled models: bounds, gradients, and messages about failures.

``bounds`` finds bounds of factors, ``densities`` evaluates log-densities in compiled code, and ``failure`` explains a
NaN and compares gradients with differences.
"""
