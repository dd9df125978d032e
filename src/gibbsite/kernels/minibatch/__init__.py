"""Kernels that draw a minibatch of the factors of a site instead of reading all of them.

``poisson``, ``min_gibbs`` and ``metropolis`` are the kernels; ``factors`` declares how factors
are drawn, and ``rows`` implements it for each kind of graph.
"""
