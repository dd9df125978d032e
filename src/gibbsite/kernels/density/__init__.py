"""Kernels for log-densities: Metropolis-Hastings, slice sampling, Langevin dynamics.

``metropolis``, ``slice``, ``langevin`` (MALA, ULA) and ``sgld`` are the kernels. ``moves`` has their common parts,
``tuning`` the adaptation in the warmup, and ``bias`` the bias of kernels without an accept step.
"""
