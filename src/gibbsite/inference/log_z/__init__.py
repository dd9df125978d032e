"""Estimates of log-partition functions by particles between a product distribution and a model.

They are weighted (annealed importance sampling) or also resampled (sequential Monte Carlo). Tempered runs
(:class:`gibbsite.Tempered`) give estimates as well.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
