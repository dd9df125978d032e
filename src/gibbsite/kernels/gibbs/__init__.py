"""Gibbs sampling site by site, and kernels based on it: annealing, quasi-Monte Carlo.

``gibbs``, ``annealed``, ``quasi`` and ``conditional`` are the kernels; ``running_weights`` and ``conditional_cache``
make their steps cheaper, ``temperature`` finds temperatures, and ``uphill`` ends searches at a local maximum.
"""
