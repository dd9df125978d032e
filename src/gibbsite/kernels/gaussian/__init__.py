"""Gibbs sampling and exact draws of multivariate normal distributions.

``gibbs`` draws single sites or all sites of a color, and ``cholesky`` draws blocks of sites or whole states.
"""
