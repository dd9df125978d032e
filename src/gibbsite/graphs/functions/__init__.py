"""Functions of users in compiled models: their bounds, gradients, and the messages about their failures.

``bounds`` finds between which values factors stay, ``gradient_check`` compares gradients with differences,
``densities`` evaluates log-densities in compiled code, ``failure`` explains a NaN.
"""
