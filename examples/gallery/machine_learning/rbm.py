"""
A restricted Boltzmann machine with persistent chains
=====================================================

Chains that keep their states between gradient steps (persistent contrastive divergence) train a small machine on bars
and stripes. New weights do not set the chains up again.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

side, hidden, rate = 4, 16, 0.05
rows = np.array([[(k >> r) & 1 for r in range(side)] for k in range(2**side)])
images = np.concatenate([np.repeat(rows, side, axis=1), np.tile(rows, (1, side))]).astype(float)
rng = np.random.default_rng(1)
w, b, c = 0.05 * rng.normal(size=(side * side, hidden)), np.zeros(side * side), np.zeros(hidden)
chains = gs.PersistentChains(gs.rbm(w, b, c), gs.Gibbs(), chains=128, rng=1)
for _ in range(6000):
    fields = np.concatenate([b / 2 + w.sum(axis=1) / 4, c / 2 + w.sum(axis=0) / 4])
    states = chains.reweight(couplings=w.ravel() / 4, fields=fields).run(1).states
    seen = 1 / (1 + np.exp(-(images @ w + c)))
    v, h = states[:, : side * side].astype(float), states[:, side * side :].astype(float)
    w += rate * (images.T @ seen / len(images) - v.T @ h / len(v))
    b += rate * (images.mean(axis=0) - v.mean(axis=0))
    c += rate * (seen.mean(axis=0) - h.mean(axis=0))

figure, panels = plt.subplots(4, 12, figsize=(10, 3.6))
known = {tuple(image) for image in images.astype(int).tolist()}
states = chains.run(50).states[:, : side * side]
for axes, state in zip(panels.ravel(), states, strict=False):
    axes.imshow(state.reshape(side, side), cmap="Greys", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[])
share = np.mean([tuple(state) in known for state in states.tolist()])
figure.suptitle(f"states of the chains: {share:.0%} are bars or stripes", fontsize=10)
