"""Comparison of answers: known distances, matching by name, errors, size."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsite as gs
from gibbsite.models.domain import make_domains
from gibbsite.results import SiteTable, compare
from gibbsite.results.table import observed_cells

SITES = {"a": ["no", "yes"], "b": [10, 20, 30]}


class Answer(NamedTuple):
    marginals: SiteTable
    mcse: SiteTable | None = None


def table(cells: Any, sites: Any = None, **more: Any) -> SiteTable:
    return SiteTable(make_domains(sites or SITES), np.array(cells, float), **more)


def test_distances_by_hand():
    found = compare(table([0.25, 0.75, 0.5, 0.3, 0.2]), table([0.35, 0.65, 0.1, 0.3, 0.6]))
    assert found.sites == 2
    assert found.max_abs == pytest.approx(0.4)
    assert found.mean_abs == pytest.approx((0.1 + 0.1 + 0.4 + 0.4) / 5)
    assert (found.site, found.state) == ("b", 10)
    assert found.max_tv == pytest.approx(0.4)
    assert found.mean_tv == pytest.approx(0.25)
    a = np.sqrt(0.5 * ((0.25**0.5 - 0.35**0.5) ** 2 + (0.75**0.5 - 0.65**0.5) ** 2))
    b = np.sqrt(0.5 * ((0.5**0.5 - 0.1**0.5) ** 2 + (0.2**0.5 - 0.6**0.5) ** 2))
    assert found.max_hellinger == pytest.approx(b)
    assert found.mean_hellinger == pytest.approx((a + b) / 2)
    assert found.max_z is None
    assert [(row.site, row.state) for row in found.worst] == [("b", 10), ("a", "no")]


def test_standard_errors_of_both_add_up():
    one = Answer(table([0.4, 0.6, 0.5, 0.3, 0.2]), table([0.03, 0.03, 0.1, 0.1, 0.1]))
    two = Answer(table([0.5, 0.5, 0.5, 0.3, 0.2]), table([0.04, 0.04, 0.0, 0.0, 0.0]))
    found = compare(one, two)
    assert found.max_z == pytest.approx(0.1 / 0.05)
    assert (found.z_site, found.z_state) == ("a", "no")
    assert found.worst[0].z == pytest.approx(2.0)
    assert compare(one, two.marginals).max_z == pytest.approx(0.1 / 0.03)


def test_no_error_but_a_difference_is_infinitely_far():
    one = Answer(table([0.4, 0.6, 0.5, 0.3, 0.2]), table([0.0, 0.0, 0.1, 0.1, 0.1]))
    assert compare(one, table([0.5, 0.5, 0.5, 0.3, 0.2])).max_z == np.inf
    assert compare(one, table([0.4 + 1e-12, 0.6, 0.5, 0.3, 0.2])).max_z == 0.0


def test_exact_answers_have_no_error_to_scale_by():
    zeros = table([0.0] * 5)
    one, two = Answer(table([0.4, 0.6, 0.5, 0.3, 0.2]), zeros), table([0.5, 0.5, 0.5, 0.3, 0.2])
    assert compare(one, two).max_z is None


def test_order_of_sites_and_states_does_not_matter():
    one = table([0.25, 0.75, 0.5, 0.3, 0.2])
    two = table([0.2, 0.5, 0.3, 0.75, 0.25], {"b": [30, 10, 20], "a": ["yes", "no"]})
    found = compare(one, two)
    assert found.max_abs == 0.0
    assert found.sites == 2


def test_layouts_may_differ():
    domains = make_domains(2, states=[0, 1])
    one = SiteTable(domains, np.array([0.25, 0.5]), binary=True)
    two = SiteTable(make_domains(2, states=[0, 1]), np.array([0.75, 0.25, 0.4, 0.6]))
    assert compare(one, two).max_abs == pytest.approx(0.1)
    assert compare(two, one).mean_abs == pytest.approx(0.05)


def test_a_site_may_be_observed_in_one_answer():
    free = table([0.25, 0.75, 0.5, 0.3, 0.2])
    seen = observed_cells({"a": "yes"}, {"a": ("no", "yes")}, 1.0)
    fixed = table([0.5, 0.3, 0.2], {"b": [10, 20, 30]}, observed=seen)
    found = compare(free, fixed)
    assert (found.sites, found.site, found.max_abs) == (2, "a", 0.25)
    both = compare(fixed, fixed)
    assert both.sites == 1  # a site observed alike in both is not counted
    other = table([0.5, 0.3, 0.2], {"b": [10, 20, 30]}, observed=observed_cells({"a": "no"}, {"a": ("no", "yes")}, 1.0))
    assert compare(fixed, other).max_abs == 1.0


def test_nothing_left_to_compare():
    seen = observed_cells({"a": "yes"}, {"a": ("no", "yes")}, 1.0)
    empty = SiteTable(make_domains({}), np.zeros(0), observed=seen)
    found = compare(empty, empty)
    assert (found.sites, found.max_abs, found.site) == (0, 0.0, None)
    assert "0 sites" in repr(found)


@pytest.mark.parametrize(
    ("sites", "cells", "message"),
    [
        ({"a": ["no", "yes"]}, [0.5, 0.5], "'b' is in the first"),
        ({**SITES, "c": 1}, [0.5, 0.5, 0.4, 0.3, 0.3, 1.0], "'c' is in the second"),
        ({"a": ["no", "yes"], "b": [10, 20, 40]}, [0.5, 0.5, 0.4, 0.3, 0.3], "'b' has the states"),
    ],
)
def test_different_sites_are_refused_by_name(sites: Any, cells: Any, message: str):
    with pytest.raises(gs.errors.ModelError, match=message):
        compare(table([0.25, 0.75, 0.5, 0.3, 0.2]), table(cells, sites))


def test_something_else_is_refused():
    with pytest.raises(gs.errors.ModelError, match="dict has none"):
        compare(table([0.25, 0.75, 0.5, 0.3, 0.2]), {"a": 1})  # type: ignore[arg-type]


def test_text_shows_places_and_numbers():
    text = repr(compare(table([0.25, 0.75, 0.5, 0.3, 0.2]), table([0.35, 0.65, 0.1, 0.3, 0.6])))
    assert "Comparison of 2 sites" in text
    assert "b = 10" in text
    assert "-4.00e-01" not in text
    assert "+4.00e-01" in text
    assert len({line.rstrip() for line in text.splitlines()}) == len(text.splitlines())


def test_plain_data():
    import json

    found = compare(table([0.25, 0.75, 0.5, 0.3, 0.2]), table([0.35, 0.65, 0.1, 0.3, 0.6]))
    assert json.loads(json.dumps(found.to_dict()))["worst"][0]["site"] == "b"


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_by_cell_and_by_name_agree(cards: list[int], seed: int):
    rng = np.random.default_rng(seed)
    sites = {f"s{k}": card for k, card in enumerate(cards)}
    turned = dict(reversed(sites.items()))
    p, q = ([rng.dirichlet(np.ones(card)) for card in cards] for _ in range(2))
    one = table(np.concatenate(p), sites)
    fast = compare(one, table(np.concatenate(q), sites))
    slow = compare(one, table(np.concatenate(q[::-1]), turned))
    for name in ("max_abs", "mean_abs", "mean_tv", "max_tv", "mean_hellinger", "max_hellinger"):
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), abs=1e-15)
    assert (fast.site, fast.state) == (slow.site, slow.state)


def test_a_million_sites():
    rng = np.random.default_rng(0)
    n = 10**6
    tables = [SiteTable(make_domains(n, states=2), rng.random(n), binary=True) for _ in range(2)]
    began = time.perf_counter()
    found = compare(*tables)
    assert time.perf_counter() - began < 10.0  # names are not made, nothing is looked up one by one
    assert found.sites == n
    assert found.max_abs == np.abs(tables[0].cells - tables[1].cells).max()


def test_sampled_against_exact():
    model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])]).observe({})
    result = gs.sample(model, sweeps=2000, rng=1, progress=False)
    found = gs.compare(result, gs.solve_exact(model))
    assert found.max_abs < 0.03
    assert found.max_z is not None
    assert found.max_z < 5.0
