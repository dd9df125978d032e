"""Gibbs sampling of models whose factors are functions.

``gibbs`` is the kernel; ``batch`` selects the factors of an update, ``energy`` evaluates them, and ``methods`` draw
a value from the energy: inverses, interpolants, rejection or slices.
"""
