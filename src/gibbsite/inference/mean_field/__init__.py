"""Deterministic approximations: the product law closest to a model, and beliefs from messages.

``fixed_point`` is mean field, ``_expected`` has expectations under a product law for every graph kind,
``_sweep`` one pass over all sites, ``start`` where it begins; ``belief/`` is belief propagation.
"""

from gibbsite.inference.belief import BeliefResult, belief_propagation
from gibbsite.inference.mean_field.fixed_point import mean_field
from gibbsite.inference.mean_field.result import MeanFieldResult

__all__ = ["BeliefResult", "MeanFieldResult", "belief_propagation", "mean_field"]
