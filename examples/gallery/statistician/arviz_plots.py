"""
Rank plots and effective sizes with ArviZ
=========================================

``result.to_datatree()`` and ``result.to_arviz()`` give draws to ArviZ. Here are two plots that its users know: ranks
of the draws in each chain, which are uniform if the chains agree, and the effective sample size against the number of
draws.
"""

import arviz as az
import numpy as np

import gibbsite as gs

normal = gs.Gaussian([1.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], names=["a", "b"])
result = gs.sample(
    normal, gs.kernels.GaussianGibbs(), sweeps=1000, record=["marginals", "draws"], rng=1, progress=False
)
data = result.to_arviz()
az.plot_rank(data, figsize=(10, 4), backend_kwargs={"layout": "constrained"})

# %%
az.plot_ess(data, kind="evolution", figsize=(10, 4), backend_kwargs={"layout": "constrained"})

# %%
# gibbsite's own effective sizes are of the same order. They come from batch means of conditional expectations, which
# vary less than the draws themselves.
print(result.ess["a"]["mean"], np.asarray(az.ess(data)["a"]))
