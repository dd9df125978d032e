"""
The ground state of a spin glass through dimod
==============================================

A two-dimensional spin glass as a dimod model. ``DimodSampler`` anneals it; on a lattice of this width the exact solver
proves which energy is the lowest. dimod minimises energies, so spins of a positive (orange) coupling want to differ.
"""

import dimod
import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

size = 12
rng = np.random.default_rng(4)
pairs = [(s, s + 1) for s in range(size * size) if (s + 1) % size]
pairs += [(s, s + size) for s in range(size * (size - 1))]
glass = dimod.BinaryQuadraticModel.from_ising({}, {pair: rng.choice([-1.0, 1.0]) for pair in pairs})
found = gs.applications.DimodSampler().sample(glass, num_reads=20, seed=1)
model = gs.formats.from_bqm(glass)
exact = gs.infer(model, task="MAP")
print(
    "lowest energy found",
    found.first.energy,
    "and proved",
    glass.energy({int(site): spin for site, spin in exact.assignment.items()}),
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
gs.plot_model(model, names=False, ax=left)
left.set_title("blue: spins want to be equal; orange: they want to differ", fontsize=9)
state = np.array([found.first.sample[s] for s in range(size * size)]).reshape(size, size)
right.imshow(state, cmap="PuOr_r")
right.set_title("a ground state", fontsize=9)
right.set_axis_off()
