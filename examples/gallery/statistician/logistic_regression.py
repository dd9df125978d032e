"""
Logistic regression from minibatches
====================================

Poisson-minibatching Metropolis-Hastings samples the exact posterior of a regression although it looks at only about a
tenth of the rows at a step. Dashed lines are the coefficients that the data were made with.
"""

import numpy as np

import gibbsite as gs
from gibbsite.applications import logistic_regression

rng = np.random.default_rng(1)
rows = rng.normal(size=(20_000, 4))
true = np.array([0.5, -1.0, 0.2, 0.0])
labels = rng.random(20_000) < 1 / (1 + np.exp(-rows @ true))
regression = logistic_regression(rows, labels)
kernel = gs.kernels.PoissonMH(covariance=regression.covariance)
result = gs.sample(regression.model, kernel, sweeps=2000, record=["marginals", "draws"], rng=1, progress=False)
print(result.report)
panels = gs.plot_marginals(result)
for axes, coefficient in zip(panels.ravel(), true, strict=False):
    axes.axvline(coefficient, color="black", lw=1, ls="--")
