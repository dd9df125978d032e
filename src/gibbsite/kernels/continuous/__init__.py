"""Gibbs sampling of models whose factors are functions.

``gibbs`` is the kernel; ``batch`` selects the factors of an update, ``energy`` evaluates them, and ``methods`` and
``interpolated`` draw a value from the energy.
"""
