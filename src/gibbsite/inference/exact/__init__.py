"""Exact answers for models that are small enough, and exact transition matrices.

``enumeration`` lists all states and ``junction`` solves by elimination. For the latter ``reduce`` removes impossible
states, ``tree`` builds the clique tree, ``potentials`` and ``plan`` place its tables, ``cost`` predicts time and
memory, ``sweep`` multiplies the tables of one clique, ``propagate`` passes messages, and ``states`` finds states.
``transition`` has the matrices by which kernels are verified.
"""

from gibbsite.inference.exact.cost import ExactCost
from gibbsite.inference.exact.enumeration import Enumeration, enumerate_states
from gibbsite.inference.exact.junction import predict_exact, solve_exact
from gibbsite.inference.exact.result import ExactResult

enumerate = enumerate_states

__all__ = ["Enumeration", "ExactCost", "ExactResult", "enumerate", "enumerate_states", "predict_exact", "solve_exact"]
