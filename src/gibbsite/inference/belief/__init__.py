"""Belief propagation: messages between factors and sites are updated until they agree.

``layout`` has the arrays, ``messages`` updates one message after the other, ``order`` gives their order in a sweep,
``lattice`` sweeps binary lattices, ``forests`` computes the powers of tree-reweighted messages, ``readout`` computes
log-partition functions and states and ``joint`` joint probabilities from messages; ``propagation`` puts all of it
together.
"""

from gibbsite.inference.belief.propagation import belief_propagation
from gibbsite.inference.belief.result import BeliefResult

__all__ = ["BeliefResult", "belief_propagation"]
