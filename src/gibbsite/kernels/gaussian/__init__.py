"""Gibbs sampling and exact draws of multivariate normal distributions.

``gibbs`` draws site by site or color by color, ``blocks`` blocks of sites, ``exact`` whole states by a Cholesky factor.
"""
