"""Gibbs sampling site by site, and what is built on it: annealing, quasi-Monte Carlo."""
