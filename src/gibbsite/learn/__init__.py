"""Models from data: Monte Carlo maximum likelihood with gradients whose bias is bounded.

``fitting`` is what users call, ``family`` says what is learnt, ``expectation`` where mean statistics come
from, ``ascent`` follows the gradient, ``screening`` finds pairs that are coupled at all. ``crf`` labels
sequences, ``aspect`` finds topics of documents.
"""

from gibbsite.learn.aspect import AspectModel
from gibbsite.learn.crf import ChainCRF
from gibbsite.learn.fitting import Fit, fit_ising, fit_pairwise
from gibbsite.learn.screening import screen_pairs
from gibbsite.learn.settings import Settings

__all__ = ["AspectModel", "ChainCRF", "Fit", "Settings", "fit_ising", "fit_pairwise", "screen_pairs"]
