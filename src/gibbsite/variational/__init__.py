"""Deterministic approximations: the product law closest to a model.

``fixed_point`` is mean field, ``_expected`` has expectations under a product law for every graph kind,
``_sweep`` one pass over all sites, ``start`` where it begins.
"""

from gibbsite.variational.fixed_point import mean_field
from gibbsite.variational.result import MeanFieldResult

__all__ = ["MeanFieldResult", "mean_field"]
