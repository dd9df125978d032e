"""Experiments of the Poisson-Gibbs paper.

Zhang and De Sa (2019), Poisson-minibatching for Gibbs sampling with convergence rate guarantees. There is one file for
each experiment.
"""
