"""The oracles: exact answers where a model is small enough, and exact transition matrices."""

from gibbsite.exact.enumeration import Enumeration, ExactResult, enumerate_states, solve_exact

enumerate = enumerate_states

__all__ = ["Enumeration", "ExactResult", "enumerate", "enumerate_states", "solve_exact"]
