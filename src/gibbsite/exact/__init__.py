"""The oracles: exact answers where a model is small enough, and exact transition matrices.

``enumeration`` lists all states, ``junction`` solves by elimination (orders, trees and passes are the other
files), ``transition`` has the matrices by which kernels are proved.
"""

from gibbsite.exact.cost import ExactCost
from gibbsite.exact.enumeration import Enumeration, enumerate_states
from gibbsite.exact.junction import predict_exact, solve_exact
from gibbsite.exact.result import ExactResult

enumerate = enumerate_states

__all__ = [
    "Enumeration",
    "ExactCost",
    "ExactResult",
    "enumerate",
    "enumerate_states",
    "predict_exact",
    "solve_exact",
]
