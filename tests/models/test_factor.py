"""Groups of factors: their tables, values and complaints, against plain loops."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

from gibbsite._common.arrays import Ints32
from gibbsite.errors import ModelError
from gibbsite.models import (
    AgreementFactors,
    FactorGraph,
    FactorGroup,
    FieldFactors,
    LatticeFactors,
    SpinFactors,
    TableFactors,
)
from gibbsite.models.domain import make_domains

RNG = np.random.default_rng(20240229)
TABLES = RNG.normal(size=(3, 2, 2))

GROUPS: dict[str, tuple[FactorGroup, int, int]] = {
    "tables": (TableFactors([[0, 1], [3, 1], [2, 0]], TABLES), 4, 2),
    "shared table": (TableFactors([[0, 1], [3, 1], [2, 0]], TABLES[:1]), 4, 2),
    "triple tables": (TableFactors([[2, 0, 1]], RNG.normal(size=(1, 3, 3, 3))), 3, 3),
    "fields": (SpinFactors([[1], [0]], [0.3, -0.2]), 3, 2),
    "couplings": (SpinFactors([[1, 0], [0, 2], [1, 2]], [0.3, -0.2, 0.9]), 3, 2),
    "equal couplings": (SpinFactors([[1, 0], [0, 2], [1, 2]], 0.3), 3, 2),
    "four spins": (SpinFactors([[1, 0, 3, 2]], [0.7]), 4, 2),
    "agreements": (AgreementFactors([[1, 0], [0, 2]], [0.3, -1.2]), 3, 3),
    "ring": (LatticeFactors((4,), (True,), ([0.1, 0.2, 0.3, 0.4],)), 4, 2),
    "open square": (LatticeFactors((2, 3), (False, True), (0.5, RNG.normal(size=(2, 3)))), 6, 2),
    "uniform lattice": (LatticeFactors((3, 3), (False, False), 0.5), 9, 2),
    "potts lattice": (LatticeFactors((2, 2), (False, False), (0.5, 0.25), spin=False), 4, 3),
    "uniform field": (FieldFactors(3, 0.4), 3, 2),
    "own fields": (FieldFactors(3, [0.4, 0.1, -1.0]), 3, 2),
    "uniform states": (FieldFactors(3, [0.4, 0.1, -np.inf], spin=False), 3, 3),
    "own states": (FieldFactors(2, RNG.normal(size=(2, 3)), spin=False), 2, 3),
    "no factors": (SpinFactors(np.zeros((0, 2), int), []), 2, 2),
}
ALL = pytest.mark.parametrize("key", GROUPS)


def naive(group: FactorGroup, x: tuple[int, ...]) -> float:
    """Sum one factor after the other, from what the group was built with."""
    if isinstance(group, TableFactors):
        total = 0.0
        for k, scope in enumerate(group.scopes.tolist()):
            table: Any = group.weights[k if len(group.weights) > 1 else 0].tolist()
            for site in scope:
                table = table[x[site]]
            total += float(table)
        return total
    if isinstance(group, (SpinFactors, AgreementFactors)):
        total = 0.0
        for scope, w in zip(group.scopes.tolist(), group.weights.tolist(), strict=True):
            if isinstance(group, SpinFactors):
                total += w * math.prod(2 * x[site] - 1 for site in scope)
            elif x[scope[0]] == x[scope[1]]:
                total += w
        return total
    if isinstance(group, LatticeFactors):
        places = list(itertools.product(*map(range, group.shape)))
        number = {place: k for k, place in enumerate(places)}
        total = 0.0
        for axis, weights in enumerate(group.weights):
            for place in places:
                step = list(place)
                step[axis] += 1
                if step[axis] == group.shape[axis]:
                    if not group.periodic[axis]:
                        continue
                    step[axis] = 0
                a, b = number[place], number[tuple(step)]
                w = float(weights[a if weights.size > 1 else 0])
                equal = x[a] == x[b]
                total += w * ((1 if equal else -1) if group.spin else equal)
        return total
    assert isinstance(group, FieldFactors)
    rows = [group.weights[k if len(group.weights) > 1 else 0] for k in range(group.n_sites)]
    return float(sum(w * (2 * s - 1) if group.spin else w[s] for w, s in zip(rows, x, strict=True)))


@ALL
def test_log_potential_equals_a_plain_loop(key: str) -> None:
    group, n, states = GROUPS[key]
    for x in itertools.product(range(states), repeat=n):
        value = group.log_potential(np.array(x, np.int32))
        assert value == pytest.approx(naive(group, x), abs=1e-12), x


@ALL
def test_log_tables_are_what_log_potential_adds_up(key: str) -> None:
    group, n, states = GROUPS[key]
    cards: Ints32 = np.full(n, states, np.int32)
    tables, scopes = group.log_tables(cards), group.scopes
    assert scopes.shape == (group.size, group.arity)
    assert scopes.dtype == np.int32
    assert tables.dtype == np.float64
    assert tables.ndim == group.arity + 1
    assert len(tables) in (1, group.size)
    if group.size:
        assert tables.shape[1:] == (states,) * group.arity
    for x in itertools.islice(itertools.product(range(states), repeat=n), 0, None, 3):
        total = sum(
            tables[k if len(tables) > 1 else 0][tuple(x[i] for i in scope)] for k, scope in enumerate(scopes.tolist())
        )
        assert group.log_potential(np.array(x, np.int32)) == pytest.approx(total, abs=1e-12)


@ALL
def test_arrays_are_read_only_also_after_pickle(key: str) -> None:
    group, n, states = GROUPS[key]
    again = pickle.loads(pickle.dumps(group))
    for each in (group, again):
        parts = each.weights if isinstance(each.weights, tuple) else (each.weights,)
        assert not any(array.flags.writeable for array in (*parts, each.scopes))
        each.check(make_domains(n, states))
    x = np.ones(n, np.int32)
    assert again.log_potential(x) == group.log_potential(x)
    assert (again.name, again.directed) == (group.name, group.directed)


@ALL
def test_reweighting_to_the_same_weights_changes_nothing(key: str) -> None:
    group, n, _ = GROUPS[key]
    x = np.ones(n, np.int32)
    assert group.reweighted(group.weights).log_potential(x) == group.log_potential(x)


def test_reweighting_keeps_the_scopes_object() -> None:
    for group in (GROUPS["tables"][0], GROUPS["couplings"][0], GROUPS["agreements"][0]):
        assert group.reweighted(group.weights).scopes is group.scopes


def test_equal_factors_share_one_table() -> None:
    cards: Ints32 = np.full(9, 2, np.int32)
    for key in ("shared table", "equal couplings", "uniform lattice", "uniform field"):
        assert len(GROUPS[key][0].log_tables(cards)) == 1, key


def test_one_table_for_all_factors_when_reweighting() -> None:
    group = GROUPS["tables"][0].reweighted([[0.0, 1.0], [2.0, 3.0]])
    assert group.log_potential(np.array([1, 0, 0, 0], np.int32)) == 2.0 + 0.0 + 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TableFactors([0, 1], np.zeros((2, 2))), r"scopes must have shape \(m, r\)"),
        (lambda: TableFactors([[]], np.zeros(1)), r"scopes must have shape \(m, r\)"),
        (lambda: TableFactors([[0.5]], np.zeros((1, 2))), r"integer site positions, got float64"),
        (lambda: TableFactors([[2**40]], np.zeros((1, 2))), r"fewer than 2\*\*31 sites"),
        (lambda: TableFactors([[0]], np.zeros((2, 2))), r"log-tables of shape \(2, 2\)"),
        (lambda: TableFactors([[0, 1]], np.zeros((1, 2))), r"expected \(1 or 1, K1, \.\.\., K2\)"),
        (lambda: AgreementFactors([[0, 1, 2]], [1.0]), r"an agreement is between two sites"),
        (lambda: SpinFactors([[0, 1]], [1.0, 2.0], "pairs"), r"group 'pairs' has 1 factors here"),
        (lambda: LatticeFactors((2, 4), (True, True), 1.0), r"axis 0 .* periodic but has only 2"),
        (lambda: LatticeFactors((2, 0), (False, False), 1.0), r"at least one site along each axis"),
        (lambda: LatticeFactors((2, 2), (False,), 1.0), r"periodic must be .* of 2 axes"),
        (lambda: LatticeFactors((2**16, 2**16), (False,) * 2, 1.0), r"2\*\*31 or more sites"),
        (lambda: FieldFactors(3, [1.0, 2.0], name="h"), r"group 'h' needs one number .* \(2,\)"),
        (lambda: FieldFactors(3, 1.0, spin=False), r"needs K numbers"),
        (lambda: GROUPS["tables"][0].reweighted(np.zeros((2, 2, 2))), r"\(3, 2, 2\), \(1, 2, 2\)"),
    ],
)
def test_malformed_groups(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make()


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (SpinFactors([[0, 3]], [1.0], "J"), r"factor 0 of group 'J' names .* \[0, 3\], .* 3 sites"),
        (SpinFactors([[0, 1], [1, 1]], 1.0), r"the factor over \(b, b\) names a site twice"),
        (SpinFactors([[0, 1, 2], [1, 0, 1]], 1.0), r"the factor over \(b, a, b\) names a site twice"),
        (SpinFactors([[0, 2]], [1.0]), r"the site 'c' has 3 states, but spin factors need two"),
        (SpinFactors([[0, 1]], [np.nan], "J"), r"factor 0 of group 'J' over \(a, b\) has .* nan"),
        (AgreementFactors([[0, 1]], [-np.inf]), r"over \(a, b\) has the weight -inf; weights are"),
        (AgreementFactors([[0, 1], [1, 2]], 1.0), r"over \(b, c\) joins sites of 2 and 3 states"),
        (TableFactors([[0, 2]], np.zeros((1, 2, 2))), r"expected shape \(2, 3\) .*a has 2, c has 3"),
        (TableFactors([[2]], [[0, np.nan, 0]]), r"over \(c\) has the log-potential NaN at c='v'"),
        (TableFactors([[2]], [[0, np.inf, 0]]), r"has an infinite log-potential at c='v'"),
        (TableFactors([[0], [1]], [[0.0, 0.0], [-np.inf, -np.inf]], name="T"), r"1 of group 'T' .*zero"),
        (TableFactors([[0, 1]], [[[0, 0], [0, 0]]], directed=True), r"at a=0 sums to 2 over .*'b'"),
        (FieldFactors(2, 0.0), r"is for 2 sites, but the model has 3"),
        (FieldFactors(3, 0.0, name="h"), r"group 'h' needs 2 states at every site, but 'c' has 3"),
        (LatticeFactors((2, 2), (False, False), 0.0), r"lattice \(2, 2\) of 4 sites.* has 3"),
        (LatticeFactors((3,), (True,), 0.0, spin=False), r"needs 2 states .* 'c' has 3"),
    ],
)
def test_groups_that_do_not_fit_the_sites(group: FactorGroup, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FactorGraph({"a": 2, "b": 2, "c": ["u", "v", "w"]}, groups=[group])


@pytest.mark.parametrize(
    ("weights", "spin", "message"),
    [
        ([0.0, np.nan], True, r"gives the site '1' the weight nan"),
        (-np.inf, True, r"gives every site the weight -inf"),
        ([[0.0, 1.0], [0.0, np.inf]], False, r"gives the site '1' the weight inf"),
        ([[0.0, 1.0], [-np.inf, -np.inf]], False, r"every state of the site '1' impossible"),
        ([0.0, 1.0, 2.0], False, r"has 3 log-potentials per site, but the sites have 2 states"),
    ],
)
def test_fields_that_do_not_fit(weights: Any, spin: bool, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FactorGraph(2, states=2, groups=[FieldFactors(2, weights, spin)])
