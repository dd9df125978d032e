"""Gibbs sampling of models whose factors are functions.

``gibbs`` is the kernel; ``batch`` says which factors an update is about, ``energy`` what they say, and
``method`` how a value is drawn from that: inverses, interpolants, rejection or slices.
"""
