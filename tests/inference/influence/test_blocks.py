"""Blocks as steps: their bound dominates exact block sampling, and optimising them never hurts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.inference.influence.blocks import collapse, descend_blocks
from gibbsite.inference.influence.descent import descend, make_workspace
from tests.inference.influence.random_models import random_model
from tests.inference.influence.test_certificate import distance_to_law


def block_matrix(exact: gs.exact.Enumeration, block: list[int]) -> NDArray[np.float64]:
    """Transition matrix of drawing a block jointly given the rest."""
    states, law = exact.states, exact.probabilities
    rest = [i for i in range(states.shape[1]) if i not in block]
    key = np.unique(states[:, rest], axis=0, return_inverse=True)[1].ravel()
    same = key[:, None] == key[None, :]
    matrix = same * law[None, :]
    total = matrix.sum(axis=1, keepdims=True)
    return np.where(total > 0, matrix / np.where(total > 0, total, 1.0), np.eye(len(law)))


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_dominates_exact_block_sampling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(str(rng.choice(["ising", "pairwise", "tables", "potts"])), rng)
    n = model.n_sites
    if n < 3 or n > 4:
        model = gs.ising_grid((2, 2), coupling=rng.normal(0, 0.3, (2, 2, 2)), field=rng.normal(size=(2, 2)))
        n = 4
    exact = gs.exact.enumerate(model)
    blocks = [sorted(rng.choice(n, int(rng.integers(1, n)), replace=False).tolist()) for _ in range(3)]
    sites = sorted(rng.choice(n, int(rng.integers(1, n + 1)), replace=False).tolist())
    order = rng.integers(0, 3, 6).tolist()
    try:
        found = gs.certify(model, scan=gs.influence.BlockOrder(blocks, order), target=sites)
    except gs.errors.ModelError as reason:
        assert "inside block" in str(reason)
        return
    matrix = np.eye(len(exact.states))
    for number in order:
        matrix = matrix @ block_matrix(exact, blocks[number])
    assert found.variation >= distance_to_law(exact, matrix, sites) - 1e-12


def test_blocks_of_one_site_are_sites() -> None:
    model = gs.ising_grid((4, 4), coupling=0.2, field=0.1)
    influence, weights = gs.influence.bound_influence(model), np.eye(16)[5] + 0.25
    single = collapse(influence, [np.array([i]) for i in range(16)])
    scan = np.resize(np.arange(16), 90).astype(np.int32)
    _, by_block = descend_blocks(single, influence, weights, scan)
    _, by_site = descend(influence, make_workspace(influence, weights), scan)
    assert by_block.before == pytest.approx(by_site.before, rel=1e-12)
    assert by_block.after == pytest.approx(by_site.after, rel=1e-9)


def plain_descent(
    dense: NDArray[np.float64], blocks: list[list[int]], weights: NDArray[np.float64], scan: NDArray[np.int32]
) -> float:
    """Coordinate descent with whole matrices; returns the variation it reaches."""
    n = len(dense)
    steps = []
    for block in blocks:
        rest = [i for i in range(n) if i not in block]
        move = np.eye(n)
        move[block] = 0.0
        move[np.ix_(block, rest)] = np.linalg.solve(
            np.eye(len(block)) - dense[np.ix_(block, block)], dense[np.ix_(block, rest)]
        )
        steps.append(move)
    bounds = [np.ones(n)]
    for a in scan:
        bounds.append(steps[a] @ bounds[-1])
    d = weights.astype(float)
    for t in range(len(scan) - 1, -1, -1):
        values = [d @ move @ bounds[t] for move in steps]
        best = int(np.argmin(values)) if min(values) < values[scan[t]] else scan[t]
        d = d @ steps[best]
    return float(d.sum())


@pytest.mark.parametrize("seed", range(15))
def test_the_descent_is_the_plain_one_and_never_worse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = gs.ising_grid((3, 4), coupling=rng.normal(0, 0.2, (2, 3, 4)), field=rng.normal(size=(3, 4)))
    influence = gs.influence.bound_influence(model)
    blocks = [[i, i + 1] for i in range(11)] + [[0, 4, 8], [3, 7, 11], [5, 6]]
    weights = rng.random(12) * (rng.random(12) < 0.5)
    scan = rng.integers(0, len(blocks), 40).astype(np.int32)
    rows = collapse(influence, [np.array(block) for block in blocks])
    new, gain = descend_blocks(rows, influence, weights, scan)
    assert gain.tracked == pytest.approx(gain.after, rel=1e-10)
    assert gain.after <= gain.before * (1 + 1e-12)
    assert gain.after == pytest.approx(plain_descent(influence.to_dense(), blocks, weights, scan), rel=1e-9)
    assert len(new) == 40


def test_dogs_takes_and_returns_blocks() -> None:
    model = gs.ising_grid((6, 6), coupling=0.2)
    rows = gs.influence.BlockOrder([[6 * r + c for c in range(6)] for r in range(6)])
    scan = gs.dogs(model, target=14, accuracy=0.01, initial=rows)
    assert isinstance(scan, gs.influence.BlockOrder)
    assert scan.variation is not None
    assert scan.variation <= 0.01
    assert gs.certify(model, scan=scan, target=14).variation == pytest.approx(scan.variation, rel=1e-12)
    assert len(scan.order) < len(gs.dogs(model, target=14, accuracy=0.01).order)
    assert gs.certify(model, scan=rows, sweeps=3).steps == 18


@pytest.mark.parametrize(
    ("scan", "said"),
    [
        (gs.influence.BlockOrder([]), "at least one block"),
        (gs.influence.BlockOrder([[0], []]), "Block 1"),
        (gs.influence.BlockOrder([[0, 0]]), "twice"),
        (gs.influence.BlockOrder(["ab"]), "Block 0"),
        (gs.influence.BlockOrder([[99]]), "99"),
        (gs.influence.BlockOrder([[0]], [0, 1]), "block 1"),
        (gs.influence.BlockOrder([[0]], [0.5]), "numbers"),
    ],
)
def test_bad_blocks_are_refused(scan: gs.influence.BlockOrder, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.certify(gs.ising_grid((2, 2)), scan=scan, steps=3)


def test_blocks_that_hold_too_much_influence_are_refused() -> None:
    with pytest.raises(gs.errors.ModelError, match="inside block 0"):
        gs.certify(gs.ising_grid((3, 3), coupling=2.0), scan=gs.influence.BlockOrder([list(range(6))]), steps=3)
