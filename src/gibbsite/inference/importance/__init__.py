"""Importance sampling: weighted draws from distributions that are close to a model.

``base`` defines what a proposal is, ``run`` draws from it, ``tally`` sums up draws, ``estimate`` turns the sums into
numbers, ``verdict`` says how far to trust them, and ``result`` is the answer.

``forward`` draws Bayesian networks from parents to children: ``network`` finds them, ``tables`` draws, and ``guidance``
improves the proposals. ``mini_buckets`` bounds log Z and draws from the tables that this leaves, for weights or as
moves of a chain; ``interval`` computes intervals of log Z.
"""

from gibbsite.inference.importance.base import ImportanceProposal, WeightedSource
from gibbsite.inference.importance.forward import Forward
from gibbsite.inference.importance.interval import LogZInterval, bound_log_z
from gibbsite.inference.importance.mini_buckets.metropolis import MiniBucketMetropolis
from gibbsite.inference.importance.mini_buckets.proposal import MiniBucket
from gibbsite.inference.importance.result import WeightedResult
from gibbsite.inference.importance.run import sample_weighted

__all__ = [
    "Forward",
    "ImportanceProposal",
    "LogZInterval",
    "MiniBucket",
    "MiniBucketMetropolis",
    "WeightedResult",
    "WeightedSource",
    "bound_log_z",
    "sample_weighted",
]
