"""Both phases of the ten-state Potts model at its first-order transition, by replica exchange.

python examples/potts_first_order.py [SIZE] [SWEEPS] [PICTURE]

On the square lattice with q states the transition is at ln(1 + sqrt(q)). There q ordered phases and the
disordered one have equal weights, and energies that are known exactly for an infinite lattice (Baxter 1973):
-1.664253 and -0.968203 per site for q = 10, -1 for each pair that agrees. On a finite lattice with periodic
borders the mean is (q ordered + disordered) / (q + 1), up to terms that fall exponentially with its size
(Borgs and Kotecky 1990). With PICTURE, energies of all draws go to a file.
"""

import math
import sys

import numpy as np

import gibbsite as gs

Q, ORDERED, DISORDERED = 10, -1.664253, -0.968203
MIDDLE, MARGIN = 0.5 * (ORDERED + DISORDERED), 0.15
size = int(sys.argv[1]) if len(sys.argv) > 1 else 24
sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 16_000
beta, n = math.log(1 + math.sqrt(Q)), size * size
model = gs.potts_grid((size, size), states=Q, coupling=beta, periodic=True)
run = gs.sample(model, gs.Tempered(), sweeps=sweeps, rng=1, record=["energy"], progress=False)
energy = -run.log_potential / beta / n  # of every draw of every chain, per site
seen, tempering = run.observables["energy"], run.tempering
visits = []
for chain in energy:
    clear = chain[np.abs(chain - MIDDLE) > MARGIN]  # in one phase or the other
    visits.append(int(np.count_nonzero(np.diff(clear < MIDDLE))))
print(f"{tempering.betas.size} rungs, {tempering.round_trips.sum()} round trips")
print(f"energy {seen.mean / beta / n:.4f} +-{seen.mcse / beta / n:.4f}", end=", ")
print(f"of infinite phases {(Q * ORDERED + DISORDERED) / (Q + 1):.4f}")
for name, known, inside in (
    ("ordered", ORDERED, energy < MIDDLE),
    ("disordered", DISORDERED, energy >= MIDDLE),
):
    print(f"{name}: {inside.mean():.3f} of the draws, energy {energy[inside].mean():.4f}, known {known:.4f}")
print(f"changes of phase by chain: {visits}")
if len(sys.argv) > 3:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), width_ratios=(3, 2), layout="constrained")
    for chain in energy[:2]:
        left.plot(chain, linewidth=0.4)
    left.set(xlabel="sweep", ylabel="energy per site", title="two of four chains")
    right.hist(energy.ravel(), bins=120, density=True, orientation="horizontal", color="#56b4e9")
    right.set(xlabel="density", title="all chains")
    for axes in (left, right):
        for known in (ORDERED, DISORDERED):
            axes.axhline(known, color="black", linewidth=0.8, linestyle="--")
    figure.savefig(sys.argv[3], dpi=120)
