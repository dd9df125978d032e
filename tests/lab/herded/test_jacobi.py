"""Jacobi herding: the limit of random Jacobi updates, what herded runs read, and where they say that they are wrong."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.lab.chains import follow
from gibbsite.lab.herded.jacobi import JacobiHerdedGibbs, jacobi_limit, make_models


def cycle(n: int) -> gs.FactorGraph:
    """A cycle of sites with different fields."""
    couplings = 0.5 * (np.eye(n, k=1) + np.eye(n, k=1 - n))
    return gs.ising(couplings + couplings.T, np.linspace(0.05, 0.4, n) ** 1.3)


@pytest.mark.parametrize("model", [cycle(3), cycle(4), gs.ising_grid((2, 2), coupling=0.3, field=0.1)])
def test_the_limit_is_kept_by_random_jacobi_updates(model: gs.FactorGraph) -> None:
    """The transition matrix is written here once more, state by state."""
    n = model.n_sites
    law = jacobi_limit(model)
    states = list(product((0, 1), repeat=n))
    log = {x: model.log_potential(np.array(x, np.int32)) for x in states}
    matrix = np.ones((len(states), len(states)))
    for a, x in enumerate(states):
        for i in range(n):
            other = (*x[:i], 1 - x[i], *x[i + 1 :])
            up = 1.0 / (1.0 + np.exp((log[other] - log[x]) * (1 if x[i] else -1)))
            matrix[a] *= [up if y[i] else 1.0 - up for y in states]
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-12)
    assert law.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "right"), [(4, True), (3, False)])
def test_marginals_are_right_without_odd_cycles_only(n: int, right: bool) -> None:
    model, exact = cycle(n), gs.solve_exact(cycle(n))
    law = jacobi_limit(model).reshape((2,) * n)
    limit = law.sum(axis=tuple(range(1, n)))[1]
    assert (abs(limit - exact.joint(0)[1]) < 1e-10) == right
    assert abs(law.sum(axis=tuple(range(2, n)))[1, 1] - exact.joint(0, 1)[1, 1]) > 0.02  # neighbours
    record = gs.recorders.Joint([tuple(model.sites[:2])])
    found = follow(model, JacobiHerdedGibbs(), np.array([100_000]), record)[0, 0].reshape(2, 2)
    chromatic = follow(model, gs.HerdedGibbs(), np.array([100_000]), record, scan=gs.Chromatic())[0, 0].reshape(2, 2)
    truth = exact.joint(0, 1)
    assert np.abs(found - truth).max() > 0.02 > 5.0 * np.abs(chromatic - truth).max()


def test_it_reads_the_states_of_the_sweep_before() -> None:
    """Two sites that must be equal swap their states forever if both are updated at once."""
    model = gs.FactorGraph(2, [((0, 1), [[1.0, 1e-12], [1e-12, 1.0]])], states=2)
    chains = gs.PersistentChains(model, JacobiHerdedGibbs(gs.HerdedGibbs(start=0.5)), chains=1, rng=1, start=[[0, 1]])
    seen = [chains.run(1).states[0].tolist() for _ in range(4)]
    assert seen == [[1, 0], [0, 1], [1, 0], [0, 1]]


def test_it_says_where_it_fails_and_refuses_other_scans() -> None:
    kernel = JacobiHerdedGibbs()
    for model, text in ((cycle(3), "marginals and joint probabilities are wrong"), (cycle(4), "become independent")):
        with pytest.warns(gs.ConvergenceWarning, match=text):
            gs.sample(model, kernel, scan=gs.Systematic(), sweeps=50, progress=False, rng=1)
    with pytest.raises(gs.errors.IncompatibleError, match="every site once per sweep"):
        gs.sample(cycle(4), kernel, scan=gs.RandomScan(), sweeps=50, progress=False, rng=1)
    assert kernel.warnings(None, gs.graphs.compile_graph(gs.ising(np.zeros((2, 2)), [0.1, 0.3])), gs.Systematic()) == ()


def test_the_models_differ_in_their_cycles() -> None:
    colors = [int(gs.graphs.color_sites(gs.graphs.compile_graph(m)).max()) + 1 for m in make_models(1).values()]
    assert colors == [2, 3, 7]
