"""Expectations under a product law equal sums over all states, on every graph kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite._numba.jit import compiled_loop
from gibbsite.graphs.graph import KINDS
from gibbsite.inference.mean_field._sweep import ExpectationWorkspace, bound, make_workspace, mean_log_weights, sweep
from gibbsite.testing import tiny_models
from tests.inference.mean_field.oracle import Oracle, random_law

#: Noisy nodes are taken as tables, whose zeros contradict each other at corners, where no best law exists.
MODELS = {name: model for name, model in tiny_models().items() if name != "causes"}
TAKEN = [kind for kind in KINDS if kind != "causes"]


@compiled_loop
def _mean_log_weights(graph, q, i, workspace) -> None:
    mean_log_weights(graph, q, i, workspace)


def cases(kind: str) -> Iterator[tuple[str, Oracle, gs.graphs.Graph]]:
    found = 0
    for name, model in MODELS.items():
        try:
            graph = gs.graphs.compile_graph(model, kind)
        except gs.errors.IncompatibleError:
            continue
        found += 1
        yield name, Oracle(model), graph
    assert found


def laws(oracle: Oracle, rng: np.random.Generator) -> Iterator[list[NDArray[np.float64]]]:
    """Laws inside the simplex, on its faces, at its corners."""
    for sparse in (0.0, 0.0, 0.5, 0.5, 1.0):
        yield random_law(oracle.cards, rng, sparse)


@pytest.mark.parametrize("kind", TAKEN)
def test_the_bound_is_mean_log_potential_plus_entropy(kind: str) -> None:
    rng = np.random.default_rng(1)
    for name, oracle, graph in cases(kind):
        workspace = make_workspace(graph)
        for law in laws(oracle, rng):
            found = bound(graph.arrays, oracle.cells(law, graph), workspace) + graph.log_offset
            assert found == pytest.approx(oracle.bound(law), rel=1e-11, abs=1e-11), name
            assert found <= oracle.exact.log_z + 1e-11


@pytest.mark.parametrize("kind", ["potts", "pairwise", "table"])
def test_mean_log_weights_are_conditional_means(kind: str) -> None:
    rng = np.random.default_rng(2)
    for name, oracle, graph in cases(kind):
        workspace: ExpectationWorkspace = make_workspace(graph)
        for law in laws(oracle, rng):
            q = oracle.cells(law, graph)
            for site, size in enumerate(oracle.cards):
                _mean_log_weights(graph.arrays, q, np.uintp(site), workspace)
                found = np.where(workspace.barred[:size] > 0, -np.inf, workspace.logs[:size])
                wanted = oracle.mean_log_weights(law, site)
                if np.isneginf(wanted).all():
                    # the oracle sees all factors, a site its own: elsewhere the others may be in conflict
                    continue
                known = found > -np.inf
                assert (np.isneginf(wanted) >= np.isneginf(found)).all(), name
                shift = wanted[known] - found[known]
                assert np.allclose(shift, shift[:1], rtol=0, atol=1e-9), name


@pytest.mark.parametrize("damping", [1.0, 0.3])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("kind", TAKEN)
def test_a_sweep_equals_its_twin(kind: str, parallel: bool, damping: float) -> None:
    rng = np.random.default_rng(3)
    for name, oracle, graph in cases(kind):
        if name in ("mixed", "tables"):  # positive laws are in conflict with their zeros; see below
            continue
        law = random_law(oracle.cards, rng, 0.0)
        if name == "agreements":
            for site, logs in enumerate(oracle.unary_zeros()):
                law[site] = np.where(logs, 0.0, law[site]) / np.where(logs, 0.0, law[site]).sum()
        q = oracle.cells(law, graph)
        fresh = np.empty_like(q) if parallel else q
        change = sweep(graph.arrays, graph.n_sites, q, fresh, damping, make_workspace(graph))
        twin, twin_change = oracle.sweep(law, parallel, damping)
        assert np.allclose(fresh, oracle.cells(twin, graph), rtol=0, atol=1e-12), name
        assert change == pytest.approx(twin_change, abs=1e-12)
