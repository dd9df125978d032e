"""A run that cannot be trusted must say so: zeros that single-site moves cannot cross, and their opposite.

The models of the first part have a support that falls into regions; a chain stays in the region where it
starts. Whatever the seed and the number of chains, such a run must not be called converged. The opposite is
tested as well: states that are really impossible are no reason for doubt.
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.inference.exact.transition import unit_matrix

SEEDS = range(30)
# what three chains show, two or four show as well
CHAINS = [1, 2, pytest.param(3, marks=pytest.mark.campaign), 4]


def table(shape: tuple[int, ...], allowed: Any) -> NDArray[np.float64]:
    """A table that is one where ``allowed`` says so."""
    return np.array([float(allowed(*x)) for x in np.ndindex(*shape)]).reshape(shape)


def two_points() -> gs.FactorGraph:
    return gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 3]])])


def two_blocks() -> gs.FactorGraph:
    """Both sites in {0, 1} or both in {2, 3}: lively inside, no way across."""
    weights = np.zeros((4, 4))
    weights[:2, :2] = [[1, 2], [3, 1]]
    weights[2:, 2:] = [[2, 1], [1, 1]]
    return gs.FactorGraph({"a": 4, "b": 4}, [(("a", "b"), weights)])


def copies() -> gs.FactorGraph:
    sites = [f"x{i}" for i in range(6)]
    links = [(pair, np.eye(2)) for pair in itertools.pairwise(sites)]
    return gs.FactorGraph(dict.fromkeys(sites, 2), [*links, ("x0", [1, 2])])


def parity() -> gs.FactorGraph:
    even = table((2, 2, 2), lambda *x: sum(x) % 2 == 0)
    return gs.FactorGraph({"x1": 2, "x2": 2, "x3": 2}, [(("x1", "x2", "x3"), even), ("x1", [1, 3])])


def permutation() -> gs.FactorGraph:
    """A 3 x 3 permutation matrix: one one in every row and column."""
    one = table((2, 2, 2), lambda *x: sum(x) == 1)
    rows = [tuple(f"r{i}c{j}" for j in range(3)) for i in range(3)]
    lines = [*rows, *zip(*rows, strict=True)]
    return gs.FactorGraph({site: 2 for row in rows for site in row}, [(line, one) for line in lines])


def one_hot() -> gs.FactorGraph:
    one = table((2, 2, 2, 2), lambda *x: sum(x) == 1)
    return gs.FactorGraph(dict.fromkeys("abcd", 2), [(tuple("abcd"), one), ("a", [1, 2])])


def rare_block() -> gs.FactorGraph:
    """Two blocks, of which the second has a thousandth of the weight."""
    weights = np.zeros((4, 4))
    weights[:2, :2] = 1.0
    weights[2:, 2:] = 0.001
    return gs.FactorGraph({"a": 4, "b": 4}, [(("a", "b"), weights)])


# Six corners of a cube in the order of a walk around it; neighbours in the list differ in one coordinate.
WALK = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 1, 0), (1, 0, 0)]


def twin_walks() -> gs.FactorGraph:
    """Two walkers around a cube, in step or opposite to each other.

    In step the second is zero or one corner ahead of the first, opposite it is three or four. A step of one
    walker never leads from one way to the other, and under both ways every site is one half of the time 1.
    """
    weights = np.zeros((2,) * 6)
    for corner, ahead in itertools.product(range(6), (0, 1, 3, 4)):
        weights[WALK[corner] + WALK[(corner + ahead) % 6]] = 1.0
    return gs.FactorGraph(dict.fromkeys("abcdef", 2), [(tuple("abcdef"), weights)])


REGIONS = {
    "two points": (two_points, 2),
    "two blocks": (two_blocks, 2),
    "copies": (copies, 2),
    "parity": (parity, 4),
    "permutation": (permutation, 6),
    "one-hot": (one_hot, 4),
    "rare block": (rare_block, 2),
    "twin walks": (twin_walks, 2),
}
every_region = pytest.mark.parametrize("name", REGIONS)


def run(model: gs.FactorGraph, *args: Any, **kwargs: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, *args, **{"progress": False, "threads": 1, **kwargs})


def count_regions(model: gs.FactorGraph) -> int:
    """Number of parts of the support that single-site moves do not connect."""
    from scipy.sparse.csgraph import connected_components

    exact, graph = gs.exact.enumerate(model), gs.graphs.compile_graph(model, "table")
    support = exact.probabilities > 0
    moves = sum(unit_matrix(exact, graph, gs.Gibbs(), i) for i in range(model.n_sites))
    return int(connected_components(np.asarray(moves)[np.ix_(support, support)] > 0)[0])


@every_region
def test_the_models_are_what_they_claim(name: str) -> None:
    build, regions = REGIONS[name]
    assert count_regions(build()) == regions


def test_the_twin_walks_have_equal_marginals() -> None:
    exact = gs.exact.enumerate(twin_walks())
    for ahead in (0, 3):
        starts = [WALK[c] + WALK[(c + ahead + more) % 6] for c in range(6) for more in (0, 1)]
        np.testing.assert_allclose(np.mean(starts, axis=0), 0.5)
    assert (exact.probabilities > 0).sum() == 24


@every_region
@pytest.mark.parametrize("chains", CHAINS)
def test_regions_are_never_called_converged(name: str, chains: int) -> None:
    model = REGIONS[name][0]()
    fooled = [seed for seed in SEEDS if run(model, sweeps=2000, chains=chains, rng=seed).diagnostics.converged]
    assert fooled == []


@every_region
@pytest.mark.parametrize("rule", ["metropolised", "suwa-todo"])
def test_other_rules_are_not_fooled(name: str, rule: str) -> None:
    model = REGIONS[name][0]()
    fooled = [
        (chains, seed)
        for chains in (1, 3)
        for seed in range(5)
        if run(model, gs.Gibbs(rule), sweeps=2000, chains=chains, rng=seed).diagnostics.converged
    ]
    assert fooled == []


@pytest.mark.parametrize("name", ["two points", "two blocks", "parity", "twin walks"])
@pytest.mark.parametrize(
    "record",
    [gs.Marginals(rao_blackwell=False), "draws", "energy", "best", "joint", ["draws", "energy"]],
    ids=["counts", "draws", "energy", "best", "joint", "draws-energy"],
)
def test_what_is_recorded_does_not_matter(name: str, record: Any) -> None:
    model = REGIONS[name][0]()
    record = gs.recorders.Joint([model.sites[:2]]) if record == "joint" else record
    fooled = [
        (chains, seed)
        for chains in (1, 3)
        for seed in range(5)
        if run(model, sweeps=2000, chains=chains, rng=seed, record=record).diagnostics.converged
    ]
    assert fooled == []


def test_a_recorded_part_does_not_hide_the_frozen_rest() -> None:
    # c mixes well, and only c is looked at; a and b are stuck, and c depends on them
    model = gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b"), [[1, 0], [0, 1]]), (("b", "c"), [[4, 1], [1, 4]])])
    for record in (gs.Draws(["c"]), gs.recorders.Joint([("c",)])):
        fooled = [
            (chains, seed)
            for chains in (1, 2)
            for seed in range(10)
            if run(model, sweeps=1000, chains=chains, rng=seed, record=record).diagnostics.converged
        ]
        assert fooled == []


@every_region
def test_equal_starts_are_not_agreement(name: str) -> None:
    # all chains begin at one state of the support, so they agree perfectly, and are wrong
    model = REGIONS[name][0]()
    exact = gs.exact.enumerate(model)
    for number in np.flatnonzero(exact.probabilities)[:6]:
        result = run(model, sweeps=2000, rng=1, start=exact.states[number])
        assert not result.diagnostics.converged


def test_a_region_in_one_corner_of_a_large_model() -> None:
    # three hundred sites mix well, two cannot move
    n = 300
    smooth = [((str(i), str(i + 1)), [[2, 1], [1, 2]]) for i in range(n - 1)]
    model = gs.FactorGraph(
        dict.fromkeys([*map(str, range(n)), "left", "right"], 2), [*smooth, (("left", "right"), np.eye(2))]
    )
    for chains, seed in itertools.product((1, 2), range(2)):
        result = run(model, sweeps=2000, chains=chains, rng=seed)
        assert not result.diagnostics.converged
        touched = {*result.diagnostics.frozen, *result.diagnostics.rhat_at.split()[:1]}
        assert touched & {"left", "right"}


# ---- messages


@every_region
@pytest.mark.parametrize("chains", [1, 4])
def test_the_warning_is_given(name: str, chains: int) -> None:
    with pytest.warns(gs.ConvergenceWarning, match="has not converged"):
        gs.sample(REGIONS[name][0](), sweeps=2000, chains=chains, rng=0, progress=False)


def test_the_warning_points_at_the_caller() -> None:
    with pytest.warns(gs.ConvergenceWarning) as caught:
        gs.sample(two_points(), sweeps=500, chains=1, rng=0, progress=False)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_good_run_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    gs.sample(gs.ising_grid((2, 2), coupling=0.1), sweeps=2000, rng=0, progress=False)
    assert list(recwarn) == []


def test_frozen_sites_and_unreached_states_are_named() -> None:
    start = dict.fromkeys([f"x{i}" for i in range(6)], 0)
    result = run(copies(), sweeps=500, rng=0, start=start)
    assert result.diagnostics.frozen == tuple(start)
    assert {(doubt.site, doubt.state) for doubt in result.diagnostics.unreached} == {(x, 1) for x in start}
    assert all(doubt.proved for doubt in result.diagnostics.unreached)
    assert "x0 = 1" in result.diagnostics.reasons[0]
    assert "NOT CONVERGED" in result.summary()


def test_chains_in_different_regions_disagree() -> None:
    result = run(two_blocks(), sweeps=2000, chains=2, rng=0, start=[[0, 0], [3, 3]])
    assert not result.diagnostics.converged
    assert result.diagnostics.rhat_max > 1.1
    assert result.diagnostics.disagreement > 0.2


def test_a_short_run_is_not_converged() -> None:
    result = run(gs.ising_grid((3, 3), coupling=0.3), sweeps=20, chains=1, rng=0)
    assert not result.diagnostics.converged
    assert "effective draws" in " ".join(result.diagnostics.reasons)


def test_a_slow_model_without_zeros_is_not_converged() -> None:
    # two wells so deep that no chain crosses in 1000 sweeps: with four chains some seed may find them all in
    # one well, so only runs whose starts differ are judged
    model = gs.ising_grid((6, 6), coupling=1.5)
    up, down = np.ones(36, int), np.zeros(36, int)
    result = run(model, sweeps=1000, chains=2, rng=0, start=np.stack([up, down]))
    assert not result.diagnostics.converged


# ---- the opposite: nothing is wrong


def network() -> gs.FactorGraph:
    """Noise-free children: ``wet`` copies whether the weather is rain, ``report`` says so with errors."""
    return gs.FactorGraph(
        {"weather": ["sun", "cloud", "rain"], "wet": ["no", "yes"], "report": 2, "picnic": 2},
        [
            ("weather", [0.3, 0.3, 0.4]),
            (("weather", "wet"), [[1, 0], [1, 0], [0, 1]]),
            (("wet", "report"), [[0.9, 0.1], [0.2, 0.8]]),
            (("weather", "picnic"), [[0.5, 0.5], [0.2, 0.8], [1, 0]]),
        ],
        directed=True,
    )


def adder() -> gs.FactorGraph:
    """Three switches and their sum, noise-free, with the sum observed to be small."""
    total = table((2, 2, 2, 4), lambda a, b, c, s: a + b + c == s)
    model = gs.FactorGraph(
        {"a": 2, "b": 2, "c": 2, "sum": 4, "low": 2},
        [
            ("a", [0.5, 0.5]),
            ("b", [0.4, 0.6]),
            ("c", [1.0, 0.0]),
            (("a", "b", "c", "sum"), total),
            (("sum", "low"), [[0, 1], [0, 1], [0, 1], [1, 0]]),
        ],
        directed=True,
    )
    return model.observe({"low": 1, "a": 0, "b": 0})


def pigeons() -> gs.FactorGraph:
    """``alarm`` would need three sites of two states that all differ; no one factor forbids it."""
    gate = table((2, 2, 2), lambda alarm, x, y: not (alarm and x == y))
    pairs = list(itertools.combinations("xyz", 2))
    return gs.FactorGraph(
        {"alarm": 2, "x": 2, "y": 2, "z": 2},
        [*((("alarm", *pair), gate) for pair in pairs), (("x", "y"), [[1, 2], [2, 1]])],
    )


def mutes() -> gs.FactorGraph:
    """States of weight zero of their own."""
    return gs.FactorGraph({"a": 3, "b": 3}, [("a", [1, 0, 2]), (("a", "b"), 1.0 + np.eye(3)), ("b", [1, 1, 0])])


FINE = {
    "rain excluded": lambda: network().observe({"picnic": 1, "report": 1}),
    "child observed": lambda: network().observe({"wet": "no"}),
    "sum pinned": adder,
    "pigeons": pigeons,
    "mutes": mutes,
}


@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("chains", CHAINS)
def test_impossible_states_are_no_reason_for_doubt(name: str, chains: int) -> None:
    model = FINE[name]()
    exact = gs.exact.enumerate(model)
    assert (exact.marginals.cells == 0).any(), "the model should have states that cannot occur"
    assert count_regions(model) == 1
    for seed in range(6):
        result = run(model, sweeps=6000, chains=chains, rng=seed)
        assert result.diagnostics.unreached == ()
        assert result.diagnostics.converged, (seed, result.diagnostics.reasons)
        np.testing.assert_array_equal(result.marginals.cells == 0, exact.marginals.cells == 0)


def test_counted_marginals_do_not_doubt_impossible_states() -> None:
    for build in FINE.values():
        result = run(build(), sweeps=6000, rng=3, record=gs.Marginals(rao_blackwell=False))
        assert result.diagnostics.converged, result.diagnostics.reasons


def test_zeros_that_can_be_walked_around_are_no_reason_for_doubt() -> None:
    stairs = table((4, 4), lambda a, b: b - a in (0, 1))
    model = gs.FactorGraph({"a": 4, "b": 4}, [(("a", "b"), stairs)])
    assert count_regions(model) == 1
    for seed, chains in itertools.product(range(5), range(1, 5)):
        result = run(model, sweeps=20_000, chains=chains, rng=seed)
        assert result.diagnostics.converged, (seed, chains, result.diagnostics.reasons)
