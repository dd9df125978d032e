"""What to keep of a run, as values: ``record=["marginals", gs.Draws(["A"]), gs.Observable("m", f)]``.

Recorders of the state (marginals, draws, ...) share the tape of a chain; open recorders have a step and a
block of numbers of their own (:mod:`.base`), and are one file each: those here, and those of users.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
