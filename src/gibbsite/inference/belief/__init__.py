"""Belief propagation: messages between factors and sites until they agree.

``layout`` has the arrays, ``messages`` one message after the other, ``order`` their order in a sweep,
``lattice`` sweeps of binary lattices, ``forests`` the powers of tree-reweighted messages, ``free_energy``
what messages say about the log-partition function, ``decoding`` and ``joint`` what they say about states,
and ``propagation`` the whole way.
"""

from gibbsite.inference.belief.propagation import belief_propagation
from gibbsite.inference.belief.result import BeliefResult

__all__ = ["BeliefResult", "belief_propagation"]
