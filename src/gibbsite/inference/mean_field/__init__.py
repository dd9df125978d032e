"""Mean field approximation by the product distribution with the best lower bound of the log-partition function.

``fixed_point`` chooses a start and iterates, ``_sweep`` updates all sites once for every graph kind, and ``trees``
replaces independent sites by independent trees.
"""

from gibbsite.inference.mean_field.fixed_point import MeanFieldResult, mean_field

__all__ = ["MeanFieldResult", "mean_field"]
