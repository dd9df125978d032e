"""Models from and to files and objects of other libraries, one format per file, reader and writer together.

A new format is one file (docs/new_format.md), which is loaded when the format is used. Readers and writers of single
formats take more arguments than :func:`gibbsite.read_model` and :func:`gibbsite.write_model`.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
