"""Experiments of the Poisson-Gibbs paper."""
