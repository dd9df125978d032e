"""Energy, specific heat, Binder cumulant and autocorrelation times of the two-dimensional Ising model.

python examples/ising_critical.py [SIZE] [SWEEPS]
"""

import sys

import gibbsite as gs

size = int(sys.argv[1]) if len(sys.argv) > 1 else 16
sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
print("  beta     energy/N            heat/N           Binder   tau: energy   m^2")
for beta in (0.35, 0.4, 0.42, 0.4406868, 0.46, 0.5):
    model = gs.ising_grid((size, size), coupling=beta, periodic=True)
    run = gs.sample(model, sweeps=sweeps, rng=1, record=["energy", "magnetisation"], progress=False)
    e, m, n = run.observables["energy"], run.observables["magnetisation"], size**2
    heat, binder = e.variance(), run.observables.derive(lambda m: 1 - m[3] / (3 * m[2] ** 2), m.name)
    print(f"{beta:.4f} {e.mean / beta / n:9.5f} +-{e.mcse / beta / n:.5f}", end=" ")  # in units of J
    print(f"{heat.value / n:8.4f} +-{heat.mcse / n:.4f}", end=" ")
    print(f"{binder.value:8.4f} +-{binder.mcse:.4f} {e.tau:7.1f} {m.tau[2]:8.1f}")
