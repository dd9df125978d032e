"""Everything that knows Numba: decorators, the disk cache, generic functions, functions of users.

``jit`` has the decorators, ``generic`` functions with an implementation for each type, ``foreign`` functions of users
by address, ``pointer`` functions as values; ``parts`` lists what is used of Numba that is not public.
"""
