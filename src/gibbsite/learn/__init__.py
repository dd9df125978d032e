"""Learning of models from data: Monte Carlo maximum likelihood with gradients of bounded bias.

For pairwise models, ``fitting`` is the interface, which returns a ``fit``, ``family`` defines the models, ``arguments``
reads data and settings, ``frames`` reads data frames, ``expectation`` computes mean statistics, ``ascent`` follows the
gradient, ``errors`` computes standard errors, and ``screening`` selects pairs. ``crf`` labels sequences, and
``aspect`` finds topics of documents. ``networks`` learns tables and structures of Bayesian networks.
"""

from gibbsite.learn.arguments import Settings
from gibbsite.learn.aspect import AspectModel
from gibbsite.learn.crf import ChainCRF
from gibbsite.learn.fit import Fit
from gibbsite.learn.fitting import fit_ising, fit_pairwise
from gibbsite.learn.networks.cases import Cases, read_cases
from gibbsite.learn.networks.equivalence import structural_distance
from gibbsite.learn.networks.fitted import AveragedAnswer, TableFit
from gibbsite.learn.networks.fitting import fit_tables
from gibbsite.learn.networks.sampling import StructurePosterior, sample_structures
from gibbsite.learn.networks.structures import StructureFit, learn_structure, score_structure
from gibbsite.learn.screening import screen_pairs

__all__ = [
    "AspectModel",
    "AveragedAnswer",
    "Cases",
    "ChainCRF",
    "Fit",
    "Settings",
    "StructureFit",
    "StructurePosterior",
    "TableFit",
    "fit_ising",
    "fit_pairwise",
    "fit_tables",
    "learn_structure",
    "read_cases",
    "sample_structures",
    "score_structure",
    "screen_pairs",
    "structural_distance",
]
