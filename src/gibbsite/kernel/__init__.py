"""How one site moves: one file per algorithm."""

import gibbsite.kernel.checkered
import gibbsite.kernel.checkered_potts
import gibbsite.kernel.functions
import gibbsite.kernel.herded_board
import gibbsite.kernel.herded_colored  # noqa: F401 (all register what they have)
from gibbsite.kernel.annealed import AnnealedGibbs
from gibbsite.kernel.base import Kernel
from gibbsite.kernel.gibbs import Gibbs
from gibbsite.kernel.herded import HerdedGibbs
from gibbsite.kernel.herding_theorem import HerdingBound, herding_bound
from gibbsite.kernel.quasi import QuasiGibbs

__all__ = ["AnnealedGibbs", "Gibbs", "HerdedGibbs", "HerdingBound", "Kernel", "QuasiGibbs", "herding_bound"]
