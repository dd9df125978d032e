"""Log-partition functions by particles that move from a product distribution to a model, or back.

They are weighted (annealed importance sampling) or also resampled (sequential Monte Carlo). Tempered runs
(:class:`gibbsite.Tempered`) give estimates as well.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
