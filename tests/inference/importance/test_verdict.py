"""Weights are judged right: tails as ArviZ sees them, errors calibrated, no verdict on what was missed."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.importance.estimate import estimate, pareto_k
from gibbsite.inference.importance.tally import GROUPS, Tally, add_block, make_tally
from gibbsite.inference.importance.verdict import judge
from tests.campaigns.weights import pulls, try_once

pytestmark = pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")


def tallied(x: Any, logs: Any, cards: list[int]) -> Tally:
    """Add draws to a tally, dealt out to the groups."""
    tally = make_tally(np.array(cards))
    for group in range(GROUPS):
        part = np.ascontiguousarray(x[:, group::GROUPS].astype(np.int32))
        add_block(tally, group, part, logs[group::GROUPS].copy(), np.zeros(part.shape[1]))
    return tally


def test_tallies_are_sums_of_weights() -> None:
    rng = np.random.default_rng(3)
    x = np.stack([rng.integers(0, 2, 4000), rng.integers(0, 3, 4000)])
    logs = rng.normal(size=4000) * 3.0 - 500.0
    logs[rng.random(4000) < 0.1] = -np.inf
    found = estimate(tallied(x, logs, [2, 3]))
    w = np.exp(logs - logs.max())
    p = w / w.sum()
    for cell, (site, state) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]):
        here = x[site] == state
        assert found.cells[cell] == pytest.approx(p[here].sum(), rel=1e-12)
        typical = [(p[part] ** 2).sum() / p[part].sum() for part in (here, ~here, here | ~here)]
        variance = (p**2 * (here - p[here].sum()) ** 2).sum() + 4.0 * max(typical) ** 2
        assert found.errors[cell] == pytest.approx(math.sqrt(variance), rel=1e-9)
    assert found.log_z == pytest.approx(logs.max() + math.log(w.mean()), rel=1e-12)
    assert found.effective == pytest.approx(1.0 / (p**2).sum(), rel=1e-12)
    assert (found.n_draws, found.positive) == (4000, int((w > 0).sum()))
    assert found.largest == pytest.approx(p.max(), rel=1e-12)


@pytest.mark.parametrize("shape", [0.1, 0.4, 0.6, 0.9])
def test_tails_are_as_arviz_sees_them(shape: float) -> None:
    arviz = pytest.importorskip("arviz")
    logs = np.random.default_rng(1).exponential(size=8000) * shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, k = arviz.psislw(logs)
    assert pareto_k(logs, logs.size) == pytest.approx(float(k), abs=1e-6)


def test_tails_of_equal_weights_are_known() -> None:
    assert pareto_k(np.zeros(1000), 1000) == -math.inf
    assert pareto_k(np.append(np.zeros(1000), 0.1), 1001) == 0.5
    assert pareto_k(np.zeros(3), 3) == math.inf
    assert pareto_k(np.log(np.repeat([1.0, 2.0], [950, 50])), 1000) == -math.inf


def test_a_large_effective_size_alone_is_not_enough() -> None:
    """What no draw has met is not in the weights: they all look alike."""
    x = np.random.default_rng(1).integers(0, 2, (1, 8192))
    tally = tallied(x, np.zeros(8192), [2])
    for bound in (math.inf, 10.0):
        found, verdict = judge([tally], [bound], 0.05)
        assert found.effective == 8192
        assert not verdict.converged
        assert len(verdict.reasons) == 1
    assert judge([tally], [0.5], 0.05)[1].converged


def test_a_cause_that_is_never_drawn_is_not_overlooked() -> None:
    """The evidence has one explanation, which draws from the prior do not meet."""
    model = gs.FactorGraph(
        {"cause": 2, "other": 2, "seen": 2},
        [
            ("cause", [1 - 1e-8, 1e-8]),
            ("other", [0.5, 0.5]),
            (("cause", "other", "seen"), [[[1 - 1e-11, 1e-11], [1 - 2e-11, 2e-11]], [[0.5, 0.5]] * 2]),
        ],
        directed=True,
    ).observe({"seen": 1})
    blind = gs.sample_weighted(model, gs.importance.Forward("prior"), draws=100_000, rng=1, progress=False)
    assert blind.diagnostics.effective > 80_000 and blind.marginals["cause"][1] == 0.0
    assert not blind.converged and "states that were not drawn may hold all" in blind.reasons[0]
    found = gs.sample_weighted(model, draws=100_000, rng=1, progress=False)
    assert found.converged and found.marginals["cause"][1] > 0.99


def test_groups_and_proposals_that_disagree_are_noticed() -> None:
    rng = np.random.default_rng(8)
    x = (rng.random((1, 16384)) < 0.3).astype(np.int32)
    good = tallied(x, np.zeros(16384), [2])
    assert judge([good], [0.1], 0.05)[1].converged
    odd = x.copy()
    odd[0, 3::GROUPS] = 1  # one group says something else
    assert "groups of draws disagree" in " ".join(judge([tallied(odd, np.zeros(16384), [2])], [0.1], 0.05)[1].reasons)
    other = tallied((rng.random((1, 16384)) < 0.4).astype(np.int32), np.zeros(16384), [2])
    assert "proposals disagree" in " ".join(judge([good, other], [0.1, 0.1], 0.05)[1].reasons)


def test_no_verdict_is_false_and_errors_are_calibrated() -> None:
    """Thirty random networks; the campaign has 2,000. Pulls beyond six have probability 1e-9 each."""
    done = [try_once(number) for number in range(30)]
    assert not [one["number"] for one in done if one["false"]]
    assert sum(one["converged"] for one in done) >= 15
    assert max(abs(pull) for one in done for pull in one["pulls"]) < 6.0


def test_nearly_equal_weights_have_no_heavy_tail() -> None:
    """Differences of all scales, of which none is large against the weights: fits alone say k = 4."""
    rng = np.random.default_rng(1)
    logs = np.zeros(87_296)
    logs[:400] = np.log1p(np.minimum(np.exp(rng.normal(-16.0, 5.0, 400)), 1.0))
    weights = np.exp(logs)
    assert weights.sum() ** 2 / (weights**2).sum() > 87_000
    assert pareto_k(logs, logs.size) < 0.3
    # laws of a known shape keep it: standard errors are about (1 + k) / sqrt(950)
    for shape in (0.3, 0.7, 1.2):
        heavy = shape * rng.exponential(size=100_000)
        assert abs(pareto_k(heavy, heavy.size) - shape) < 6 * (1 + shape) / np.sqrt(950)


@pytest.mark.campaign
def test_pulls_of_500_networks_are_normal() -> None:
    """Marginals and log Z: the mean square of pulls is near one, and few are beyond three."""
    done = [try_once(number) for number in range(500)]
    for kind in ("pulls", "z_pulls"):
        seen = pulls(done, kind)
        assert 0.8 < np.mean(seen**2) < 1.1
        assert np.mean(np.abs(seen) > 3.0) < 0.006
    assert not [one["number"] for one in done if one["false"]]
