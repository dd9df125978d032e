"""Elimination orders: in which order sites are summed out, and what that costs.

``greedy`` eliminates by a rule, ``order`` searches for a good order, ``rings`` has the operations on table entries.
Exact inference and kernels that draw blocks of sites use them.
"""
