"""Tables by site and state: both layouts, observed sites, arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gibbsite.models.domain import make_domains
from gibbsite.results.table import SiteTable, observed_cells


def mixed(**more: Any) -> SiteTable:
    domains = make_domains({"a": ["no", "yes"], "b": [10, 20, 30], "c": 1})
    return SiteTable(domains, np.array([0.25, 0.75, 0.5, 0.3, 0.2, 1.0]), **more)


def test_sites_by_name_and_position():
    table = mixed()
    assert table["a"] == table[0] == {"no": 0.25, "yes": 0.75}
    assert table["b"] == table[1] == {10: 0.5, 20: 0.3, 30: 0.2}
    assert table["c"] == {0: 1.0}
    assert list(table) == ["a", "b", "c"]
    assert len(table) == 3
    assert dict(table.items())["a"]["yes"] == 0.75


def test_values_are_plain_floats():
    assert all(type(number) is float for states in mixed().values() for number in states.values())


def test_binary_layout_stores_one_number_per_site():
    domains = make_domains(3, states=[-1, 1])
    table = SiteTable(domains, np.array([0.25, 0.5, 1.0]), binary=True)
    assert table["0"] == {-1: 0.75, 1: 0.25}
    assert table["2"] == {-1: 0.0, 1: 1.0}
    errors = SiteTable(domains, np.array([0.25, 0.5, 1.0]), binary=True, complement=False)
    assert errors["0"] == {-1: 0.25, 1: 0.25}
    assert errors.to_array().tolist() == [[0.25, 0.25], [0.5, 0.5], [1.0, 1.0]]


def test_observed_sites_come_last_and_can_be_asked_for():
    table = mixed(observed={"z": {"low": 0.0, "high": 1.0}})
    assert table["z"] == {"low": 0.0, "high": 1.0}
    assert list(table) == ["a", "b", "c", "z"]
    assert len(table) == 4
    assert "z" in table
    table["z"]["low"] = 7.0  # a copy: the table stays as it is
    assert table["z"]["low"] == 0.0


@pytest.mark.parametrize("site", ["d", 3, -1, 1.5, None, True, ["a"]])
def test_unknown_sites(site: Any):
    table = mixed()
    assert site not in table
    with pytest.raises(KeyError, match="no site"):
        table[site]
    assert table.get(site) is None


def test_a_misspelt_site_is_answered_with_the_nearest():
    domains = make_domains({"HYPOVOLEMIA": 2})
    with pytest.raises(KeyError, match="did you mean 'HYPOVOLEMIA'"):
        SiteTable(domains, np.array([0.5, 0.5]))["HYPOVOLEMA"]


def test_padding_with_zeros():
    assert mixed().to_array().tolist() == [[0.25, 0.75, 0.0], [0.5, 0.3, 0.2], [1.0, 0.0, 0.0]]


@given(st.lists(st.integers(1, 5), max_size=8), st.randoms(use_true_random=False))
def test_array_and_mapping_agree(cards: list[int], random: Any):
    domains = make_domains({f"s{k}": card for k, card in enumerate(cards)})
    cells = np.array([random.random() for _ in range(sum(cards))])
    table = SiteTable(domains, cells)
    array = table.to_array()
    assert array.shape == (len(cards), max(cards, default=1))
    for k, card in enumerate(cards):
        assert list(table[k].values()) == array[k, :card].tolist()
        assert not array[k, card:].any()


def test_short_text_for_large_tables():
    table = SiteTable(make_domains(10**6, states=2), np.full(10**6, 0.5), binary=True)
    assert len(repr(table)) < 200
    assert "1000000 sites" in repr(table)


def test_observed_cells():
    labels = {"z": ("low", "high")}
    assert observed_cells({"z": "high"}, labels, 1.0) == {"z": {"low": 0.0, "high": 1.0}}
    assert observed_cells({"z": "high"}, labels, 1.0, 1.0) == {"z": {"low": 1.0, "high": 1.0}}
