"""How one site moves: one file per algorithm."""

import gibbsite.kernel.checkered
import gibbsite.kernel.checkered_potts
import gibbsite.kernel.densities
import gibbsite.kernel.functions
import gibbsite.kernel.herded_board
import gibbsite.kernel.herded_colored
import gibbsite.kernel.minibatch_agreements
import gibbsite.kernel.minibatch_positions
import gibbsite.kernel.minibatch_tables  # noqa: F401 (all register what they have)
from gibbsite.graph.lower import Graph
from gibbsite.kernel.annealed import AnnealedGibbs
from gibbsite.kernel.base import Kernel
from gibbsite.kernel.conditionals import ConditionalGibbs
from gibbsite.kernel.continuous import ContinuousGibbs
from gibbsite.kernel.double_min import DoubleMinGibbs
from gibbsite.kernel.exact_gaussian import ExactGaussian
from gibbsite.kernel.gaussian import GaussianGibbs
from gibbsite.kernel.gaussian_blocks import BlockedGaussianGibbs
from gibbsite.kernel.gibbs import Gibbs
from gibbsite.kernel.herded import HerdedGibbs
from gibbsite.kernel.herding_theorem import HerdingBound, herding_bound
from gibbsite.kernel.langevin import MALA, ULA
from gibbsite.kernel.local_minibatch import LocalMinibatchGibbs
from gibbsite.kernel.metropolis import Metropolis
from gibbsite.kernel.mgpmh import MGPMH
from gibbsite.kernel.min_gibbs import MinGibbs
from gibbsite.kernel.minibatch import Energies, local_energies
from gibbsite.kernel.poisson import PoissonGibbs
from gibbsite.kernel.poisson_mh import PoissonMH
from gibbsite.kernel.proposal import Proposal
from gibbsite.kernel.quasi import QuasiGibbs
from gibbsite.kernel.sgld import SGLD
from gibbsite.kernel.slicing import Slice
from gibbsite.kernel.tuna_mh import TunaMH

__all__ = [
    "MALA",
    "MGPMH",
    "SGLD",
    "ULA",
    "AnnealedGibbs",
    "BlockedGaussianGibbs",
    "ConditionalGibbs",
    "ContinuousGibbs",
    "DoubleMinGibbs",
    "Energies",
    "ExactGaussian",
    "GaussianGibbs",
    "Gibbs",
    "HerdedGibbs",
    "HerdingBound",
    "Kernel",
    "LocalMinibatchGibbs",
    "Metropolis",
    "MinGibbs",
    "PoissonGibbs",
    "PoissonMH",
    "Proposal",
    "QuasiGibbs",
    "Slice",
    "TunaMH",
    "default_kernel",
    "herding_bound",
    "local_energies",
]

# Kernels for kinds of graphs other than discrete ones.
_DEFAULTS: dict[str, type[Kernel]] = {
    "functions": ContinuousGibbs,
    "gaussian": GaussianGibbs,
    "conditionals": ConditionalGibbs,
    "density": Metropolis,
    "data": Metropolis,
}


def default_kernel(graph: Graph) -> Kernel:
    """Return the kernel that a run takes unless it is told another."""
    return _DEFAULTS.get(graph.kind, Gibbs)()
