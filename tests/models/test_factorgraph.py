"""Building, asking and reweighting models; each complaint says what is wrong and where."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

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

SITES: dict[str, list[str | int]] = {"A": ["no", "yes"], "B": ["lo", "mid", "hi"], "C": [1]}
PAIR = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.0]]
EVEN = [[0.5, 0.5], [0.5, 0.5]]


def sprinkler() -> FactorGraph:
    return FactorGraph(SITES, [(("A", "B"), PAIR), ("A", [0.6, 0.4])])


def test_a_product_of_tables() -> None:
    model = sprinkler()
    for (a, la), (b, lb) in itertools.product(enumerate(SITES["A"]), enumerate(SITES["B"])):
        expected = PAIR[a][b] * [0.6, 0.4][a]
        assert math.exp(model.log_potential({"A": la, "B": lb, "C": 1})) == pytest.approx(expected)
        assert math.exp(model.log_potential([a, b, 0])) == pytest.approx(expected)
    assert model.log_potential({"A": "yes", "B": "hi", "C": "1"}) == -math.inf


def test_flat_nested_and_log_tables_mean_the_same() -> None:
    with np.errstate(divide="ignore"):
        log_pair = np.log(PAIR)
    flat = [value for row in PAIR for value in row]
    transposed = np.array(PAIR).T
    models = [
        FactorGraph(SITES, [(("A", "B"), PAIR)]),
        FactorGraph(SITES, [(("A", "B"), flat)]),
        FactorGraph(SITES, [(("B", "A"), transposed)]),
        FactorGraph(SITES, [((0, 1), PAIR)]),
        FactorGraph(SITES, log_factors=[(["A", "B"], log_pair)]),
        FactorGraph(SITES, groups=[TableFactors([[0, 1]], log_pair[None])]),
    ]
    for x in itertools.product(range(2), range(3), range(1)):
        values = [model.log_potential(x) for model in models]
        assert len(set(values)) == 1, (x, values)


def test_the_first_unchanged_input_is_copied() -> None:
    table = np.array(PAIR)
    model = FactorGraph(SITES, [(("A", "B"), table)])
    before = model.log_potential([0, 0, 0])
    table[:] = 1.0
    assert model.log_potential([0, 0, 0]) == before


def test_many_factors_of_equal_shape_become_one_group() -> None:
    n = 500
    factors = [((k, k + 1), np.full((2, 2), 1.0 + k)) for k in range(n - 1)]
    logs = [((k + 1, k), np.full(4, -1.0)) for k in range(0, n - 1, 2)]
    unary = [(str(k), [1.0, 2.0]) for k in range(n)]
    model = FactorGraph(n, [*factors, *unary], log_factors=logs, states=2)
    assert [(group.size, group.arity) for group in model.groups] == [(499 + 250, 2), (500, 1)]
    expected = sum(math.log(1.0 + k) for k in range(n - 1)) - 250 + n * math.log(2.0)
    assert model.log_potential(np.ones(n, int)) == pytest.approx(expected)


def test_no_factors_and_factors_without_sites() -> None:
    assert FactorGraph({"a": 2}).log_potential({"a": 1}) == 0.0
    assert FactorGraph({}).log_potential({}) == 0.0
    constant = FactorGraph({"a": 2}, [((), 3.0), ((), [2.0])], log_factors=[((), -1.0)])
    assert constant.log_offset == pytest.approx(math.log(6.0) - 1.0)
    assert constant.groups == ()


def test_lookups() -> None:
    model = sprinkler()
    assert (model.n_sites, model.sites) == (3, ("A", "B", "C"))
    keys: list[Any] = ["C", 2, np.int64(1)]
    assert [model.index(site) for site in keys] == [2, 2, 1]
    assert model.labels("B") == ("lo", "mid", "hi")
    assert (model.code("B", "hi"), model.code(2, "1")) == (2, 0)
    assert model.cards.tolist() == [2, 3, 1]
    assert not model.cards.flags.writeable
    with pytest.raises(AttributeError):
        model.log_offset = 1.0  # type: ignore[misc]
    model.evidence["A"] = "yes"
    assert model.evidence == {}


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([(("A", "D"), PAIR)], r"^factors\[0\] names an unknown site 'D'; the sites are 'A', 'B'"),
        ([(("A", 7), PAIR)], r"^factors\[0\] names an unknown site at position 7; .* 0 to 2\.$"),
        ([("A", [1, 1]), (("B", "A", "B"), PAIR)], r"^factors\[1\] names the site 'B' twice; "),
        (
            [(("A", "B"), [[1, 2], [3, 4]])],
            r"^factors\[0\] over \(A, B\) has a table of shape \(2, 2\) with 4 entries, expected "
            r"shape \(2, 3\) or 6 entries in a row \(states: A has 2, B has 3\)\.$",
        ),
        ([(("B", "A"), PAIR)], r"table of shape \(2, 3\) .* expected shape \(3, 2\)"),
        ([(("A", "B"), [[1, 2], [3]])], r"factors\[0\] over \(A, B\) must be .* lists of unequal length"),
        ([(("A", "B"), "x")], r"^the entries of factors\[0\] over \(A, B\) must be real numbers, got text"),
        ([((), [1, 2])], r"^factors\[0\] over \(\) has a table .* \(states: no sites\)\.$"),
        (
            [(("A", "B"), [[1, 2, 3], [4, -0.5, 6]])],
            r"^factors\[0\] over \(A, B\) has the negative potential -0\.5 at A='yes', B='mid'; "
            r"potentials are not negative; log-potentials go into log_factors\.$",
        ),
        (
            [("A", [1, 1]), (("B", "A"), [[1, 2], [3, 4], [np.nan, 6]])],
            r"^factors\[1\] over \(B, A\) has the potential NaN at B='hi', A='no'; give a number",
        ),
        ([("C", [np.inf])], r"^factors\[0\] over \(C\) has an infinite potential at C=1; "),
        ([("A", [1, 0]), ("A", [0, 0])], r"^factors\[1\] over \(A\) is zero everywhere, so no state is possible; "),
        ([((), 0.0)], r"^factors\[0\] over \(\) is zero everywhere"),
        ([((), -1.0)], r"^factors\[0\] over \(\) has the negative potential -1; "),
        ([("A",)], r"^factors\[0\] is not a pair \(scope, table\)\.$"),
        ([5], r"^factors\[0\] is not a pair"),
    ],
)
def test_bad_factors(factors: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        FactorGraph(SITES, factors)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([("A", [0, np.nan])], r"^log_factors\[0\] over \(A\) has the log-potential NaN at A='yes'"),
        ([("A", [np.inf, 0])], r"^log_factors\[0\] .* infinite log-potential at A='no'; give a fin"),
        ([("A", [-np.inf, -np.inf])], r"^log_factors\[0\] over \(A\) is zero everywhere"),
    ],
)
def test_bad_log_factors(factors: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        FactorGraph(SITES, log_factors=factors)


def test_close_names_are_suggested() -> None:
    with pytest.raises(ModelError, match=r"unknown site 'HRPB'; did you mean 'HRBP'\?"):
        FactorGraph({"HRBP": 2, "BP": 2}, [("HRPB", [1, 1])])


def test_bad_groups() -> None:
    with pytest.raises(ModelError, match=r"got tuple; single factors go into factors="):
        FactorGraph(SITES, groups=[("A", [1, 1])])  # type: ignore[list-item]
    twice = SpinFactors([[0]], [1.0], name="h")
    with pytest.raises(ModelError, match=r"two groups are named 'h'"):
        FactorGraph(2, groups=[twice, twice], states=2)
    with pytest.raises(ModelError, match=r"no factor group 'J'; named groups: 'h'"):
        FactorGraph(2, groups=[twice], states=2).group("J")
    with pytest.raises(ModelError, match=r"no factor group 'J'; named groups: none"):
        sprinkler().reweight(J=1.0)


@pytest.mark.parametrize("weight", [1e308, -1e308, 1.1e100])
def test_weights_whose_sums_could_overflow_are_refused(weight: float) -> None:
    said = r"; weights and log-potentials lie between -1e\+100 and 1e\+100"
    pairs = [[0, 1], [1, 2]]
    agree = AgreementFactors(pairs, [weight, 1.0])
    for make in (
        lambda: FactorGraph({"a": 2}, log_factors=[("a", [0.0, weight])]),
        lambda: FactorGraph(3, groups=[TableFactors([[0]], [[0.0, weight]])], states=2),
        lambda: FactorGraph(3, groups=[SpinFactors(pairs, [weight, 1.0])], states=2),
        lambda: FactorGraph(3, groups=[agree], states=3),
        lambda: ising_grid((3, 3), coupling=weight),
        lambda: ising_grid((3, 3), field=weight),
        lambda: potts_grid((2, 2), 3, coupling=weight),
        lambda: distance_potts(np.eye(3), 2, beta=weight),
        lambda: ising_grid((3, 3)).reweight(couplings=weight),
    ):
        with pytest.raises(ModelError, match=said):
            make()
    hard = FactorGraph({"a": 2}, log_factors=[("a", [0.0, -np.inf])])
    assert hard.log_potential([1]) == -math.inf


def test_conditional_tables_must_be_normalised_over_the_child() -> None:
    child_last = [[0.9, 0.1], [0.25, 0.75]]
    network = FactorGraph({"A": 2, "B": 2}, [("A", [0.5, 0.5]), (("A", "B"), child_last)], directed=True)
    assert all(group.directed for group in network.groups)
    with pytest.raises(
        ModelError,
        match=r"^factors\[0\] over \(B, A\) is declared conditional but at B=0 sums to 1\.15 over "
        r"its last site 'A'; put the child last and normalise, or pass directed=False\.$",
    ):
        FactorGraph({"A": 2, "B": 2}, [(("B", "A"), np.transpose(child_last))], directed=True)
    with pytest.raises(ModelError, match=r"conditional but sums to 0\.5 over its last site 'A'"):
        FactorGraph({"A": 2}, [("A", [0.25, 0.25])], directed=True)


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (
            [("a", [0.3, 0.7]), ("b", [0.5, 0.5]), ("c", [0.5, 0.5]), ("a", [0.3, 0.7])],
            r"^the site 'a' has two conditional tables, over \(a\) and over \(a\); each site of a ",
        ),
        (
            [("a", [0.3, 0.7]), ("b", [0.5, 0.5]), (("b", "a"), EVEN), ("c", [0.5, 0.5])],
            r"^the site 'a' has two conditional tables, over \(a\) and over \(b, a\); each site of a ",
        ),
        ([("a", [0.3, 0.7]), (("a", "c"), EVEN)], r"^the site 'b' has no conditional table; each site of a "),
        (
            [(("a", "b"), EVEN), (("b", "a"), EVEN), ("c", [0.5, 0.5])],
            r"^the conditional tables form a cycle, 'b' -> 'a' -> 'b'; no site of a Bayesian network ",
        ),
        (
            [(("c", "a"), EVEN), (("a", "b"), EVEN), (("b", "c"), EVEN)],
            r"^the conditional tables form a cycle, 'b' -> 'c' -> 'a' -> 'b'; no site of a Bayesian ",
        ),
        (
            [("a", [0.3, 0.7]), ("b", [0.5, 0.5]), ("c", [0.5, 0.5]), ((), 2.0)],
            r"^factors\[3\] has no site, so it is no conditional table; remove it\.$",
        ),
    ],
)
def test_a_directed_model_is_a_bayesian_network(factors: list[Any], message: str) -> None:
    FactorGraph(dict.fromkeys("abc", 2), factors)  # a product of factors has no such rules
    with pytest.raises(ModelError, match=message):
        FactorGraph(dict.fromkeys("abc", 2), factors, directed=True)


def test_conditional_tables_among_groups_give_no_site_two_of_them() -> None:
    law = TableFactors([[0, 1]], np.log([EVEN]), directed=True)
    assert FactorGraph(2, groups=[law], states=2).groups == (law,)  # other sites need no table
    with pytest.raises(ModelError, match=r"the site '1' has two conditional tables"):
        FactorGraph(2, groups=[law, law], states=2)
    whole = FactorGraph(2, [(0, [0.5, 0.5])], groups=[law], states=2, directed=True)
    assert whole.log_potential([0, 1]) == np.log(0.25)


def test_rounded_conditional_tables_are_accepted() -> None:
    assert FactorGraph({"A": 3}, [("A", [0.333, 0.333, 0.333])], directed=True).groups[0].directed


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"A": "no", "B": "lo"}, r"no state for the site 'C'"),
        ({"A": "no", "B": "low", "C": 1}, r"site 'B' has no state 'low'"),
        ({"A": "no", "B": 0, "C": 1}, r"site 'B' has no state 0"),
        ({"Q": "no"}, r"the assignment names an unknown site 'Q'"),
        ([0, 0], r"state codes must be 3 integers, one per site, got int64 of shape \(2,\)"),
        ([0.0, 0.0, 0.0], r"got float64 of shape \(3,\)"),
        ([0, 3, 0], r"site 'B' has no state code 3; codes run from 0 to 2"),
        ([-1, 0, 0], r"site 'A' has no state code -1"),
    ],
)
def test_bad_assignments(x: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        sprinkler().log_potential(x)


def test_reweight_shares_structure_and_leaves_the_original() -> None:
    model = ising(([0, 1], [1, 2], [0.5, -0.5]), fields=[0.1, 0.2, 0.3])
    other = model.reweight(couplings=[1.0, 2.0], fields=0.0)
    assert other.shared is model.shared
    assert other.group("couplings").scopes is model.group("couplings").scopes
    assert other.log_potential([1, 1, 1]) == 3.0
    assert model.log_potential([1, 1, 1]) == pytest.approx(0.6)
    assert model.observe({0: 1}).shared is not model.shared


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"couplings": [1.0]}, r"group 'couplings' has 2 factors here, .* got shape \(1,\)"),
        ({"couplings": [1.0, np.nan]}, r"factor 1 of group 'couplings' over \(1, 2\) .* nan"),
        ({"J": 1.0}, r"there is no factor group 'J'; named groups: 'couplings', 'fields'"),
    ],
)
def test_bad_weights(weights: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        ising(([0, 1], [1, 2], [0.5, -0.5])).reweight(**weights)


def test_digest_depends_on_content_only() -> None:
    models = [
        sprinkler(),
        FactorGraph(SITES, [(("A", "B"), PAIR), ("A", [0.6, 0.5])]),
        FactorGraph({**SITES, "C": [2]}, [(("A", "B"), PAIR), ("A", [0.6, 0.4])]),
        FactorGraph(dict(zip("ABD", SITES.values(), strict=True)), [(("A", "B"), PAIR)]),
        sprinkler().observe({"A": "no"}),
        sprinkler().observe({"A": "yes"}),
        sprinkler().observe({"A": [1, 0.5]}),
        FactorGraph(4, states=2),
        FactorGraph(5, states=2),
        ising_grid((3, 4)),
        ising_grid((4, 3)),
        ising_grid((3, 4), periodic=True),
        ising_grid((3, 4), coupling=0.3),
        potts(([0], [1], [1.0]), 3),
    ]
    digests = [model.digest for model in models]
    assert len(set(digests)) == len(models)
    assert digests[0] == sprinkler().digest
    assert digests[9] == ising_grid((3, 4), coupling=0.1).reweight(couplings=0.2).digest


@pytest.mark.parametrize("model", [sprinkler(), sprinkler().observe({"A": "no"}), ising_grid((3, 3))])
def test_pickle(model: FactorGraph) -> None:
    model.shared.put([1.0] * 1000)
    again = pickle.loads(pickle.dumps(model))
    assert again.digest == model.digest
    assert again.sites == model.sites
    assert again.evidence == model.evidence
    assert again.shared.get(list) is None


def test_how_it_looks() -> None:
    model = sprinkler()
    assert repr(model) == "FactorGraph(3 sites of 1 to 3 states, 2 factors in 2 groups)"
    seen = model.observe({"A": "no", "B": "lo"})
    assert repr(seen) == "FactorGraph(1 site of 1 state, 0 factors in 0 groups, 2 observed)"
    assert repr(FactorGraph({})) == "FactorGraph(0 sites, 0 factors in 0 groups)"
    html = FactorGraph({"<b>": ["x", "y"], "c": 2}).observe({"<b>": "x"})._repr_html_()
    assert "&lt;b&gt; = x" in html
    assert "<b>" not in html
    grid = ising_grid((1000, 1000))._repr_html_()
    assert ">1,998,000</td>" in grid
    assert len(grid) < 2000  # not a name for each site
