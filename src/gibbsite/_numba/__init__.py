"""All code that depends on Numba: decorators, the disk cache, generic functions, users' functions.

``jit`` contains the decorators, ``generic`` functions with one implementation per type, ``foreign`` calls of users'
functions by address, ``pointer`` compiled functions as values; ``parts`` lists the private parts of Numba in use.
"""
