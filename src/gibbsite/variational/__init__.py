"""Deterministic approximations: the product law closest to a model."""

from gibbsite.variational.fixed_point import mean_field
from gibbsite.variational.result import MeanFieldResult

__all__ = ["MeanFieldResult", "mean_field"]
