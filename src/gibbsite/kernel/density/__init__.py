"""Moves in log-densities: Metropolis-Hastings, slices, Langevin."""
