"""Herded Gibbs sampling, which follows conditionals by counting instead of random numbers.

``herded`` is the kernel, ``herding`` has the rules and the step, ``keys`` identifies and stores weights, and ``theory``
states what is guaranteed.
"""
