"""Conditional random fields on chains: any labelling of sequences, learnt by maximum likelihood.

``estimator`` is what users call, ``chain`` what is learnt, ``passes`` the compiled passes over sequences,
``structure`` what may follow what, ``objective`` the likelihood, ``quasi_newton`` the search for its maximum.
"""

from gibbsite.learn.crf.estimator import ChainCRF

__all__ = ["ChainCRF"]
