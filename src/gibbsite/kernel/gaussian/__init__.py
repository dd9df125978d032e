"""Gibbs sampling and exact draws of multivariate normal distributions."""
