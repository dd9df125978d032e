"""Observing is conditioning: checked on random models against enumeration in plain Python."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import ModelError
from gibbsite.models import (
    AgreementFactors,
    FactorGraph,
    SpinFactors,
    TableFactors,
    distance_potts,
    ising,
    ising_grid,
    potts,
    potts_grid,
)

Assignment = dict[str, Any]


@dataclass
class Case:
    """A random model twice: built by the library, and as a function evaluated factor by factor."""

    sites: dict[str, tuple[Any, ...]]
    model: FactorGraph
    terms: list[Callable[[Assignment], float]]
    tables: list[tuple[tuple[str, ...], dict[tuple[Any, ...], float]]]

    def potential(self, x: Assignment) -> float:
        """Return the product of all factors."""
        return math.prod(term(x) for term in self.terms)

    def assignments(self, fixed: Assignment) -> list[Assignment]:
        """Return every state that agrees with the fixed part."""
        free = [name for name in self.sites if name not in fixed]
        values = itertools.product(*(self.sites[name] for name in free))
        return [{**dict(zip(free, each, strict=True)), **fixed} for each in values]


LABELS: list[tuple[Any, ...]] = [("no", "yes"), (0, 1), (-1, 1), ("lo", "mid", "hi"), (1, 2, 3), ("only",)]


def table_term(scope: tuple[str, ...], table: dict[tuple[Any, ...], float]) -> Callable[[Assignment], float]:
    return lambda x: table[tuple(x[name] for name in scope)]


def spin_term(members: list[tuple[str, Any]], w: float) -> Callable[[Assignment], float]:
    return lambda x: math.exp(w * math.prod(1 if x[name] == up else -1 for name, up in members))


def pair_term(
    pair: list[str], sites: dict[str, tuple[Any, ...]], w: float, shared: list[float]
) -> Callable[[Assignment], float]:
    def term(x: Assignment) -> float:
        a, b = (sites[name].index(x[name]) for name in pair)
        return math.exp((w if a == b else 0.0) + shared[2 * a + b])

    return term


@st.composite
def cases(draw: st.DrawFn, zeros: bool = True) -> Case:
    names = draw(st.permutations(["a", "b", "c", "10", "2"]))[: draw(st.integers(1, 5))]
    sites = {name: draw(st.sampled_from(LABELS)) for name in names}
    terms: list[Callable[[Assignment], float]] = []
    tables = []
    entries = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0] if zeros else [0.5, 1.0, 2.0, 3.0])
    for _ in range(draw(st.integers(0, 5))):
        scope = tuple(draw(st.permutations(names))[: draw(st.integers(0, 3))])
        keys = list(itertools.product(*(sites[name] for name in scope)))
        values = draw(st.lists(entries, min_size=len(keys), max_size=len(keys)).filter(any))
        table = dict(zip(keys, values, strict=True))
        tables.append((scope, table))
        terms.append(table_term(scope, table))
    groups: list[Any] = []
    weight = st.sampled_from([-1.0, -0.5, 0.25, 2.0])
    binary = [k for k, name in enumerate(names) if len(sites[name]) == 2]
    with_spins = draw(st.booleans())
    if binary and with_spins:
        r = draw(st.integers(1, len(binary)))
        rows: list[list[int]] = [list(draw(st.permutations(binary)))[:r] for _ in range(draw(st.integers(1, 3)))]
        ws = [draw(weight) for _ in rows]
        groups.append(SpinFactors(rows, ws, name="spins"))
        for row, w in zip(rows, ws, strict=True):
            terms.append(spin_term([(names[k], sites[names[k]][1]) for k in row], w))
    if len(binary) > 1:
        pairs = [draw(st.permutations(binary))[:2] for _ in range(draw(st.integers(0, 3)))]
        if pairs:
            shared = [draw(weight) for _ in range(4)]
            groups.append(TableFactors(pairs, np.reshape(shared, (1, 2, 2))))
            ws = [draw(weight) for _ in pairs]
            groups.append(AgreementFactors(pairs, ws, name="agree"))
            for (i, j), w in zip(pairs, ws, strict=True):
                terms.append(pair_term([names[i], names[j]], sites, w, shared))
    half = len(tables) // 2
    plain = [(scope, list(table.values())) for scope, table in tables]
    with np.errstate(divide="ignore"):
        logs = [(scope, np.log(values)) for scope, values in plain[half:]]
    model = FactorGraph(sites, plain[:half], log_factors=logs, groups=groups)
    return Case(sites, model, terms, tables)


def log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


@given(cases())
@settings(deadline=None, max_examples=150)
def test_log_potential_of_every_state(case: Case) -> None:
    for x in case.assignments({}):
        assert case.model.log_potential(x) == pytest.approx(log(case.potential(x)), abs=1e-9)


@given(cases(), st.data())
@settings(deadline=None, max_examples=300)
def test_observing_is_conditioning(case: Case, data: st.DataObject) -> None:
    seen = data.draw(st.lists(st.sampled_from(list(case.sites)), unique=True))
    hard = {name: data.draw(st.sampled_from(case.sites[name])) for name in seen}
    likely = st.sampled_from([0.0, 0.25, 1.0, 3.0])
    soft: dict[str, list[float]] = {}
    for name in case.sites:
        if name not in hard and data.draw(st.booleans()):
            size = len(case.sites[name])
            soft[name] = data.draw(st.lists(likely, min_size=size, max_size=size).filter(any))

    def expected(x: Assignment) -> float:
        weights = [soft[name][case.sites[name].index(x[name])] for name in soft]
        return case.potential(x) * math.prod(weights)

    states = case.assignments(hard)
    by_label = {name: dict(zip(case.sites[name], values, strict=True)) for name, values in soft.items()}
    try:
        if data.draw(st.booleans()):
            model = case.model.observe({**hard, **soft})
        else:
            model = case.model
            for name, label in hard.items():
                model = model.observe({model.index(name): str(label)})
            for name, values in by_label.items():
                model = model.observe({name: values})
    except ModelError as error:
        assert "is impossible" in str(error)
        assert all(case.potential(x) == 0.0 for x in states), "refused evidence that is possible"
        return
    assert model.sites == tuple(name for name in case.sites if name not in hard)
    assert model.evidence == hard
    assert model.evidence_labels == {name: case.sites[name] for name in hard}
    for x in states:
        free = {name: x[name] for name in model.sites}
        assert model.log_potential(free) == pytest.approx(log(expected(x)), abs=1e-9)
        assert model.log_potential(x) == model.log_potential(free)
    for group in model.groups:
        assert not group.scopes.flags.writeable
        assert all(len(set(scope)) == len(scope) for scope in group.scopes.tolist())


@given(cases(), st.data())
@settings(deadline=None, max_examples=100)
def test_order_of_sites_and_states_does_not_matter(case: Case, data: st.DataObject) -> None:
    tables_only = FactorGraph(case.sites, [(scope, list(table.values())) for scope, table in case.tables])
    sites = {
        name: tuple(data.draw(st.permutations(case.sites[name])))
        for name in data.draw(st.permutations(list(case.sites)))
    }
    factors = []
    for scope, table in data.draw(st.permutations(case.tables)):
        turned = data.draw(st.permutations(scope))
        keys = itertools.product(*(sites[name] for name in turned))
        values = [table[tuple(key[turned.index(n)] for n in scope)] for key in keys]
        factors.append((turned, values))
    other = FactorGraph(sites, factors)
    for x in case.assignments({}):
        assert other.log_potential(x) == pytest.approx(tables_only.log_potential(x), abs=1e-9)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("potts", [False, True])
def test_observing_part_of_a_lattice(periodic: bool, potts: bool) -> None:
    rng = np.random.default_rng(5)
    shape, states = (3, 4), 3 if potts else 2
    coupling = rng.normal(size=(2, *shape))
    if potts:
        field = rng.normal(size=(*shape, states))
        model = potts_grid(shape, states, coupling, field, periodic=periodic)
    else:
        model = ising_grid(shape, coupling, rng.normal(size=shape), periodic=periodic)
    uniform = model.reweight(fields=np.linspace(0.1, 0.9, states) if potts else 0.3)
    for whole in (model, uniform):
        x = rng.integers(0, states, 12)
        sites = (0, 1, 5, 11)
        part = whole.observe({str(k): whole.labels(k)[x[k]] for k in sites})
        assert part.sites == tuple(str(k) for k in range(12) if k not in sites)
        kinds = {type(group).__name__ for group in part.groups}
        assert "LatticeFactors" not in kinds
        assert ("AgreementFactors" if potts else "SpinFactors") in kinds
        for _ in range(20):
            free = np.array([k for k in range(12) if k not in sites])
            x[free] = rng.integers(0, states, 8)
            assert part.log_potential(x[free]) == pytest.approx(whole.log_potential(x), abs=1e-9)
        rest = part.observe({name: part.labels(name)[0] for name in part.sites})
        x[free] = 0
        assert rest.n_sites == 0
        assert rest.log_offset == pytest.approx(whole.log_potential(x), abs=1e-9)


def test_soft_evidence_keeps_a_lattice() -> None:
    grid = ising_grid((3, 3)).observe({"4": {-1: 0.2, 1: 0.8}, "0": [1.0, 0.0]})
    assert [type(group).__name__ for group in grid.groups] == ["LatticeFactors", "FieldFactors", "TableFactors"]
    assert grid.group("couplings").size == 12


def network() -> FactorGraph:
    """Return A -> C <- B, C -> D."""
    rng = np.random.default_rng(3)
    c = rng.dirichlet(np.ones(2), size=(2, 2))
    d = rng.dirichlet(np.ones(2), size=2)
    factors: list[Any] = [("A", [0.5, 0.5]), ("B", [0.3, 0.7]), (("A", "B", "C"), c), (("C", "D"), d)]
    return FactorGraph(dict.fromkeys("ABCD", 2), factors, directed=True)


def directions(model: FactorGraph) -> dict[tuple[str, ...], bool]:
    return {
        tuple(model.sites[k] for k in scope): group.directed
        for group in model.groups
        for scope in group.scopes.tolist()
    }


def test_tables_with_observed_parents_stay_conditional() -> None:
    model = network().observe({"A": 1})
    assert directions(model) == {("B",): True, ("B", "C"): True, ("C", "D"): True}
    for group in model.groups:
        tables = group.log_tables(model.cards)
        np.testing.assert_allclose(np.exp(tables).sum(axis=-1), 1.0)


def test_tables_with_an_observed_child_become_likelihoods() -> None:
    model = network().observe({"C": 0})
    assert directions(model) == {("A",): True, ("B",): True, ("A", "B"): False, ("D",): True}
    model = network().observe({"B": 0, "C": 0})
    groups = [(group.directed, group.size) for group in model.groups]
    assert sorted(groups) == [(False, 1), (True, 2)], "P(A), P(D | c) and the likelihood of A"


def test_named_groups_survive_and_shrink() -> None:
    table = np.log([[[1.0, 2.0], [3.0, 4.0]]])
    model = FactorGraph(3, groups=[TableFactors([[0, 1], [1, 2]], table, name="T")], states=2)
    part = model.observe({"0": 0})
    assert part.group("T").scopes.tolist() == [[0, 1]]
    assert part.reweight(T=np.zeros((2, 2))).log_potential([0, 1]) == pytest.approx(math.log(1.0))
    assert model.observe({"1": 0}).group("T").size == 0


# ---- other weights after evidence


REWEIGHTED: dict[str, tuple[FactorGraph, dict[str, Any]]] = {
    "grid": (ising_grid((3, 3), coupling=0.2, field=0.1), {"couplings": 0.5, "fields": -0.3}),
    "potts grid": (
        potts_grid((3, 3), 2, 0.2, field=[0.0, 0.1], periodic=True),
        {"couplings": np.arange(18.0).reshape(2, 3, 3), "fields": [0.3, 0.0]},
    ),
    "ising": (
        ising(np.triu(np.ones((9, 9)), 1), fields=0.1),
        {"couplings": np.linspace(-1.0, 1.0, 36), "fields": np.linspace(0.0, 1.0, 9)},
    ),
    "potts": (
        potts(np.triu(np.ones((9, 9)), 1), 2),
        {"couplings": np.linspace(-1.0, 1.0, 36), "fields": np.linspace(0.0, 1.0, 18).reshape(9, 2)},
    ),
    "kernel": (
        distance_potts(np.arange(9.0)[:, None], 2, gamma=0.1, beta=0.4),
        {"couplings": 0.9, "fields": [0.0, 1.0]},
    ),
    "tables": (
        FactorGraph(
            9,
            [((k, k + 1), [[1, 2], [3, 4]]) for k in range(8)],
            groups=[
                TableFactors([[0, 1, 2], [4, 8, 7]], np.zeros((1, 2, 2, 2)), name="T"),
                SpinFactors([[0, 4, 5], [1, 2, 3]], 0.1, name="S"),
            ],
            states=2,
        ),
        {"T": np.arange(16.0).reshape(2, 2, 2, 2), "S": [0.7, -0.2]},
    ),
}
STEPS: list[dict[Any, Any]] = [
    {"0": 1, "4": 1},
    {"1": [0.2, 0.8], "8": 1},
    {"2": {0: 0.5, 1: 0.25}},
    {"3": [0.5, 0.5], "5": 1},
]


@pytest.mark.parametrize("key", REWEIGHTED)
def test_reweighting_reaches_factors_that_evidence_was_folded_into(key: str) -> None:
    model, weights = REWEIGHTED[key]
    spins = model.labels(0) == (-1, 1)
    steps = [{"2": {-1: 0.5, 1: 0.25}} if spins and "2" in step else step for step in STEPS]
    for many in range(1, len(steps) + 1):
        first, last = model.reweight(**weights), model
        for step in steps[:many]:
            first, last = first.observe(step), last.observe(step)
        late = last.reweight(**weights)
        assert late.digest == first.digest != last.digest
        assert late.shared is last.shared, "scopes are the same"
        assert pickle.loads(pickle.dumps(last)).reweight(**weights).digest == first.digest
        name = next(iter(weights))
        twice = last.reweight(**{name: weights[name]}).reweight(**weights)
        assert twice.digest == first.digest
        assert late.evidence == first.evidence
    half = model.observe(steps[0]).reweight(**weights)
    for step in steps[1:]:
        half = half.observe(step)
    assert half.digest == first.digest, "evidence before and after new weights"


def test_marginals_of_an_observed_model_with_other_weights() -> None:
    from gibbsite.inference.exact import solve_exact

    model = ising_grid((3, 3), coupling=0.2).observe({"0": 1}).reweight(couplings=0.5)
    assert solve_exact(model).marginals["1"][1] == pytest.approx(0.783, abs=5e-4)


def test_evidence_that_new_weights_make_impossible() -> None:
    model = FactorGraph(2, groups=[TableFactors([[0, 1]], np.zeros((1, 2, 2)), name="T")], states=2)
    part = model.observe({"0": 1})
    with pytest.raises(ModelError, match="the evidence 0=1 is impossible"):
        part.reweight(T=[[0.0, 0.0], [-np.inf, -np.inf]])


def test_weights_are_those_before_the_evidence() -> None:
    part = ising(([0, 1], [1, 2], 0.5)).observe({"0": 1})
    with pytest.raises(ModelError, match=r"shape \(2,\).*weights are those of the model before its evidence\."):
        part.reweight(couplings=[0.3])


def test_later_changes_of_an_array_are_not_evidence() -> None:
    likely = np.array([0.2, 0.8])
    model = ising_grid((2, 2)).observe({"0": likely})
    before = model.reweight(couplings=0.5).digest
    likely[:] = 0.5
    assert model.reweight(couplings=0.5).digest == before


def test_slices_of_equal_shape_are_merged() -> None:
    pairs = [((a, b), np.full((2, 2), 2.0)) for a, b in itertools.combinations(range(8), 2)]
    model = FactorGraph(8, [*pairs, (3, [1, 2])], states=2).observe({0: 1, 7: 0, 4: 0})
    assert sorted((group.arity, group.size) for group in model.groups) == [(1, 16), (2, 10)]


def test_a_shared_table_stays_shared() -> None:
    shared = TableFactors([[0, 1], [1, 2], [2, 3]], [[[0.0, 1.0], [2.0, 3.0]]])
    model = FactorGraph(5, [((3, 4), [1, 2, 3, 4])], groups=[shared], states=2).observe({0: 1})
    sizes = [(group.arity, group.size, len(group.log_tables(model.cards))) for group in model.groups]
    assert sorted(sizes) == [(1, 1, 1), (2, 1, 1), (2, 2, 1)]


def test_no_evidence_changes_nothing() -> None:
    model = ising_grid((2, 2))
    assert model.observe({}) is model


def test_an_observed_site_is_spoken_of_as_such() -> None:
    model = FactorGraph({"A": ["no", "yes"], "B": 2}).observe({"A": "yes"})
    with pytest.raises(ModelError, match=r"the site 'A' is observed as 'yes' and no longer free"):
        model.index("A")
    assert model.log_potential({"A": "no", "B": 1}) == -math.inf
    assert model.log_potential({"A": "yes", "B": 1}) == 0.0


SITES: dict[str, list[Any]] = {"A": ["no", "yes"], "B": ["lo", "mid", "hi"], "C": [0, 1]}
PAIR = [[1, 0, 2], [0, 0, 3]]


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"AA": "no"}, r"^the evidence names an unknown site 'AA'; did you mean 'A'\?$"),
        ({9: "no"}, r"^the evidence names an unknown site at position 9; positions run from 0 to 2"),
        ({"A": "maybe"}, r"^site 'A' has no state 'maybe'; its states are 'no', 'yes'\.$"),
        ({"A": 0}, r"^site 'A' has no state 0; "),
        ({"A": None}, r"^site 'A' has no state None; "),
        ({"A": "no", 0: "no"}, r"^the evidence has the site 'A' twice, by name and by position"),
        ({"A": [1, 2, 3]}, r"^the soft evidence for 'A' has shape \(3,\); the site has 2 states"),
        ({"A": [1.0, -0.5]}, r"^the soft evidence for 'A' has the likelihood -0\.5 for state 'yes'"),
        ({"A": [np.nan, 1]}, r"^the soft evidence for 'A' has the likelihood nan for state 'no'"),
        ({"A": [np.inf, 1]}, r"^the soft evidence for 'A' has the likelihood inf for state 'no'"),
        ({"A": [0, 0]}, r"^the soft evidence for 'A' is zero for every state; make one positive"),
        ({"A": {"no": 0.5}}, r"^the soft evidence for 'A' misses the state 'yes'; give each state"),
        ({"A": {"no": 1, "yo": 1}}, r"^site 'A' has no state 'yo'; "),
        ({"C": {0: 1, 1: 1, "1": 2}}, r"^the soft evidence for 'C' has a state twice"),
        ({"A": ["x", "y"]}, r"^the soft evidence for 'A' must be real numbers, got text"),
        (["A"], r"^evidence must be a mapping site -> state or likelihoods, got list"),
        (
            {"B": "mid"},
            r"^the evidence B='mid' is impossible: the factor over \(A, B\) is zero there; "
            r"change the evidence or the factor\.$",
        ),
        ({"C": 1, "B": "lo", "A": "yes"}, r"^the evidence A='yes', B='lo' is impossible: "),
    ],
)
def test_bad_evidence(evidence: Any, message: str) -> None:
    model = FactorGraph(SITES, [(("A", "B"), PAIR)])
    with pytest.raises(ModelError, match=message) as caught:
        model.observe(evidence)
    assert "\n" not in str(caught.value)


def test_evidence_given_again() -> None:
    model = FactorGraph(SITES).observe({"A": "yes"})
    for finding in ("yes", "no", [0.5, 0.5]):
        with pytest.raises(ModelError, match=r"the site 'A' is already observed as 'yes'; start"):
            model.observe({"A": finding})
    lattice = ising_grid((2, 2)).observe({"1": 1})
    with pytest.raises(ModelError, match=r"the site '1' is already observed as 1"):
        lattice.observe({"1": 1})
    assert lattice.observe({1: -1}).evidence == {"1": 1, "2": -1}, "1 is a position here"


def test_impossible_states_of_fields() -> None:
    grid = potts_grid((2, 2), 3, 1.0, field=[0.0, 0.0, -np.inf])
    with pytest.raises(ModelError, match=r"evidence 3=2 is impossible: group 'fields' at that site"):
        grid.observe({"3": 2})


def test_numbers_from_numpy() -> None:
    model = ising_grid((2, 2))
    findings: dict[Any, Any] = {np.int64(1): np.int64(-1), 2: np.array(1)}
    seen = model.observe(findings)
    assert repr(seen.evidence) == "{'1': -1, '2': 1}"
