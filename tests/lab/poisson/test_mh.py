"""Functions of ``gibbsite.lab.poisson.mh`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.poisson.mh import list_methods


def test_list_methods_returns_poisson_mh_with_the_lambda_of_the_paper_and_tunamh() -> None:
    assert list(list_methods()) == ["Poisson-MH", "TunaMH"]
