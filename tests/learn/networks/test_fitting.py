"""Tables of real networks are recovered within their errors, from complete and from missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError, ConvergenceWarning, ModelError
from gibbsite.learn import Cases, TableFit, fit_tables
from gibbsite.learn.networks.layout import row_of_entries


def draw(model: gs.FactorGraph, rows: int, seed: int) -> Cases:
    """Draw cases from a network."""
    codes = gs.solve_exact(model, task="PR").draw(rows, np.random.default_rng(seed))
    states = tuple(tuple(model.labels(k)) for k in range(model.n_sites))
    return Cases(tuple(model.sites), states, np.ascontiguousarray(codes.T.astype(np.int16)), np.ones(rows))


def true_tables(model: gs.FactorGraph, fit: TableFit) -> Floats:
    """Return the tables of a network in the order of a fit."""
    found = {}
    for group in model.groups:
        tables = np.exp(group.log_tables(model.cards))
        for k, scope in enumerate(group.scopes.tolist()):
            found[model.sites[scope[-1]]] = tables[k if len(tables) > 1 else 0].ravel()
    return np.concatenate([found[site] for site in fit.sites])


def deviations(model: gs.FactorGraph, fit: TableFit, least: float) -> Floats:
    """Return deviations from the true tables in standard deviations, where the normal approximation is good."""
    true = true_tables(model, fit)
    rows = row_of_entries(fit.layout)
    total = np.bincount(rows, fit.counts)[rows]
    sure = total * true * (1.0 - true) > least
    exact = np.sqrt(true[sure] * (1.0 - true[sure]) / total[sure])
    found: Floats = (fit.tables[sure] - true[sure]) / exact
    return found


@pytest.mark.parametrize("name", ["alarm", "asia"])
@pytest.mark.parametrize("prior", [None, "bdeu", "k2"])
def test_tables_are_recovered_within_their_errors(name: str, prior: str | None) -> None:
    """Standardised deviations have variance one; five to six standard deviations are false alarms below 1e-6."""
    model = gs.example(name)
    fit = fit_tables(draw(model, 20_000, 1), model, prior=prior)
    z = deviations(model, fit, 20.0)
    assert z.size > 15
    assert np.abs(z).max() < 6.5
    assert np.square(z).mean() == pytest.approx(1.0, abs=6.0 * np.sqrt(2.0 / z.size) * np.sqrt(2.0))
    assert fit.model.n_sites == model.n_sites
    assert fit.network.parents(fit.sites[0]) == fit.parents[fit.sites[0]]


def test_errors_of_maximum_likelihood_and_of_the_posterior() -> None:
    data = {"a": [0] * 30 + [1] * 70}
    plain = fit_tables(data, {"a": ()})
    assert plain.table("a").tolist() == [0.3, 0.7]
    assert plain.sd("a")[0] == pytest.approx(np.sqrt(0.3 * 0.7 / 100))
    assert plain.log_likelihood == pytest.approx(30 * np.log(0.3) + 70 * np.log(0.7))
    assert plain.bic == pytest.approx(plain.log_likelihood - 0.5 * np.log(100))
    own = fit_tables(data, {"a": ()}, prior={"a": [2, 3]})
    assert own.table("a").tolist() == pytest.approx([32 / 105, 73 / 105])
    draws = own.draws("a", 40_000, 1)[:, 0]
    assert own.sd("a")[0] == pytest.approx(draws.std(), rel=0.03)
    assert draws.mean() == pytest.approx(32 / 105, abs=6 * draws.std() / 200)


def test_weights_count_as_repeated_cases() -> None:
    once = {"a": [0, 0, 1], "b": [0, 1, 1], "n": [3, 1, 2]}
    many = {"a": [0, 0, 0, 0, 1, 1], "b": [0, 0, 0, 1, 1, 1]}
    for method in ("counts", "em", "gibbs"):
        how: dict[str, Any] = {"prior": "k2", "method": method, "sweeps": 500, "rng": 1, "progress": False}
        one = fit_tables(once, [("a", "b")], weights="n", **how)
        other = fit_tables(many, [("a", "b")], **how)
        np.testing.assert_allclose(one.table("b"), other.table("b"), atol=1e-12)


def test_missing_cells_by_em_and_by_gibbs() -> None:
    """Both agree with the truth, and with each other as the posterior is narrow."""
    model = gs.example("asia")
    cases = draw(model, 1500, 2)
    codes = cases.codes.copy()
    codes[np.random.default_rng(3).random(codes.shape) < 0.15] = -1
    partial = Cases(cases.names, cases.states, codes, cases.weights)
    em = fit_tables(partial, model, prior="bdeu:4")
    gibbs = fit_tables(partial, model, prior="bdeu:4", method="gibbs", sweeps=1000, rng=1, progress=False)
    assert em.method == "em"
    assert np.diff(em.path).min() > -1e-9
    assert em.n_missing == (codes < 0).sum()
    assert gibbs.converged, gibbs.reasons
    z = (gibbs.tables - true_tables(model, gibbs)) / gibbs.sds
    sure = (gibbs.tables > 0.02) & (gibbs.tables < 0.98) & (gibbs.sds < 0.05)
    assert sure.sum() > 8
    assert np.abs(z[sure]).max() < 6.0
    assert np.abs(em.tables - gibbs.tables)[sure].max() < 0.01
    exact = gs.solve_exact(gibbs.model.observe({"xray": "yes"})).marginals["lung"]["yes"]
    answer = gibbs.infer("lung", {"xray": "yes"}, draws=100)
    assert answer.mean["lung"]["yes"] == pytest.approx(exact, abs=4 * answer.sd["lung"]["yes"])
    assert answer.mcse["lung"]["yes"] < answer.sd["lung"]["yes"]


def test_a_hidden_site_is_learned_up_to_the_order_of_its_states() -> None:
    rng = np.random.default_rng(4)
    h = rng.random(1200) < 0.4
    data = {name: np.where(h, rng.random(1200) < 0.9, rng.random(1200) < 0.2).astype(int) for name in "abcd"}
    structure = dict.fromkeys("abcd", ("h",))
    em = fit_tables(data, structure, states={"h": 2}, rng=1)
    assert em.diagnostics.figures["found"] >= 2
    gibbs = fit_tables(data, structure, states={"h": 2}, prior="k2", method="gibbs", sweeps=1000, rng=2, progress=False)
    assert gibbs.converged, gibbs.reasons
    assert gibbs.diagnostics.figures["relabelled"] == ("h",)
    for fit in (em, gibbs):
        assert sorted(fit.table("h").tolist()) == pytest.approx([0.4, 0.6], abs=0.07)
        assert sorted(fit.table("a")[:, 1].tolist()) == pytest.approx([0.2, 0.9], abs=0.07)


def test_the_mean_over_draws_is_the_prediction() -> None:
    """For complete cases, tables of posterior means predict exactly; five standard errors."""
    model = gs.example("asia")
    fit = fit_tables(draw(model, 300, 5), model, prior="bdeu:4")
    evidence = {"dysp": "yes", "smoke": "yes"}
    exact = gs.solve_exact(fit.model.observe(evidence)).marginals["bronc"]["yes"]
    answer = fit.infer("bronc", evidence, draws=1000)
    assert abs(answer.mean["bronc"]["yes"] - exact) < 5.2 * answer.mcse["bronc"]["yes"]
    assert "bronc" in answer.summary()


def test_rows_without_cases_are_reported() -> None:
    data = {"a": [0, 0], "b": [0, 1]}
    plain = fit_tables(data, [("a", "b")], states={"a": 2})
    assert not plain.converged
    assert "of b" in plain.reasons[0]
    assert plain.table("b").tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert np.isnan(plain.sd("b")[1]).all()
    assert fit_tables(data, [("a", "b")], states={"a": 2}, prior="k2").converged


def test_runs_that_are_too_short_are_not_called_converged() -> None:
    data = {"a": [0, 1, None, 1], "b": [0, None, 1, 1]}
    with pytest.warns(ConvergenceWarning):
        fit = fit_tables(data, [("a", "b")], prior="k2", method="gibbs", sweeps=20, chains=2, progress=False)
    assert not fit.converged
    assert "not converged" in fit.summary()


def test_answers_are_shown() -> None:
    pytest.importorskip("pandas")
    fit = fit_tables({"a": ["x", "y"], "b": ["u", "u"]}, [("a", "b")], prior="k2", states={"b": ["u", "v"]})
    frame = fit.to_dataframe()
    assert frame["given"].tolist() == ["", "", "a=x", "a=x", "a=y", "a=y"]
    assert frame["probability"].tolist() == pytest.approx([0.5, 0.5, 2 / 3, 1 / 3, 2 / 3, 1 / 3])
    assert "b | a=x:" in fit.summary()
    assert "TableFit" in repr(fit)
    assert "converged" in fit._repr_html_()


DATA: dict[str, Any] = {"a": [0, 1, 1], "b": [0, 1, 0]}


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"structure": [("a", "b"), ("b", "a")]}, ModelError, "cycle"),
        ({"structure": [("a", "c")]}, ArgumentError, "no cells of 'c'"),
        ({"structure": gs.example("asia")}, ArgumentError, "no cells of 'asia'"),
        ({"structure": {}}, ArgumentError, "no sites"),
        ({"structure": "a"}, ArgumentError, "edges"),
        ({"structure": {"a": ("a",)}}, ArgumentError, "different other sites"),
        ({"prior": "bdue"}, ArgumentError, "prior"),
        ({"prior": "bdeu:x"}, ArgumentError, "equivalent sample size"),
        ({"prior": -1.0}, ArgumentError, "positive"),
        ({"prior": {"a": 1}}, ArgumentError, "no pseudocounts for 'b'"),
        ({"prior": {"a": 1, "b": [1, 2, 3]}}, ArgumentError, r"shape \(2, 2\)"),
        ({"prior": {"a": 1, "b": [[1, 0], [1, 1]]}}, ArgumentError, "all positive or all zero"),
        ({"method": "emm"}, ArgumentError, "method"),
        ({"method": "gibbs"}, ArgumentError, "needs a prior"),
        ({"states": {"z": 2}}, ArgumentError, "the site 'z' is unknown"),
        ({"data": {"a": [0, None], "b": [0, 1]}, "method": "counts"}, ArgumentError, "'a' in row 2"),
        (
            {"data": {"a": [0, 1], "b": [0, 1]}, "weights": [0.5, 1], "method": "gibbs", "prior": 1.0},
            ArgumentError,
            "whole",
        ),
    ],
)
def test_mistakes(given: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments = {"data": DATA, "structure": [("a", "b")], **given}
    with pytest.raises(error, match=words):
        fit_tables(**arguments)


def test_questions_that_cannot_be_answered() -> None:
    fit = fit_tables(DATA, [("a", "b")])
    with pytest.raises(ArgumentError, match="no posterior"):
        fit.infer("a")
    sure = fit_tables(DATA, [("a", "b")], prior="k2")
    with pytest.raises(ArgumentError, match="did you mean"):
        sure.infer("aa")
    with pytest.raises(ArgumentError, match="state of b"):
        sure.infer("a", {"b": 7})


def test_a_network_without_tables_is_a_structure() -> None:
    net = gs.BayesianNetwork()
    net.add("a", ["no", "yes"])
    net.add("b", ["no", "yes"], given=["a"])
    fit = fit_tables({"a": ["no", "yes", "yes"], "b": ["no", "no", "yes"]}, net)
    assert fit.network.table("b")["yes"] == {"no": 0.5, "yes": 0.5}
