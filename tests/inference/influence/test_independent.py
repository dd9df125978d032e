"""Short runs: bounds of single sites, intervals that cover, and nothing that depends on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import gibbsite as gs
from gibbsite.inference.influence.certificate import make_decay
from tests.inference.influence.random_models import random_model

SCANS = [gs.Systematic(), gs.scans.FixedOrder([1, 0, 1]), gs.RandomScan(), gs.scans.Shuffled(), gs.Chromatic()]


@pytest.mark.parametrize("scan", SCANS, ids=lambda scan: type(scan).__name__)
@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_sites_are_those_of_certificates(scan: gs.scans.Scan, seed: int) -> None:
    model = random_model("ising", np.random.default_rng(seed))
    influence = gs.influence.bound_influence(model)
    for steps in (0, 1, 5, 40):
        found = make_decay(model, scan, np.ones(model.n_sites), influence).bounds(steps)
        each = [gs.certify(model, scan=scan, steps=steps, target=i).variation for i in range(model.n_sites)]
        np.testing.assert_allclose(found, each, rtol=1e-12)


MODELS = {
    "grid": (gs.ising_grid((3, 3), coupling=0.2, field=0.3), ["4", "0"]),
    "rare": (gs.ising_grid((3, 3), coupling=0.1, field=-2.0), ["4"]),
    "potts": (gs.potts_grid((2, 3), 3, 0.3, field=[0.0, 0.5, -1.0]), ["1"]),
    "tables": (
        gs.FactorGraph(
            {"a": ["no", "yes"], "b": 3, "c": 2},
            [(("a", "b"), [[1, 2, 1.5], [2, 1, 1]]), (("a", "b", "c"), np.linspace(1, 1.5, 12))],
        ),
        ["a", "b"],
    ),
}


TIMES = 400


def shares_covered(name: str, **how: Any) -> list[int]:
    """Return how often of ``TIMES`` times the exact probability of each state is in its interval."""
    model, target = MODELS[name]
    exact = gs.solve_exact(model).marginals
    hits: dict[tuple[str, Any], int] = {}
    how = {"influence": gs.influence.bound_influence(model), **how}
    for seed in range(TIMES):
        found = gs.influence.short_runs(model, target=target, rng=seed, threads=1, **how)
        for site in target:
            for label, p in exact[site].items():
                inside = found.low[site][label] <= p <= found.high[site][label]
                hits[site, label] = hits.get((site, label), 0) + inside
    return list(hits.values())


@pytest.mark.parametrize("accuracy", [0.01, 1e-6])
@pytest.mark.parametrize("name", MODELS)
def test_intervals_cover_at_least_as_often_as_they_say(name: str, accuracy: float) -> None:
    # With 0.01 the bias helps, with 1e-6 sampling errors are all there is. The inequality promises 380 of
    # 400 in the mean; at about three standard errors each interval covers with probability 0.99 or more, so
    # that fewer do with probability below 2e-9, for each of 28 counts.
    model, target = MODELS[name]
    scan = gs.dogs(model, target=target, accuracy=accuracy)
    assert min(shares_covered(name, scan=scan, runs=400)) >= 0.95 * TIMES


@pytest.mark.parametrize("name", ["grid", "potts", "tables"])
def test_intervals_of_student_cover_where_laws_are_not_skew(name: str) -> None:
    # The bound on the bias is below 1e-6. Twelve counts in all, false alarms below 1e-6.
    fewest = binom.ppf(1e-6 / 12, TIMES, 0.95)
    model, target = MODELS[name]
    scan = gs.dogs(model, target=target, accuracy=1e-6)
    assert min(shares_covered(name, scan=scan, runs=400, interval="student")) >= fewest


@pytest.mark.parametrize("start", [None, "given"])
def test_numbers_depend_on_the_seed_alone(start: Any) -> None:
    model = gs.ising_grid((20, 20), coupling=0.2, field=0.1)
    x = None if start is None else np.ones(400, np.int8)
    scan = gs.dogs(model, target=["210", "3"], accuracy=0.05)
    one, two = (gs.influence.short_runs(model, scan=scan, runs=9000, rng=3, start=x, threads=t) for t in (1, 2))
    other = gs.influence.short_runs(model, scan=scan, runs=9000, rng=4, start=x)
    assert (one.marginals.cells == two.marginals.cells).all()
    assert (one.marginals.cells != other.marginals.cells).all()
    assert list(one.marginals) == ["3", "210"]
    assert max(one.bias.values()) < scan.variation <= 0.05


def test_the_guarantee_of_an_optimised_scan_is_taken_over() -> None:
    model = gs.ising_grid((20, 20), coupling=0.2)
    scan = gs.dogs(model, target="7", accuracy=0.05)
    assert gs.influence.short_runs(model, scan=scan, runs=10, rng=1).bias == {"7": scan.variation}
    weighted = gs.dogs(model, weights={"7": 3.0}, accuracy=0.05)
    found = gs.influence.short_runs(model, scan=weighted, runs=10, rng=1)
    again = gs.influence.short_runs(model, scan=list(weighted.order), target="7", runs=10, rng=1)
    assert found.bias["7"] == pytest.approx(again.bias["7"], rel=1e-12)
    warmer = model.reweight(couplings=0.3)
    assert gs.influence.short_runs(warmer, scan=scan, runs=10, rng=1).bias["7"] > scan.variation


def test_sites_that_are_never_visited_are_not_known() -> None:
    model = gs.ising_grid((3, 3), coupling=0.2)
    found = gs.influence.short_runs(model, scan=[0, 1], target=["8"], start=np.ones(9, np.int8), runs=10, rng=1)
    assert found.marginals["8"] == {-1: 0.0, 1: 1.0}
    assert found.bias == {"8": 1.0}
    assert (found.low["8"], found.high["8"]) == ({-1: 0.0, 1: 0.0}, {-1: 1.0, 1: 1.0})


def test_models_with_zeros_start_in_their_support() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    found = gs.influence.short_runs(model, scan=gs.Systematic(), sweeps=3, runs=100, rng=1)
    assert found.low["a"] == {0: 0.0, 1: 0.0}  # influence 1: nothing is certified
    assert found.marginals["a"] == found.marginals["b"]


BAD = [
    ({"runs": 1}, "runs must be a whole number of at least 2"),
    ({"confidence": 1.0}, "confidence must be a number between 0 and 1"),
    ({"confidence": float("nan")}, "confidence must be a number between 0 and 1"),
    ({"interval": "normal"}, "interval 'normal' is unknown; choose one of bernstein, student"),
    ({"scan": gs.Systematic()}, "Give a length"),
    ({"scan": gs.influence.BlockOrder([[0, 1]])}, "Give a length"),
    ({"scan": gs.influence.BlockOrder([[0, 11]], [0])}, "11"),
    ({"scan": "dogs"}, "scan must be a scan"),
    ({"target": "x"}, "x"),
    ({"steps": -1}, "steps must be a whole number"),
    ({"start": [0, 1]}, "A start needs integer state codes"),
    ({"rng": -1}, "rng must not be negative"),
]


@pytest.mark.parametrize(("how", "message"), BAD)
def test_bad_input_is_refused_in_a_line(how: dict[str, Any], message: str) -> None:
    model = gs.ising_grid((3, 3), coupling=0.2)
    with pytest.raises(gs.GibbsiteError, match=message) as raised:
        gs.influence.short_runs(model, **{"scan": [0, 1, 2], **how})
    assert "\n" not in str(raised.value)
