"""Gaussian Gibbs keeps the law, has the autocorrelation it should have, and is the same on any threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gibbsite as gs
from tests.proofs.density_laws import FALSE_ALARM, Floats, Normal, move_each, p_value

MEAN = np.array([1.0, -2.0, 0.5, 3.0])


def covariance() -> Floats:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(4, 4))
    return a @ a.T + 0.5 * np.eye(4)


def field(side: int) -> Any:
    """Precision of a field on a grid."""
    line = sp.diags([-np.ones(side - 1), -np.ones(side - 1)], [1, -1])
    edges = sp.kron(sp.eye(side), line) + sp.kron(line, sp.eye(side))
    degree = np.asarray(abs(edges).sum(axis=1)).ravel()
    return (edges + sp.diags(degree + 0.3)).tocsr()


@pytest.mark.parametrize("scan", [gs.Systematic(), gs.RandomScan(), gs.Chromatic()], ids=str)
@pytest.mark.parametrize("relax", [0.0, 0.8])
def test_the_law_is_kept(relax: float, scan: gs.scans.Scan) -> None:
    law = Normal(MEAN, covariance())
    starts = law.draw(10_000, np.random.default_rng(6))
    ends = move_each(gs.Gaussian(MEAN, covariance()), gs.kernels.GaussianGibbs(relax), starts, 3, scan)
    assert (ends != starts).any(axis=1).all()
    assert p_value(law.law, ends) > FALSE_ALARM


@pytest.mark.parametrize("blocks", [[[0, 1], [2, 3]], [[3, 0, 2], [1, 2]], [[0, 1, 2, 3]]], ids=str)
def test_blocks_keep_the_law(blocks: Any) -> None:
    law = Normal(MEAN, covariance())
    starts = law.draw(10_000, np.random.default_rng(6))
    for scan in (gs.Systematic(), gs.RandomScan()):
        ends = move_each(gs.Gaussian(MEAN, covariance()), gs.kernels.BlockedGaussianGibbs(blocks), starts, 3, scan)
        assert p_value(law.law, ends) > FALSE_ALARM


def test_blocks_that_make_no_sense() -> None:
    for blocks, said in (([[0, 1]], "site 2 is in no block"), ([[0, 0], [1, 2, 3]], "twice"), ([[7]], "positions")):
        with pytest.raises(gs.errors.ModelError, match=said):
            gs.sample(
                gs.Gaussian(MEAN, covariance()), gs.kernels.BlockedGaussianGibbs(blocks), sweeps=1, progress=False
            )


def test_a_field_by_color() -> None:
    precision = field(4)
    law = Normal(np.zeros(16), np.linalg.inv(precision.toarray()))
    starts = law.draw(5000, np.random.default_rng(7))
    ends = move_each(gs.Gaussian(precision=precision), gs.kernels.GaussianGibbs(), starts, 3, gs.Chromatic())
    assert p_value(law.law, ends) > FALSE_ALARM


def test_colors_are_the_same_on_any_threads() -> None:
    model = gs.Gaussian(precision=field(150))  # 11,250 sites of a color: enough for two threads
    runs = [
        gs.sample(
            model,
            scan=gs.Chromatic(),
            sweeps=4,
            warmup=0,
            chains=1,
            threads=threads,
            rng=1,
            record=gs.Draws([0, 1, 9999]),
            progress=False,
        )
        for threads in (1, 2, 4)
    ]
    assert all(np.array_equal(runs[0].draws, run.draws) for run in runs[1:])


def test_the_autocorrelation_is_that_of_the_theory() -> None:
    target = gs.Gaussian(covariance=[[1.0, 0.8], [0.8, 2.0]])
    draws = gs.sample(target, sweeps=100_000, rng=1, record=gs.Draws(["0"]), progress=False).draws[..., 0]
    rho = (draws[:, 1:] * draws[:, :-1]).mean() / (draws**2).mean()
    # variance of the estimate of an AR(1) coefficient: (1 - rho^2) / n
    assert abs(rho - 0.32) < 5.5 * np.sqrt((1 - 0.32**2) / draws.size)


def test_condition_and_marginal() -> None:
    dense = gs.Gaussian(MEAN, covariance(), names=list("abcd"))
    same = gs.Gaussian(MEAN, precision=np.linalg.inv(covariance()), names=list("abcd"))
    thin = gs.Gaussian(MEAN, precision=sp.csr_array(np.linalg.inv(covariance())), names=list("abcd"))
    for model in (same, thin):
        for make in (lambda m: m.condition({"b": 1.0, "d": 2.5}), lambda m: m.marginal(["d", "a"])):
            assert np.allclose(make(model).mean, make(dense).mean)
            assert np.allclose(make(model).covariance, make(dense).covariance)
            assert make(model).sites == make(dense).sites


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: gs.Gaussian(), "one of the two"),
        (lambda: gs.Gaussian(covariance=[[1.0, 0.5], [0.4, 1.0]]), r"not symmetric: entry \(0, 1\) is 0.5"),
        (lambda: gs.Gaussian(covariance=[[1.0, 2.0], [2.0, 1.0]]), "smallest eigenvalue is -1"),
        (lambda: gs.Gaussian(precision=sp.csr_array([[1.0, 2.0], [2.0, 1.0]])), "smallest eigenvalue is -1"),
        (lambda: gs.Gaussian(precision=sp.csr_array([[-1.0]])), "diagonal entry 0 is -1"),
        (lambda: gs.Gaussian([1.0, 2.0, 3.0], np.eye(2)), "mean must be 2 numbers"),
        (lambda: gs.Gaussian(covariance=[[np.nan]]), "not finite"),
        (lambda: gs.Gaussian(covariance=np.eye(2), names=["a"]), "2 names"),
        (lambda: gs.Gaussian(covariance=np.eye(2)).condition({"7": 1.0}), "no site '7'"),
    ],
)
def test_what_makes_no_sense(make: Any, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        make()


def test_kernels_that_do_not_fit() -> None:
    target = gs.Gaussian(covariance=np.eye(2))
    with pytest.raises(gs.errors.ModelError, match="relax"):
        gs.sample(target, gs.kernels.GaussianGibbs(relax=1.0), sweeps=10, progress=False)
    with pytest.raises(gs.errors.IncompatibleError):
        gs.sample(target, gs.Gibbs(), sweeps=10, progress=False)


def test_exact_draws_forget_where_they_were() -> None:
    for model, law in (
        (gs.Gaussian(MEAN, covariance()), Normal(MEAN, covariance())),
        (gs.Gaussian(precision=field(4)), Normal(np.zeros(16), np.linalg.inv(field(4).toarray()))),
    ):
        ends = move_each(model, gs.kernels.ExactGaussian(), np.zeros((5000, model.n_sites)), 1)
        assert p_value(law.law, ends) > FALSE_ALARM


def test_a_factor_that_is_too_large() -> None:
    far = sp.diags([np.full(30_000, 3.0)], [0]).tocsr()
    dense = sp.lil_array((30_000, 30_000))
    dense[0, :] = dense[:, 0] = 1e-6
    star = gs.Gaussian(precision=(far + dense.tocsr()).tocsr())
    with pytest.raises(gs.errors.TooLargeError, match="GaussianGibbs"):
        gs.sample(star, gs.kernels.ExactGaussian(), sweeps=1, progress=False)
