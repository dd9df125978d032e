"""
Exact updates from a few factors
================================

Each of the 400 sites of this Potts model interacts with all others. Poisson-minibatching Gibbs looks at about twelve of
the 399 factors at a step and still has the exact stationary distribution; its draws depend on each other for a little
longer.
"""

import numpy as np

import gibbsite as gs

rng = np.random.default_rng(1)
model = gs.models.distance_potts(rng.uniform(0, 20, (400, 2)), states=4, gamma=0.1, beta=0.1)
result = gs.sample(model, gs.PoissonGibbs(), sweeps=1000, rng=1, record=["marginals", "energy"], progress=False)
print(f"{result.report['factors']:.1f} factors at a step")
axes = gs.plots.plot_autocorrelation(result.observables["energy"], label="Poisson-minibatching Gibbs")
plain = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, record=["marginals", "energy"], progress=False)
gs.plots.plot_autocorrelation(plain.observables["energy"], label="Gibbs with all factors", ax=axes)
axes.set_title("autocorrelation of the energy", loc="left", fontsize=9)
