"""Functions of users in compiled models: their bounds, gradients, and what to say where they fail.

``bounds`` finds between which values factors stay, ``gradient_check`` compares gradients with differences,
``densities`` evaluates log-densities in compiled code, ``failure`` explains a NaN.
"""
