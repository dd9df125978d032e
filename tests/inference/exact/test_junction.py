"""Exact answers against enumeration, closed forms and published references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.inference.exact.junction import add_configuration
from gibbsite.testing import law_p_value, tiny_models
from tests.data import DATA, HERE, known_answers, needs_data, network_files
from tests.inference.exact.naive import random_model


@st.composite
def models(draw: st.DrawFn) -> gs.FactorGraph:
    n = draw(st.integers(1, 6))
    cards = [draw(st.integers(1, 3)) for _ in range(n)]
    value = st.sampled_from([0.0, 1e-30, 0.3, 1.0, 2.5])
    factors = []
    for _ in range(draw(st.integers(0, 7))):
        scope = draw(st.permutations(range(n)))[: draw(st.integers(1, min(n, 4)))]
        shape = [cards[i] for i in scope]
        table = np.array([draw(value) for _ in range(math.prod(shape))]).reshape(shape)
        if table.any():
            factors.append((tuple(scope), table))
    return gs.FactorGraph({str(i): k for i, k in enumerate(cards)}, factors)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(models())
def test_random_models(model: gs.FactorGraph) -> None:
    try:
        truth = gs.exact.enumerate(model)
    except gs.errors.SupportError:
        with pytest.raises(gs.errors.SupportError):
            gs.solve_exact(model)
        return
    solved = gs.solve_exact(model)
    assert solved.log_z == pytest.approx(truth.log_z, rel=1e-11, abs=1e-11)
    assert solved.marginals.to_array() == pytest.approx(truth.marginals.to_array(), abs=1e-11)
    best = gs.solve_exact(model, task="MAP")
    assert best.log_potential == pytest.approx(truth.log_potential, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", list(tiny_models()))
def test_draws_are_independent_and_exact(name: str) -> None:
    model = tiny_models()[name]
    draws = gs.solve_exact(model).draw(20_000, np.random.default_rng(3))
    assert law_p_value(gs.exact.enumerate(model), draws)[0] > 1e-6


def test_a_wide_lattice_against_its_transfer_matrix() -> None:
    rows, columns, coupling, field = 6, 25, 0.35, 0.1
    spins = 2 * ((np.arange(2**rows)[:, None] >> np.arange(rows)) & 1) - 1
    inside = coupling * (spins[:, 1:] * spins[:, :-1]).sum(axis=1) + field * spins.sum(axis=1)
    step = np.exp(coupling * spins @ spins.T + inside[None, :])
    vector = np.exp(inside)
    scale = 0.0
    for _ in range(columns - 1):
        vector = vector @ step
        scale += math.log(vector.max())
        vector /= vector.max()
    solved = gs.solve_exact(gs.ising_grid((rows, columns), coupling=coupling, field=field))
    assert solved.log_z == pytest.approx(scale + math.log(vector.sum()), rel=1e-12)


def test_tiny_probabilities_do_not_underflow() -> None:
    # a chain of 400 sites that copies with probability 1e-5: P(evidence) is about 1e-1000
    n = 401
    factors = [((i, i + 1), [[1e-5, 1 - 1e-5], [1 - 1e-5, 1e-5]]) for i in range(n - 1)]
    model = gs.FactorGraph(n, [((0,), [0.5, 0.5]), *factors], states=2, directed=True)
    seen = model.observe({str(i): 0 for i in range(0, n, 1) if i % 2 == 0})
    expected = math.log(0.5) + (n // 2) * math.log(1e-10 + (1 - 1e-5) ** 2)
    assert gs.solve_exact(seen).log_z == pytest.approx(expected, rel=1e-12)
    rare = model.observe({str(i): 0 for i in range(200)})
    assert gs.solve_exact(rare).log_z == pytest.approx(math.log(0.5) + 199 * math.log(1e-5), rel=1e-12)


def test_models_too_large_are_refused_before_anything_is_allocated() -> None:
    model = gs.ising_grid((40, 40), coupling=0.1)
    assert gs.exact.predict_exact(model).largest >= 2**40
    with pytest.raises(gs.errors.TooLargeError, match="limit"):
        gs.solve_exact(model)


def test_no_factors_all_observed_and_isolated_sites() -> None:
    assert gs.solve_exact(gs.FactorGraph({"a": 3})).log_z == pytest.approx(math.log(3))
    model = tiny_models()["mixed"]
    every = model.observe({"a": 1, "b": "x", "c": 0, "lonely": 2, "fixed": 0})
    solved = gs.solve_exact(every)
    assert solved.log_z == pytest.approx(model.log_potential(np.array([1, 0, 0, 2, 0])))
    assert solved.marginals["b"] == {"x": 1.0, "y": 0.0, "z": 0.0}


LARGER = [pytest.param(name, marks=needs_data("bif")) for name in ("hailfinder", "insurance", "win95pts")]


@pytest.mark.parametrize("name", ["alarm", "asia", "child", *LARGER])
def test_published_networks(name: str) -> None:
    reference = known_answers(name)
    model = gs.read_model(network_files()[name])
    given = model.observe(reference["evidence"])
    for what, solved in (("prior", gs.solve_exact(model)), ("posterior", gs.solve_exact(given))):
        for site, states in reference["states"].items():
            found = [solved.marginals[site][state] for state in states]
            assert found == pytest.approx(reference[what][site], abs=1e-9)
    assert gs.solve_exact(given).log_z == pytest.approx(reference["ln_probability_of_evidence"], rel=1e-9)


def test_a_diagnostic_network_of_a_competition() -> None:
    model = gs.read_model(HERE / "Promedus_24.uai.gz")
    seen = gs.formats.read_uai_evidence(HERE / "Promedus_24.uai.evid", model)
    given = model.observe(seen)
    solved = gs.solve_exact(given)
    assert solved.log_z / math.log(10) == pytest.approx(-5.86181113112, abs=1e-11)
    top = gs.solve_exact(given, task="MAP").log_potential
    assert top / math.log(10) == pytest.approx(-6.1023266799, abs=1e-10)
    best = gs.formats.read_uai_map(HERE / "Promedus_24.uai.MAP", model)
    assert model.log_potential(best) == pytest.approx(top, abs=1e-10)


@needs_data("uai/promedus")
@pytest.mark.parametrize("name", ["Promedus_24", "Promedus_26", "Promedus_30"])
def test_published_marginals(name: str) -> None:
    model = gs.read_model(DATA / "uai" / "promedus" / f"{name}.uai.gz")
    seen = gs.formats.read_uai_evidence(DATA / "uai" / "promedus" / f"{name}.uai.evid", model)
    solved = gs.solve_exact(model.observe(seen))
    published = gs.formats.read_uai_mar(DATA / "uai" / "promedus" / f"{name}.uai.MAR")
    for site, row in zip(model.sites, published, strict=True):
        assert list(solved.marginals[site].values()) == pytest.approx(row, abs=1e-6)  # six digits


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("sites", [[2], [0, 3], [4, 1], [3, 0, 2]])
@pytest.mark.parametrize("seed", range(2))
def test_the_marginal_of_a_configuration_is_the_joint(seed: int, sites: list[int]) -> None:
    model = random_model(seed, 5, 0.2)
    before, after = gs.exact.enumerate(model), gs.exact.enumerate(add_configuration(model, sites))
    assert after.log_z == pytest.approx(before.log_z, rel=1e-12)
    cells = list(after.marginals["configuration"].values())
    assert cells == pytest.approx(before.joint(*sites).ravel(), abs=1e-14)
    for site in model.sites:
        assert after.marginals[site] == pytest.approx(before.marginals[site], abs=1e-14)
    assert gs.solve_exact(model).joint(*sites) == pytest.approx(before.joint(*sites), abs=1e-12)


@pytest.mark.usefixtures("plain")
def test_the_name_of_a_configuration_is_new() -> None:
    model = gs.FactorGraph({"configuration": 2, "configuration_": 3}, [("configuration", [1, 2])])
    wide = add_configuration(model, [0, 1])
    assert list(wide.sites) == ["configuration", "configuration_", "configuration__"]
    assert wide.cards.tolist() == [2, 3, 6]


@pytest.mark.usefixtures("plain")
def test_configurations_keep_lattices_and_labels() -> None:
    model = gs.ising_grid((2, 3), coupling=0.4, field=0.2)
    wide = add_configuration(model, [0, 5])
    assert [wide.labels(i) for i in range(6)] == [model.labels(i) for i in range(6)]
    joint = np.array(list(gs.exact.enumerate(wide).marginals[6].values())).reshape(2, 2)
    assert joint == pytest.approx(gs.exact.enumerate(model).joint(0, 5), abs=1e-14)
