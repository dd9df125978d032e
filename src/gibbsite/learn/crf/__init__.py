"""Conditional random fields on chains, which label sequences and are trained by maximum likelihood.

The interface is ``estimator``; ``chain`` has the model and its likelihood, ``sequences`` the data, ``labels`` and
``structure`` the allowed transitions, ``passes`` the compiled recursions, ``quasi_newton`` the optimiser, ``given``
reads weights that are given instead of learnt, and ``decoding`` finds labels by sampling.
"""

from gibbsite.learn.crf.estimator import ChainCRF

__all__ = ["ChainCRF"]
