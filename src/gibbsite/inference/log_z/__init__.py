"""Log-partition functions by particles that go from a product law to a model, or back.

``annealed`` weights them (annealed importance sampling), ``sequential`` lets good ones multiply (sequential
Monte Carlo), ``path`` has what both share. Tempered runs (:class:`gibbsite.Tempered`) give estimates as well.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
