"""Gibbs sampling of models whose factors are Python functions of their sites.

``gibbs`` is the kernel; ``energy`` selects the factors of an update and evaluates them, and ``methods`` and
``interpolated`` draw a value from the energy.
"""
