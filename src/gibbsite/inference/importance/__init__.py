"""Weighted draws: importance sampling from laws that are close to a model.

``base`` says what a proposal is, ``run`` lets it run, ``tally`` sums up draws, ``estimate`` makes numbers of
the sums, ``pareto`` looks at the tail of the weights, ``verdict`` says how far to trust them.

``mini_buckets`` bounds log Z and draws from what that leaves, for weights or as moves of a chain;
``interval`` makes intervals of it.
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
