"""Derivatives and curves equal those of networks whose tables are changed, solved by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.errors import ArgumentError
from gibbsite.formats.network import network_tables
from gibbsite.inference.questions.derivatives import differentiate
from tests.inference.questions.networks import law_of, random_network


def changed(model: gs.FactorGraph, site: int, at: tuple[int, ...], value: float) -> gs.FactorGraph:
    """Return the network with another value of one entry and the others of its row in proportion."""
    factors = []
    for k, (scope, logs) in enumerate(network_tables(model, "A test")):
        table = np.exp(logs)
        if k == site:
            row = table[at[:-1]].copy()
            others = np.delete(row, at[-1])
            total = others.sum()
            others = others * (1 - value) / total if total > 0 else np.full(others.size, (1 - value) / others.size)
            table[at[:-1]] = np.insert(others, at[-1], value)
        factors.append((tuple(model.sites[one] for one in scope), table))
    return gs.FactorGraph({name: model.labels(name) for name in model.sites}, factors)


def answer(model: gs.FactorGraph) -> float:
    law = law_of(model)[:, :, :, 1]  # v3 = s1
    return float(law[:, 0].sum() / law.sum())


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_curves_follow_changed_tables(seed: int, zeros: bool) -> None:
    model = random_network(seed, zeros=zeros)
    found = gs.questions.analyse_sensitivity(model, "v1", "s0", {"v3": "s1"})
    assert found.probability == pytest.approx(answer(model), abs=1e-9)
    rng = np.random.default_rng(seed)
    for site, table in enumerate(found.tables):
        at = tuple(int(rng.integers(size)) for size in table.logs.shape)
        names = [model.sites[one] for one in table.scope]
        labels = [model.labels(name)[code] for name, code in zip(names, at, strict=True)]
        parents = dict(zip(names[:-1], labels[:-1], strict=True))
        values, curve = found.curve(names[-1], labels[-1], parents, values=[0.05, 0.4, 0.9])
        wanted = [answer(changed(model, site, at, value)) for value in values]
        np.testing.assert_allclose(curve, wanted, atol=1e-9)
        step, p = 1e-6, float(np.exp(table.logs[at]))
        ends = [max(p - step, 0.0), min(p + step, 1.0)]
        slope = np.diff([answer(changed(model, site, at, value)) for value in ends])[0] / (ends[1] - ends[0])
        assert found.entry(names[-1], labels[-1], parents).derivative == pytest.approx(slope, abs=1e-5)


def test_an_answer_of_probability_zero_can_become_possible() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [("a", [0.5, 0.5]), (("a", "b"), [[1.0, 0.0], [1.0, 0.0]])], directed=True)
    found = gs.questions.analyse_sensitivity(model, "b", 1)
    assert found.probability == 0.0
    assert found.entry("b", 1, {"a": 0}).derivative == pytest.approx(0.5)
    np.testing.assert_allclose(found.curve("b", 1, {"a": 0}, values=[0.0, 0.5, 1.0])[1], [0.0, 0.25, 0.5])


def test_a_surface_follows_two_changed_tables() -> None:
    model = random_network(1)
    tables = network_tables(model, "A test")
    one, other = (("v0", "s0", {}), ("v2", "s1", {model.sites[p]: "s0" for p in tables[2].scope[:-1]}))
    found = gs.questions.analyse_sensitivity(model, "v1", "s0", {"v3": "s1"})
    values, surface = found.surface(one, other, many=3)
    for i, a in enumerate(values):
        first = changed(model, 0, (0,), float(a))
        for j, b in enumerate(values):
            second = changed(first, 2, (*[0] * (len(tables[2].scope) - 1), 1), float(b))
            assert surface[i, j] == pytest.approx(answer(second), abs=1e-9)


def test_entries_are_ranked_by_how_far_the_answer_moves() -> None:
    found = gs.questions.analyse_sensitivity(gs.example("alarm"), "HYPOVOLEMIA", "TRUE", {"HRBP": "HIGH", "CO": "LOW"})
    swings = [entry.swing for entry in found.top(30)]
    assert swings == sorted(swings, reverse=True) and swings[0] > 0.01
    entry = found.top(1)[0]
    odds = entry.value / (1 - entry.value)
    ends = [odds / 2 / (1 + odds / 2), odds * 2 / (1 + odds * 2)]
    _, curve = found.curve(entry.site, entry.state, entry.parents, values=ends)
    np.testing.assert_allclose(curve, [entry.low, entry.high], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_of_log_z_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards = np.array([2, 3, 2, 4, 2])
    scopes = [(0, 1), (1, 2), (2, 3), (0, 3), (4,), (1,)]
    tables = [rng.random([int(cards[k]) for k in scope]) for scope in scopes]
    tables[1][0, 0] = 0.0
    log_z, slopes = differentiate(scopes, tables, cards)

    def total(parts: list[np.ndarray]) -> float:
        return float(np.einsum("ab,bc,cd,ad,e,b->", *parts))

    assert log_z == pytest.approx(np.log(total(tables)), abs=1e-12)
    for k, table in enumerate(tables):
        for at in np.ndindex(*table.shape):
            only = np.zeros_like(table)
            only[at] = 1.0
            # Z is linear in the table
            wanted = total([*tables[:k], only, *tables[k + 1 :]]) / total(tables)
            assert slopes[k][at] == pytest.approx(wanted, abs=1e-10)


def test_wrong_questions_are_refused() -> None:
    asia = gs.example("asia")
    with pytest.raises(ArgumentError, match="observed"):
        gs.questions.analyse_sensitivity(asia, "lung", "yes", {"lung": "yes"})
    with pytest.raises(ArgumentError, match="impossible together"):
        gs.questions.analyse_sensitivity(asia, "lung", "yes", {"tub": "yes", "either": "no"})
    with pytest.raises(ArgumentError, match="above 1"):
        gs.questions.analyse_sensitivity(asia, "lung", "yes", factor=1.0)
    found = gs.questions.analyse_sensitivity(asia, "lung", "yes")
    with pytest.raises(ArgumentError, match="states of its parents: 'smoke'"):
        found.entry("lung", "yes")
    with pytest.raises(ArgumentError, match="same row"):
        found.surface(("smoke", "yes", {}), ("smoke", "no", {}))
