"""Functions of users in compiled models: their bounds, gradients, and the messages about their failures.

``bounds`` finds bounds of factors, ``densities`` evaluates log-densities in compiled code, and ``failure`` explains a
NaN and compares gradients with differences.
"""
