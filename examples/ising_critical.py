"""Energy, specific heat, Binder cumulant and autocorrelation times of the two-dimensional Ising model.

    python examples/ising_critical.py [SIZE] [SWEEPS]
"""

import sys

import gibbsite as gs

size = int(sys.argv[1]) if len(sys.argv) > 1 else 16
sweeps = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
print("     T   energy/N           heat/N           Binder cumulant   tau(energy)  tau(m^2)")
for t in (2.0, 2.1, 2.2, 2.2692, 2.3, 2.4, 2.6):
    model = gs.ising_grid((size, size), coupling=1 / t, periodic=True)
    run = gs.sample(model, sweeps=sweeps, chains=4, rng=1, record=["energy", "magnetisation"], progress=False)
    seen, n = run.observables, size**2  # energies of the model are those of the spins divided by T
    e = seen.derive(lambda e: t * e / n, "energy")
    heat = seen["energy"].variance()
    binder = seen.derive(lambda m: 1 - m[3] / (3 * m[2] ** 2), "magnetisation")
    print(
        f"{t:7.4f} {e.value:9.5f} +-{e.mcse:.5f} {heat.value / n:7.4f} +-{heat.mcse / n:.4f} {binder.value:9.4f} "
        f"+-{binder.mcse:.4f} {seen['energy'].tau:8.1f} {seen['magnetisation'].tau[2]:10.1f}"
    )
