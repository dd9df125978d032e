"""
Two phases of the ten-state Potts model
=======================================

At its first-order transition the ten-state Potts model is ordered or disordered, and seldom between. Replica exchange
visits both phases. On a lattice of 12 x 12 sites both are frequent at a temperature slightly above the transition of
the infinite lattice, which is taken here. The dashed lines are the exact energies of the two phases of the infinite
lattice at its transition (Baxter, 1973).
"""

import math
import warnings

import matplotlib.pyplot as plt

import gibbsite as gs

# which of the ten states dominates changes seldom, so the marginals of single sites do not converge; the energy does
warnings.simplefilter("ignore", gs.ConvergenceWarning)
q, size = 10, 12
beta = math.log(1 + math.sqrt(q)) - math.log(q) / (1.664253 - 0.968203) / size**2
model = gs.potts_grid((size, size), states=q, coupling=beta, periodic=True)
run = gs.sample(model, gs.Tempered(), sweeps=4000, rng=1, record=["energy"], progress=False)
energy = run.energy / beta / size**2
print(run.observables["energy"])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), width_ratios=(3, 2), layout="constrained")
for chain in energy[:2]:
    left.plot(chain, lw=0.5)
left.set(xlabel="draw", ylabel="energy per site")
right.hist(energy.ravel(), bins=60, density=True, orientation="horizontal")
right.set(xlabel="density of all draws")
for axes in (left, right):
    for known in (-1.664253, -0.968203):
        axes.axhline(known, color="black", lw=0.8, ls="--")
