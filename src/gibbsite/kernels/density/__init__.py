"""Moves in log-densities: Metropolis-Hastings, slices, Langevin.

``metropolis``, ``slice``, ``langevin`` (MALA, ULA) and ``sgld`` are the kernels, with ``proposal`` for
moves of users; ``moves`` is what they share, ``tuning`` what they learn in the warmup.
"""
