"""Kernels: the algorithms that update a site, one module for each, in the folder of its family.

Kernels are imported when they are used. :mod:`gibbsite.kernels.registry` lists what is derived from the
registration of a kernel, and docs/new_kernel.md explains how to write one.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
