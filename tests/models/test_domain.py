"""Names, labels and codes, and what the messages say when they do not fit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from gibbsite.errors import ModelError
from gibbsite.models import potts
from gibbsite.models.domain import Domains, SiteNames, frozen, make_domains


def test_mapping_keeps_order_names_and_labels() -> None:
    domains = make_domains({"b": ["x", "y"], "a": 3, "c": ["x", "y"]})
    assert domains.names.all() == ("b", "a", "c")
    assert domains.cards.tolist() == [2, 3, 2]
    assert [domains.labels(k) for k in range(3)] == [("x", "y"), (0, 1, 2), ("x", "y")]
    assert len(domains.kinds) == 2, "equal label tuples are stored once"


def test_equal_sites_cost_nothing_each() -> None:
    domains = make_domains(10**7, states=2)
    assert domains.cards.strides == (0,)
    assert domains.kind_of.strides == (0,)
    assert len(pickle.dumps(domains)) < 2000


def test_labels_of_equal_value_but_other_type_stay_apart() -> None:
    domains = make_domains({"a": [0, 1], "b": [False, True], "c": ["0", "1"]})
    assert repr([domains.labels(k) for k in range(3)]) == "[(0, 1), (False, True), ('0', '1')]"


def test_numpy_labels_become_plain_objects() -> None:
    domains = make_domains({"a": np.array([3, 5]), "b": np.array(["u", "v"])})  # type: ignore[dict-item]
    assert [type(label) for label in domains.labels(0) + domains.labels(1)] == [int, int, str, str]


@pytest.mark.parametrize(("label", "code"), [(5, 0), ("5", 0), (np.int64(0), 1), ("0", 1)])
def test_a_label_is_never_a_position(label: object, code: int) -> None:
    assert make_domains({"a": [5, 0]}).code(0, label) == code


@pytest.mark.parametrize("label", [1, "1", "yess", None, [0], 0.5])
def test_unknown_label_lists_the_labels(label: object) -> None:
    with pytest.raises(ModelError, match=r"site 'a' has no state .*; its states are 'no', 'yes'"):
        make_domains({"a": ["no", "yes"]}).code(0, label)


def test_text_labels_accept_the_number_they_show() -> None:
    assert make_domains({"a": ["1", "0"]}).code(0, 1) == 0


@pytest.mark.parametrize("name", ["", "01", "+1", "-1", "1.0", "٣", " 1", "3"])
def test_implicit_names_are_exact(name: str) -> None:
    assert SiteNames(3).find(name) is None


def test_names_survive_removal() -> None:
    mask = np.array([True, False, True, False, True])
    for domains in (make_domains(5, 2), make_domains(list("abcde"), 2)):
        before = domains.names.all()
        kept = domains.keep(mask)
        again = kept.keep(np.array([False, True, True]))
        assert kept.names.all() == before[::2]
        assert again.names.all() == before[2::2]
        assert [again.names.find(name) for name in before] == [None, None, 0, None, 1]
        assert again.names[1] == before[4]


def test_names_that_count_up_are_implicit() -> None:
    assert make_domains(["0", "1", "2"], 2).names.identity() is None
    assert make_domains(["0", "2", "1"], 2).names.identity() == ("0", "2", "1")


@pytest.mark.parametrize("domains", [make_domains(4, 3), make_domains({"a": 2, "b": 3})])
def test_pickle(domains: Domains) -> None:
    again = pickle.loads(pickle.dumps(domains))
    assert again.names.all() == domains.names.all()
    assert again.cards.tolist() == domains.cards.tolist()
    assert not again.cards.flags.writeable


def test_frozen_copies_only_what_others_can_write() -> None:
    mine = np.arange(3.0)
    kept = frozen(mine, np.float64)
    mine[0] = 7.0
    assert kept[0] == 0.0
    assert mine.flags.writeable
    assert not kept.flags.writeable
    assert frozen(kept, np.float64) is kept


@pytest.mark.parametrize(
    ("sites", "states", "message"),
    [
        (["a", "b", "a"], 2, r"site name 'a' is given twice"),
        ({"a": []}, None, r"site 'a' has no states"),
        ({"a": 0}, None, r"site 'a' has no states"),
        ({"a": ["x", "y", "x"]}, None, r"site 'a' has the state label 'x' twice"),
        ({"a": [1, "1"]}, None, r"site 'a' has the state label '1' twice"),
        ({"a": [1, True]}, None, r"site 'a' has the state label True twice"),
        ({"a": [0.5, 1]}, None, r"site 'a' has the state label 0.5 \(float\)"),
        ({"a": "xy"}, None, r"site 'a' needs a sequence of state labels .* got 'xy'"),
        ({"a": None}, None, r"site 'a' needs a sequence of state labels"),
        ({"a": 2}, 2, r"states= is given twice"),
        ({3: 2}, None, r"a site name must be a string, got 3 \(int\)"),
        (["a", "b"], None, r"the sites have no states; pass states=2"),
        (5, None, r"the sites have no states"),
        (-1, 2, r"must not be negative, got -1"),
        ("abc", 2, r"not the single string 'abc'"),
        (3, 0, r"every site has no states"),
        ({"a": True}, None, r"site 'a' needs a sequence of state labels or a number of states, got True"),
        (2**31, 2, r"fewer than 2\*\*31 sites, got 2,147,483,648"),
    ],
)
def test_bad_sites(sites: object, states: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make_domains(sites, states)  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [32_768, 10**15, [str(k) for k in range(32_768)]])
def test_too_many_states_are_refused_before_they_are_listed(states: Any) -> None:
    for sites, each in (({"a": states}, None), (3, states)):
        with pytest.raises(ModelError, match=r"has more than 32,767 states.*; join states, split the site"):
            make_domains(sites, each)
    with pytest.raises(ModelError, match=r"every site has more than 32,767 states"):
        potts(([0], [1], 1.0), states)
    assert make_domains(1, 32_767).cards.tolist() == [32_767]


@pytest.mark.parametrize(
    ("site", "message"),
    [
        ("SMOKNG", r"there is no site 'SMOKNG'; did you mean 'SMOKING'\?"),
        ("zzz", r"there is no site 'zzz'; the sites are 'SMOKING', 'CANCER'"),
        (2, r"there is no site at position 2; positions run from 0 to 1"),
        (-1, r"there is no site at position -1"),
        (True, r"give a name \(str\) or a position \(int\)"),
        (1.0, r"give a name \(str\) or a position \(int\)"),
    ],
)
def test_unknown_site(site: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make_domains(["SMOKING", "CANCER"], 2).position(site)


def test_unknown_site_of_an_empty_or_huge_model() -> None:
    with pytest.raises(ModelError, match="the model has no sites"):
        make_domains({}).position("a")
    with pytest.raises(ModelError, match="the model is empty"):
        make_domains(0, 2).position(0)
    with pytest.raises(ModelError, match=r"the sites are '0', '1', .*'7', \.\.\."):
        make_domains(10**6, 2).position("x")
