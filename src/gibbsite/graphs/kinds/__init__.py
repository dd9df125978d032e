"""Graph kinds, one file each: the named tuple of arrays, how it is built, and its local conditionals.

A new kind is one file; see :mod:`gibbsite.graphs.registry`.
"""
