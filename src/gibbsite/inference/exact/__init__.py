"""The oracles: exact answers where a model is small enough, and exact transition matrices.

``enumeration`` lists all states, ``junction`` solves by elimination (orders, trees and passes are the other
files), ``transition`` has the matrices by which kernels are proved.
"""

from gibbsite.inference.exact.cost import ExactCost
from gibbsite.inference.exact.enumeration import Enumeration, enumerate_states
from gibbsite.inference.exact.junction import predict_exact, solve_exact
from gibbsite.inference.exact.result import ExactResult

enumerate = enumerate_states

__all__ = ["Enumeration", "ExactCost", "ExactResult", "enumerate", "enumerate_states", "predict_exact", "solve_exact"]
