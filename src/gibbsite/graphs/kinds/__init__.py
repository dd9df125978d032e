"""Graph kinds, one file each: the named tuple of arrays, its builder, and its local conditionals.

A new kind is one file; see :mod:`gibbsite.graphs.registry`.
"""
