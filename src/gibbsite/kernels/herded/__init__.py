"""Herded Gibbs: conditionals followed by counting instead of random numbers.

``herded`` is the kernel, ``herding`` the rule, ``keys`` identify weights, ``weight_table`` stores them, ``theorem``
and ``warnings`` say what is guaranteed.
"""
