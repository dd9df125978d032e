"""Both phases of the ten-state Potts model at its first-order transition, by replica exchange.

python examples/potts_first_order.py [SIZE] [SWEEPS] [PICTURE]

On the square lattice with q states the transition is at ln(1 + sqrt(q)). There q ordered phases and the
disordered one have equal weights, and energies that are known exactly for an infinite lattice (Baxter 1973),
where each pair that agrees counts -1. On a finite lattice with periodic borders the mean is
(q ordered + disordered) / (q + 1), up to terms that fall exponentially with its size (Borgs and Kotecky
1990). With PICTURE, energies of all draws go to a file.
"""

import math
import sys

import numpy as np

import gibbsite as gs


def phase_energies(q: int) -> tuple[float, float]:
    """Return the energies per site of the ordered and the disordered phase of an infinite lattice.

    Their sum is -2 (1 + 1 / sqrt(q)) by duality; their difference is Baxter's latent heat,
    2 (1 + 1 / sqrt(q)) tanh(t / 2) prod_n tanh(n t)^2 with 2 cosh(t) = sqrt(q).
    """
    twice = 2 * (1 + 1 / math.sqrt(q))
    t = math.acosh(math.sqrt(q) / 2)
    heat = twice * math.tanh(t / 2) * math.prod(math.tanh(n * t) ** 2 for n in range(1, 200))
    return -0.5 * (twice + heat), -0.5 * (twice - heat)


Q = 10
ORDERED, DISORDERED = phase_energies(Q)
MIDDLE, MARGIN = 0.5 * (ORDERED + DISORDERED), 0.15
size = int(sys.argv[1]) if len(sys.argv) > 1 else 24
sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 16_000
beta, n = math.log(1 + math.sqrt(Q)), size * size
model = gs.potts_grid((size, size), states=Q, coupling=beta, periodic=True)
run = gs.sample(model, gs.Tempered(), sweeps=sweeps, rng=1, record=["energy"], progress=False)
energy = run.energy / beta / n  # of every draw of every chain, per site
seen, tempering = run.observables["energy"], run.tempering
visits = []
for chain in energy:
    clear = chain[np.abs(chain - MIDDLE) > MARGIN]  # in one phase or the other
    visits.append(int(np.count_nonzero(np.diff(clear < MIDDLE))))
print(f"{tempering.betas.size} rungs, {tempering.round_trips.sum()} round trips")
print(f"energy {seen.mean / beta / n:.4f} +-{seen.mcse / beta / n:.4f}", end=", ")
print(f"of infinite phases {(Q * ORDERED + DISORDERED) / (Q + 1):.4f}")
for name, known, inside in (("ordered", ORDERED, energy < MIDDLE), ("disordered", DISORDERED, energy >= MIDDLE)):
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
