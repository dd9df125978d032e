"""Elimination orders, in which sites are summed out, and their costs.

``greedy`` eliminates by a rule, ``order`` searches for a good order, ``rings`` defines the operations on entries. Exact
inference and kernels that draw blocks of sites use them.
"""
