"""Graph kinds, one file each: the named tuple of arrays, how it is built, and its local conditionals.

Kinds of factor graphs are tried by rank, from the most to the least special; models of other types have
one each. Every file of this folder is loaded, so that a new kind is one file.
"""

from gibbsite._common.loading import load_modules

load_modules(__name__)
