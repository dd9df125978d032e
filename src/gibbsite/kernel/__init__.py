"""How one site moves: one file per algorithm."""

import gibbsite.graph.functions.densities
import gibbsite.kernel.at_once.checkered
import gibbsite.kernel.at_once.checkered_potts
import gibbsite.kernel.at_once.herded_board
import gibbsite.kernel.at_once.herded_colored
import gibbsite.kernel.functions
import gibbsite.kernel.minibatch.agreements
import gibbsite.kernel.minibatch.distances
import gibbsite.kernel.minibatch.tables  # noqa: F401 (all register what they have)
from gibbsite.graph.graph import Graph
from gibbsite.kernel.base import Kernel
from gibbsite.kernel.continuous.gibbs import ContinuousGibbs
from gibbsite.kernel.density.langevin import MALA, ULA
from gibbsite.kernel.density.metropolis import Metropolis
from gibbsite.kernel.density.proposal import Proposal
from gibbsite.kernel.density.sgld import SGLD
from gibbsite.kernel.density.slice import Slice
from gibbsite.kernel.gaussian.blocks import BlockedGaussianGibbs
from gibbsite.kernel.gaussian.exact import ExactGaussian
from gibbsite.kernel.gaussian.gibbs import GaussianGibbs
from gibbsite.kernel.gibbs.annealed import AnnealedGibbs
from gibbsite.kernel.gibbs.conditional import ConditionalGibbs
from gibbsite.kernel.gibbs.gibbs import Gibbs
from gibbsite.kernel.gibbs.quasi import QuasiGibbs
from gibbsite.kernel.herded.herded import HerdedGibbs
from gibbsite.kernel.herded.theorem import HerdingBound, herding_bound
from gibbsite.kernel.minibatch.double_min import DoubleMinGibbs
from gibbsite.kernel.minibatch.factors import LocalEnergies, local_energies
from gibbsite.kernel.minibatch.local import LocalMinibatchGibbs
from gibbsite.kernel.minibatch.mgpmh import MGPMH
from gibbsite.kernel.minibatch.min_gibbs import MinGibbs
from gibbsite.kernel.minibatch.poisson import PoissonGibbs
from gibbsite.kernel.minibatch.poisson_mh import PoissonMH
from gibbsite.kernel.minibatch.tuna_mh import TunaMH

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
    "ExactGaussian",
    "GaussianGibbs",
    "Gibbs",
    "HerdedGibbs",
    "HerdingBound",
    "Kernel",
    "LocalEnergies",
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
