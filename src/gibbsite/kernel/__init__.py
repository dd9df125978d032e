"""How one site moves: one file per algorithm."""

import gibbsite.kernel.checkered  # noqa: F401 (registers its walk)
from gibbsite.kernel.annealed import AnnealedGibbs
from gibbsite.kernel.base import Kernel
from gibbsite.kernel.gibbs import Gibbs

__all__ = ["AnnealedGibbs", "Gibbs", "Kernel"]
