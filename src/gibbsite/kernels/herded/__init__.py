"""Herded Gibbs: conditionals followed by counting instead of random numbers.

``herded`` is the kernel, ``herding`` the rules and the step, ``keys`` identify and store weights, and ``theory`` says
what is guaranteed.
"""
