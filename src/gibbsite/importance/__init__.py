"""Weighted draws: importance sampling from laws that are close to a model.

``base`` says what a proposal is, ``run`` lets it run, ``tally`` sums up draws, ``estimate`` makes numbers of
the sums, ``pareto`` looks at the tail of the weights, ``verdict`` says how far to trust them.
"""

from gibbsite.importance.base import Proposal, Source
from gibbsite.importance.forward import Forward
from gibbsite.importance.result import WeightedResult
from gibbsite.importance.run import sample_weighted
from gibbsite.importance.verdict import WeightDiagnostics

__all__ = ["Forward", "Proposal", "Source", "WeightDiagnostics", "WeightedResult", "sample_weighted"]
