"""Couplings computed from positions: the same model as with stored ones, and draws of the exact law."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import load, stream
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.local import log_potential, log_weights
from gibbsite.kernels.minibatch.factors import draw_factor, drawn_rows, local_energies

RNG = np.random.default_rng(5)
CLOUD = np.concatenate([RNG.normal(size=(60, 2)), RNG.normal(6.0, 0.1, (20, 2)), np.zeros((3, 2))])


def model(gamma: float = 0.7, beta: float = 0.4, at: np.ndarray = CLOUD) -> gs.FactorGraph:
    return gs.models.distance_potts(at, 3, gamma, beta, RNG.normal(size=(len(at), 3)))


@pytest.mark.parametrize("beta", [0.4, -0.2])
def test_the_kinds_are_one_model(beta: float) -> None:
    asked = model(beta=beta)
    graphs = [gs.graphs.compile_graph(asked, kind) for kind in ("distance", "potts")]
    for _ in range(5):
        x = RNG.integers(0, 3, len(CLOUD)).astype(np.int16)
        totals = [log_potential(graph.arrays, x) + graph.log_offset for graph in graphs]
        assert totals == pytest.approx([asked.log_potential(x)] * 2, rel=1e-12)
        for i in (0, 30, 82):
            rows = [np.zeros(3) for _ in graphs]
            for graph, row in zip(graphs, rows, strict=True):
                log_weights(graph.arrays, x, np.uintp(i), row)
            assert np.allclose(*rows, atol=1e-12)


def test_large_models_are_not_stored() -> None:
    large = gs.models.distance_potts(np.arange(5000.0)[:, None], 2, 1.0, 0.5)
    graph = gs.graphs.compile_graph(large)
    assert graph.kind == "distance"
    assert graph.nbytes < 100 * 5000
    assert gs.graphs.color_sites(graph).tolist() == list(range(5000))
    assert gs.graphs.compile_graph(gs.models.distance_potts(CLOUD, 3, 1.0, 0.5)).kind == "potts"
    for refused in (
        lambda: large.group("couplings").scopes,
        lambda: markov_graph(graph),
        lambda: gs.solve_exact(large),
        lambda: gs.influence.bound_influence(large),
    ):
        with pytest.raises(gs.GibbsiteError) as caught:
            refused()
        assert "\n" not in str(caught.value)
    assert gs.mean_field(large, progress=False).settled  # reads couplings one by one


def test_evidence_becomes_fields() -> None:
    asked = model()
    codes = RNG.integers(0, 3, len(CLOUD))
    given = asked.observe({"3": int(codes[3]), "70": int(codes[70]), "82": int(codes[82])})
    free = [i for i in range(len(CLOUD)) if i not in (3, 70, 82)]
    assert given.log_potential(codes[free]) == pytest.approx(asked.log_potential(codes), rel=1e-12)
    assert gs.graphs.compile_graph(given, "distance").n_sites == 80
    assert pickle.loads(pickle.dumps(asked)).digest == asked.digest != asked.reweight(couplings=0.1).digest


@pytest.mark.parametrize("gamma", [0.0, 0.02, 0.7, 50.0])
def test_draws_have_the_exact_law(gamma: float) -> None:
    rows = drawn_rows(gs.graphs.compile_graph(model(gamma), "distance"))
    exact = 0.4 * np.exp(-gamma * ((CLOUD[:, None] - CLOUD) ** 2).sum(axis=-1))
    np.fill_diagonal(exact, 0.0)
    for i in range(len(CLOUD)):
        first, last = rows.start[i : i + 2]
        table = rows.table[first:last]
        stay = (table >> np.uint64(32)) / 2.0**32
        chance = stay + np.bincount((table & np.uint64(2**32 - 1)).astype(int), 1 - stay, last - first)
        found = np.zeros(len(CLOUD))
        for k, p in zip(range(first, last), chance / (last - first), strict=True):
            node = rows.node[k]
            points = rows.order[rows.first[node] : rows.last[node]]
            if len(points) == 1:
                found[points] += p
            elif p > 0.0:  # points stay with probability weight / bound
                found[points] += p / len(points) * exact[i, points] / 0.4 / rows.bound[k]
        assert np.abs(rows.rate[i] * found - exact[i]).max() < rows.rate[i] * 1e-9
        assert exact[i].sum() <= rows.local[i] * (1 + 1e-12)
        assert rows.local[i] <= rows.rate[i] * (1 + 1e-12)
    energies = local_energies(gs.graphs.compile_graph(model(gamma), "distance"))
    assert energies.largest <= 1.06 * exact.sum(axis=1).max() + 0.4 / 16  # a site may count itself
    rng = load(stream(1, 0))
    rng, _, view = draw_factor(rows, np.uintp(0), np.zeros(len(CLOUD), np.int8), rng)
    assert view in (0, -1)


@pytest.mark.parametrize(
    ("at", "gamma", "beta", "message"),
    [
        ([0.0, 1.0], 1.0, 1.0, "positions must have shape"),
        ([[0.0], [np.nan]], 1.0, 1.0, "position 1 is not finite"),
        ([[0.0], [1.0]], -1.0, 1.0, "gamma of .* must be a number from 0 up, got -1.0"),
        ([[0.0], [1.0]], np.nan, 1.0, "gamma of"),
        ([[0.0], [1.0]], 1.0, np.inf, "beta of .* must be one finite number"),
    ],
)
def test_bad_input(at: list[float], gamma: float, beta: float, message: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=message):
        gs.models.distance_potts(at, 2, gamma, beta)


def falling(d: np.ndarray) -> float:
    return 1.0 / (1.0 + d[0] ** 3)


def test_couplings_of_users_are_not_stored_either() -> None:
    given = gs.models.distance_potts(CLOUD, 3, beta=0.4, coupling=falling)
    exact = 0.4 / (1.0 + np.linalg.norm(CLOUD[:, None] - CLOUD, axis=-1) ** 3)
    np.fill_diagonal(exact, 0.0)
    energies = local_energies(gs.graphs.compile_graph(given, "distance"))
    sums = exact.sum(axis=1)
    assert (energies.local >= sums * (1 - 1e-12)).all()
    assert (energies.local <= 1.05 * (sums + 0.4)).all()  # a node may count the point itself
    x = RNG.integers(0, 3, len(CLOUD))
    same = x[:, None] == x
    assert given.log_potential(x.tolist()) == pytest.approx((exact * same).sum() / 2)
    stored = gs.potts(exact, 3)
    assert stored.log_potential(x.tolist()) == pytest.approx(given.log_potential(x.tolist()))
    # the same law: log-weights of every site from both graphs
    for i in range(5):
        found, known = np.zeros(3), np.zeros(3)
        log_weights(gs.graphs.compile_graph(given, "distance").arrays, x, i, found)
        log_weights(gs.graphs.compile_graph(stored).arrays, x, i, known)
        np.testing.assert_allclose(found - found[0], known - known[0], atol=1e-12)


@pytest.mark.parametrize(
    ("coupling", "message"),
    [
        (lambda d: d[0], "rises from"),
        (lambda d: -1.0, "not negative"),
        (lambda d: 1.0 / d[0], "inf at distance 0"),
        (3.0, "must be a function"),
        (lambda d: d.nonsense(), "cannot be compiled"),
    ],
)
def test_couplings_that_make_no_sense(coupling: Any, message: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=message):
        gs.models.distance_potts(CLOUD, 3, coupling=coupling)
