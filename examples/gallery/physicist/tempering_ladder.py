"""
A ladder of temperatures
========================

Replicas at several temperatures exchange their states. The ladder is tuned so that swaps of all neighbours are
accepted equally often; round trips between the hot and the cold end show that modes are visited.
"""

import matplotlib.pyplot as plt

import gibbsite as gs

model = gs.ising_grid((8, 8), coupling=0.6, field=0.005)
result = gs.sample(model, gs.Tempered(), sweeps=12_000, rng=1, record=["marginals", "magnetisation"], progress=False)
print(result.diagnostics.line())
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
gs.plots.plot_round_trips(result, ax=left)
gs.plots.plot_comparison(gs.solve_exact(model), result, labels=("exact", "tempered"), ax=right)
