"""Gibbs sampling site by site, and what is built on it: annealing, quasi-Monte Carlo.

``gibbs``, ``annealed``, ``quasi`` and ``conditional`` are the kernels; ``running_weights`` and ``conditional_cache``
make their steps cheaper, ``temperature`` finds temperatures, ``uphill`` ends searches.
"""
