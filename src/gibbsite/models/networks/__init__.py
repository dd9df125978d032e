"""Bayesian networks as people write them: named nodes with their parents and their conditional tables."""
