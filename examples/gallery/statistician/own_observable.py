"""
An observable of your own
=========================

Any function of the state can be averaged during a run, with standard error and autocorrelation time: here, the number
of domain walls of a chain of spins.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

couplings = [0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 1.1]
walls = []
for coupling in couplings:
    chain = gs.ising(np.diag(np.full(99, coupling), 1))
    counter = gs.Observable("walls", lambda x: (x[1:] != x[:-1]).sum())
    result = gs.sample(chain, sweeps=4000, rng=1, record=["marginals", counter], progress=False)
    walls.append(result.observables["walls"])
    print(coupling, walls[-1])

# %%
# Walls of a free chain are independent, so the exact mean is 99 / (1 + exp(2 coupling)): the dashed line.
figure, axes = plt.subplots(layout="constrained")
gs.plots.plot_observable(
    couplings, walls, reference=lambda b: 99 / (1 + np.exp(2 * b)), xlabel="coupling", ylabel="domain walls", ax=axes
)
