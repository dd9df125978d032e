"""How one site moves: one file per algorithm."""

import gibbsite.kernel.checkered  # noqa: F401 (registers its walk)
from gibbsite.kernel.base import Kernel
from gibbsite.kernel.gibbs import Gibbs
from gibbsite.kernel.quasi import QuasiGibbs

__all__ = ["Gibbs", "Kernel", "QuasiGibbs"]
