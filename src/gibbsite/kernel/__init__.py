"""How one site moves: one file per algorithm."""

from gibbsite.kernel.base import Kernel
from gibbsite.kernel.gibbs import Gibbs

__all__ = ["Gibbs", "Kernel"]
