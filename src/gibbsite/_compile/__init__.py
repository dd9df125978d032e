"""Everything that knows Numba: decorators, the disk cache, generic functions, functions of users."""
