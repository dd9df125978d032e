"""Functions of ``gibbsite.lab.findings`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.findings import Claim, all_hold, compare_claims


def test_compare_claims_makes_the_table_of_what_a_paper_says_what_is_found_here() -> None:
    assert compare_claims(Claim("errors fall like 1 / T", "slope -1.02", True)).rows == [
        ("errors fall like 1 / T", "slope -1.02", "holds")
    ]


def test_a_claim_holds_or_does_not_or_is_not_tested() -> None:
    table = compare_claims(*(Claim("a", "b", holds) for holds in (np.True_, np.False_, None)))
    assert table.column("verdict") == ["holds", "does not hold", "not tested at this size"]


def test_claims_about_several_facts_hold_if_all_of_them_do() -> None:
    assert all_hold([True, True]) is True
    assert all_hold([True, None]) is None
    assert all_hold([None, False, True]) is False
    assert all_hold(iter([])) is True
