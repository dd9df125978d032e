"""
Exact updates from a few factors
================================

Each site of this Potts model interacts with all others. Poisson-minibatching Gibbs looks at some of the factors at a
step and still has the exact stationary distribution.
"""

import numpy as np

import gibbsite as gs

rng = np.random.default_rng(1)
model = gs.models.distance_potts(rng.uniform(0, 20, (400, 2)), states=4, gamma=0.5, beta=0.05)
result = gs.sample(model, gs.PoissonGibbs(), sweeps=1000, rng=1, record=["marginals", "energy"], progress=False)
print(result.report)
axes = gs.plots.plot_autocorrelation(result.observables["energy"], label="energy, Poisson-minibatching Gibbs")
plain = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, record=["marginals", "energy"], progress=False)
gs.plots.plot_autocorrelation(plain.observables["energy"], label="energy, Gibbs with all factors", ax=axes)
