"""How one site moves: one file per algorithm, in the folder of its family.

Every file of this folder is loaded, so that a new kernel is one file: :mod:`gibbsite.kernels.registry` says
what is derived from its registration, and docs/new_kernel.md how to write one.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
