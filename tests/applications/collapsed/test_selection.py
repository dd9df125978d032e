"""Variable selection: probabilities against textbook formulas, chains against exact sums."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.collapsed import evidence
from gibbsite.applications.collapsed.selection import select_variables

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 5)) @ (np.eye(5) + 0.6 * RNG.normal(size=(5, 5)))
Y = X @ [1.0, 0.0, -0.5, 0.0, 0.2] + RNG.normal(size=40) + 3.0


def log_evidence(x: Any, y: Any, subset: list[int], slab: float) -> float:
    """The same by the covariance of y: a multivariate t density with y ~ s (N(0, I) + X b), up to a constant."""
    n = len(y)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    center = np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, : n - 1]  # contrasts, without the intercept
    z, parts = center.T @ y, center.T @ x[:, subset]
    cover = np.eye(n - 1) + slab**2 * parts @ parts.T
    return float(-0.5 * np.linalg.slogdet(cover)[1] - (n - 1) / 2 * np.log(z @ np.linalg.solve(cover, z)))


def law(x: Any, y: Any, slab: float, prior: Any) -> dict[tuple[int, ...], float]:
    columns = x.shape[1]
    logs = {}
    for state in product((0, 1), repeat=columns):
        odds = np.sum(np.log(np.where(state, prior, 1.0 - np.asarray(prior))))
        logs[state] = log_evidence(x, y, list(np.flatnonzero(state)), slab) + odds
    top = np.logaddexp.reduce(list(logs.values()))
    return {state: float(np.exp(value - top)) for state, value in logs.items()}


@pytest.mark.parametrize(("slab", "prior"), [(1.0, 0.5), (0.3, 0.2), (4.0, [0.1, 0.5, 0.9, 0.3, 0.6])])
def test_the_exact_sum_is_that_of_the_textbook(slab: float, prior: Any) -> None:
    found = select_variables(X, Y, slab=slab, inclusion=prior)
    truth = law(X, Y, slab, np.broadcast_to(prior, 5))
    expected = sum(p * np.array(state) for state, p in truth.items())
    np.testing.assert_allclose(found.inclusion, expected, atol=1e-10)
    assert (found.method, found.diagnostics.converged, found.mcse.tolist()) == ("exact", True, [0.0] * 5)
    best = max(truth, key=lambda state: truth[state])
    assert found.models[0] == (tuple(str(k) for k in np.flatnonzero(best)), pytest.approx(truth[best]))
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    mean = np.zeros(5)
    for state, p in truth.items():
        part = list(np.flatnonzero(state))
        mean[part] += p * np.linalg.solve(
            scaled[:, part].T @ scaled[:, part] + np.eye(len(part)) / slab**2, scaled[:, part].T @ (Y - Y.mean())
        )
    np.testing.assert_allclose(found.coefficients, mean / X.std(axis=0), atol=1e-10)
    np.testing.assert_allclose(found.predict(X).mean(), Y.mean())


def regression(slab: float = 1.0) -> evidence.Regression:
    scaled, centred = (X - X.mean(axis=0)) / X.std(axis=0), Y - Y.mean()
    return evidence.Regression(
        scaled.T @ scaled, scaled.T @ centred, float(centred @ centred), 19.5, slab**2, np.zeros(5)
    )


def test_conditionals_are_those_of_the_law() -> None:
    data, work, truth = regression(), evidence.make_work(5), law(X, Y, 1.0, np.full(5, 0.5))
    for state in truth:
        for j in range(5):
            up, down = (tuple(value if k == j else s for k, s in enumerate(state)) for value in (1, 0))
            odds = evidence.log_odds_of(data, np.array(state, np.uint8), j, work)
            assert odds == pytest.approx(np.log(truth[up] / truth[down]), abs=1e-9)


def test_a_sweep_keeps_the_law() -> None:
    """Exact draws, then one sweep; chi-square with 31 degrees of freedom, false alarms below 1e-6."""
    data, work, truth = regression(), evidence.make_work(5), law(X, Y, 1.0, np.full(5, 0.5))
    rng = np.random.default_rng(7)
    states, p = np.array(list(truth), np.uint8), np.array(list(truth.values()))
    n = 20_000
    counts = np.zeros(len(p))
    code = {state: k for k, state in enumerate(truth)}
    for number in rng.choice(len(p), n, p=p):
        state, none, seen = states[number].copy(), np.zeros((0, 5)), np.zeros((1, 5), np.uint8)
        evidence.run_chain(
            data, state, evidence.GIBBS, rng.random((1, 5)), np.zeros((5, 1)), 1, work, none, np.zeros(5), seen
        )
        counts[code[tuple(state.tolist())]] += 1
    assert ((counts - n * p) ** 2 / (n * p)).sum() < 90.0


def test_gibbs_agrees_within_its_errors() -> None:
    exact = select_variables(X, Y)
    found = select_variables(X, Y, method="gibbs", sweeps=8000, rng=3)
    assert found.diagnostics.converged
    assert (np.abs(found.inclusion - exact.inclusion) < 6.0 * found.mcse + 1e-6).all()
    assert (found.mcse < 0.01).all()
    np.testing.assert_allclose(found.coefficients, exact.coefficients, atol=0.03)


def test_herded_errors_fall_like_one_over_the_sweeps() -> None:
    exact = select_variables(X, Y)
    for sweeps, bound in ((2000, 4e-3), (200_000, 4e-5)):
        found = select_variables(X, Y, method="herded", sweeps=sweeps, chains=1)
        assert np.abs(found.inclusion - exact.inclusion).max() < bound
    assert found.diagnostics.converged is None
    assert np.isnan(found.mcse).all()


def test_many_columns_are_sampled() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(120, 40))
    y = 1.5 * x[:, 3] - x[:, 17] + 0.8 * x[:, 30] + rng.normal(size=120)
    gibbs = select_variables(x, y, inclusion=0.1, sweeps=4000)
    herded = select_variables(x, y, inclusion=0.1, sweeps=4000, method="herded")
    assert gibbs.method == "gibbs"
    for found in (gibbs, herded):
        assert set(np.flatnonzero(found.inclusion > 0.9)) >= {3, 17, 30}
        assert found.models[0][0][:1] == ("3",)
    assert np.abs(gibbs.inclusion - herded.inclusion).max() < 0.05


def test_short_runs_are_not_called_converged() -> None:
    with pytest.warns(gs.ConvergenceWarning, match="effective sample size"):
        found = select_variables(X, Y, method="gibbs", sweeps=50)
    assert found.diagnostics.converged is False


def test_names_and_texts() -> None:
    pandas = pytest.importorskip("pandas")
    found = select_variables(pandas.DataFrame(X, columns=list("abcde")), pandas.Series(Y))
    assert found.names == tuple("abcde")
    assert found.summary().splitlines()[1].startswith("a")
    assert "exact" in repr(found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": X[:3], "y": Y[:3]}, "at least four rows"),
        ({"y": Y[:-1]}, "a number for each row"),
        ({"X": np.column_stack([X, np.ones(40)])}, "column '5' has the same value"),
        ({"X": np.where(X > 3, np.nan, X)}, "finite"),
        ({"y": np.ones(40)}, "nothing to explain"),
        ({"inclusion": 1.0}, "between 0 and 1"),
        ({"inclusion": [0.5, 0.5]}, "5 of them"),
        ({"slab": 0.0}, "slab"),
        ({"method": "best"}, "auto, exact"),
        ({"names": ["a"]}, "5 texts"),
        ({"sweeps": 3}, "sweeps"),
        ({"X": np.random.default_rng(1).normal(size=(40, 21)), "method": "exact"}, "at most 20 columns"),
    ],
)
def test_mistakes_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(gs.errors.GibbsiteError, match=message):
        select_variables(**{"X": X, "y": Y, **given})
