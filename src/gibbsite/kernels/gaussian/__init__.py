"""Gibbs sampling and exact draws of multivariate normal distributions.

``gibbs`` draws site by site or color by color, ``cholesky`` blocks of sites or whole states.
"""
