"""Moves in log-densities: Metropolis-Hastings, slices, Langevin.

``metropolis``, ``slice``, ``langevin`` (MALA, ULA) and ``sgld`` are the kernels; ``moves`` has what they share,
``tuning`` their adaptation in the warmup, ``bias`` the bias of those without an accept step.
"""
