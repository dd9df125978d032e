"""Models in the BUGS language: read, derived into Gibbs updates, and sampled.

``language`` reads programs and values. ``expansion`` turns relations into rules with arrays of counters, and
``assembly`` rules into instructions; ``network`` finds the nodes that depend on an unknown, and ``dependence`` in which
form; ``choices`` and ``derivation`` choose an update for every unknown. ``compiled`` makes these updates, and
``kernel`` presents them as a kernel.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
