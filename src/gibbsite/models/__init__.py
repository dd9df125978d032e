"""Models: sites, factors, evidence, and builders for well-known models.

Models are immutable and named; ``observe`` folds evidence in, ``reweight`` changes weights. Files are in
:mod:`gibbsite.formats`, compiled arrays in :mod:`gibbsite.graphs`.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
