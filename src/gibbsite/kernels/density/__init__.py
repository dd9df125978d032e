"""Moves in log-densities: Metropolis-Hastings, slices, Langevin.

``metropolis``, ``slice``, ``langevin`` (MALA, ULA) and ``sgld`` are the kernels, with ``proposal`` for
proposals of users; ``moves`` has what they share, ``tuning`` their adaptation in the warmup.
"""
