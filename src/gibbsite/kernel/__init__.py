"""How one site moves: one file per algorithm, in the folder of its family.

Every file of this folder is loaded, so that a new kernel is one file: :mod:`gibbsite.kernel.registry` says
what is derived from its registration, and docs/new_kernel.md how to write one.
"""

from typing import TYPE_CHECKING

import gibbsite.graph.functions.densities  # noqa: F401  (how log-densities are evaluated on their graphs)
from gibbsite._discover import load_modules
from gibbsite.kernel.base import Kernel as Kernel
from gibbsite.kernel.registry import default_kernel as default_kernel
from gibbsite.kernel.registry import registered_kernels

load_modules(__name__)

if not TYPE_CHECKING:  # type checkers read gibbsite/__init__.pyi
    globals().update({one.name: one.kernel for one in registered_kernels()})
    __all__ = ["Kernel", "default_kernel", *(one.name for one in registered_kernels())]
