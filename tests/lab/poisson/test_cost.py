"""Functions of ``gibbsite.lab.poisson.cost`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.poisson.cost import Setting, make_kernel, predict


def test_make_kernel_returns_the_kernel_of_a_method_with_minibatches_as_the_theorems() -> None:
    assert repr(make_kernel("DoubleMIN", Setting(4, 9, 2.0))) == "DoubleMinGibbs(minibatch=4.0, second=100.0)"


def test_predict_returns_about_how_many_factors_an_update_looks_at_to_choose_how_many() -> None:
    assert predict("MIN-Gibbs", Setting(4, 9, 2.0)) == 400.0
