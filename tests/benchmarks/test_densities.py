"""The benchmark of log-densities times what it says: its targets, its movers, its peers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pytest

import gibbsite as gs
from benchmarks import densities
from benchmarks.loop import mover
from benchmarks.peers import densities as peers


def test_all_have_the_same_target() -> None:
    rng = np.random.default_rng(1)
    places = rng.standard_normal((5, densities.DIM))
    lags = np.abs(np.subtract.outer(np.arange(densities.DIM), np.arange(densities.DIM)))
    precision = np.linalg.inv(densities.RHO**lags)
    exact = [-0.5 * x @ precision @ x for x in places]
    np.testing.assert_allclose([densities.log_chain(x) for x in places], exact, rtol=1e-10)
    np.testing.assert_allclose(peers.log_chains(places), exact, rtol=1e-10)
    for x in places:
        np.testing.assert_allclose(densities.slope_chain(x), -precision @ x, rtol=1e-9)


@pytest.mark.long
def test_movers_move() -> None:
    mover(densities.chain_density(), gs.MALA(densities.STEP), start=np.zeros(densities.DIM))(50)
    model = densities.regression(200)
    mover(model, gs.kernels.SGLD(1e-4, 10), start=np.zeros(densities.COLUMNS))(50)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("emcee", lambda: peers.Emcee(3000)),
        ("blackjax", lambda: peers.BlackJax("walk", 20_000)),
        ("blackjax", lambda: peers.BlackJax("mala", 20_000)),
        ("numpy", lambda: peers.Ours(gs.Metropolis(scale=densities.SCALE, adapt=False), 20_000)),
    ],
)
def test_peers_sample_it(name: str, make: object) -> None:
    try:
        version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    player = make()  # type: ignore[operator]
    player.run(1)
    assert 0.6 < player.variance() < 1.5  # a wrong scale of the target would be far outside
