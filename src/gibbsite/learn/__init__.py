"""Models from data: Monte Carlo maximum likelihood with gradients whose bias is bounded."""

from gibbsite.learn.fitting import Fit, fit_ising, fit_pairwise
from gibbsite.learn.screening import screen_pairs
from gibbsite.learn.settings import Settings

__all__ = ["Fit", "Settings", "fit_ising", "fit_pairwise", "screen_pairs"]
