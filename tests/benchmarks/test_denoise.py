"""The benchmark of denoising races samplers of the same law, and reads hash tables right."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from benchmarks import denoise
from benchmarks.speed import Chain


@pytest.mark.long
def test_the_numpy_sampler_has_the_posterior_as_its_law():
    # 64 independent pixels side by side: without neighbours every sweep is an independent draw
    y = np.random.default_rng(1).normal(size=(1, 64))
    alone = np.array([denoise.numpy_gibbs(y[:, k : k + 1], 2000)[0, 0] for k in range(64)])
    p = 1 / (1 + np.exp(-2 * y[0] / denoise.SIGMA**2))
    assert (np.abs(alone - p) < 6 * np.sqrt(p * (1 - p) / 2000)).all()
    # a pair: the second of two pixels given the first is drawn from its conditional; 8 standard errors of a
    # chain whose correlation time is below 10 sweeps (the coupling's tanh squared is 0.58)
    y = np.array([[0.5, -1.0]])
    exact = gs.solve_exact(gs.ising_grid((1, 2), coupling=1.0, field=y / denoise.SIGMA**2)).marginals
    seen = denoise.numpy_gibbs(y, 20_000)[0]
    assert abs(seen[0] - exact["0"][1]) < 8 * np.sqrt(0.25 * 10 / 20_000)
    assert abs(seen[1] - exact["1"][1]) < 8 * np.sqrt(0.25 * 10 / 20_000)


def test_bytes_per_key_count_the_slots_in_use():
    model = gs.ising_grid((50, 50), coupling=0.2)
    graph = gs.graphs.compile_graph(model)
    chain = Chain(model, graph, np.zeros(2500, np.int8), gs.HerdedGibbs(storage="hash"))
    chain.run(30)
    assert 16 / 0.85 <= denoise.bytes_per_key(chain) <= 24
