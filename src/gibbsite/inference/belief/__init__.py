"""Belief propagation, which updates messages between factors and sites until they agree.

``layout`` has the arrays, ``messages`` computes a message, ``schedule`` the order of updates, ``lattice`` sweeps
binary lattices, ``readout`` computes log-partition functions, states and joint probabilities from messages, and
``propagation`` combines all of them.
"""

from gibbsite.inference.belief.propagation import belief_propagation
from gibbsite.inference.belief.result import BeliefResult

__all__ = ["BeliefResult", "belief_propagation"]
