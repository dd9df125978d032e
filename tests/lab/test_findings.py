"""Functions of ``gibbsite.lab.findings`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.findings import Claim, compare_claims


def test_compare_claims_makes_the_table_of_what_a_paper_says_what_is_found_here() -> None:
    assert compare_claims(Claim("errors fall like 1 / T", "slope -1.02", True)).rows == [
        ("errors fall like 1 / T", "slope -1.02", "yes")
    ]
