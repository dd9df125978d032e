"""Independence Metropolis from mini-buckets: exact transition matrices, and runs that can be continued."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.exact import enumerate_states
from gibbsite.inference.exact.plan import outline
from gibbsite.inference.exact.transition import unit_matrix
from gibbsite.inference.importance.mini_buckets.buckets import largest_table
from gibbsite.testing import check_kernel
from tests.inference.importance.models import random_model

pytestmark = pytest.mark.long

# Of up to 300 states, by the number that makes them; every third has zeros, some have tables of four sites.
SMALL = [n for n in range(120) if random_model(n).cards.prod() <= 300]


def smallest(model: gs.FactorGraph) -> gs.importance.MiniBucketMetropolis:
    """Return the kernel with the smallest tables, that is most splits."""
    return gs.importance.MiniBucketMetropolis(entries=max(2, largest_table(outline(model))))


def test_the_law_is_stationary_and_in_detailed_balance_where_buckets_are_split() -> None:
    split = rejecting = 0
    for number in SMALL:
        model = random_model(number)
        graph, exact, kernel = gs.graphs.compile_graph(model), enumerate_states(model), smallest(model)
        matrix = unit_matrix(exact, graph, kernel, 0)
        law = exact.probabilities
        assert np.abs(matrix.sum(axis=1)[law > 0] - 1.0).max() < 1e-12
        assert np.abs(law @ matrix - law).max() < 1e-12
        flow = law[:, None] * matrix
        assert np.abs(flow - flow.T).max() < 1e-12
        split += kernel.summary(graph)["splits"] > 0
        rejecting += bool(np.abs(matrix - law).max() > 1e-3)
        if not kernel.summary(graph)["splits"]:
            assert np.abs(matrix[law > 0] - law).max() < 1e-12  # independent draws
            assert kernel.independent(graph)
    assert split >= 10
    assert rejecting >= 10


def triangles() -> gs.FactorGraph:
    """Five sites that all meet, with one impossible pair."""
    rng = np.random.default_rng(3)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    tables = np.exp(rng.normal(size=(len(pairs), 2, 2)))
    tables[0, 0, 0] = 0.0
    return gs.FactorGraph(
        {f"v{i}": 2 for i in range(5)}, [((f"v{i}", f"v{j}"), t) for (i, j), t in zip(pairs, tables, strict=True)]
    )


def test_draws_of_the_compiled_loop_follow_the_law() -> None:
    kernel = gs.importance.MiniBucketMetropolis(entries=4)
    model = triangles()
    assert kernel.summary(gs.graphs.compile_graph(model))["splits"] > 0
    report = check_kernel(kernel, models={"triangles": model})
    assert report.passed, str(report)
    found = gs.sample(model, kernel, sweeps=4000, rng=1, progress=False)
    assert 0.2 < found.report["accepted"] < 1.0
    exact = gs.solve_exact(model)
    for site in model.sites:  # seven standard errors: a false alarm has a chance below 1e-10
        assert abs(found.marginals[site][1] - exact.marginals[site][1]) < 7 * found.mcse[site][1]


def test_without_splits_every_proposal_is_accepted() -> None:
    found = gs.sample(triangles(), gs.importance.MiniBucketMetropolis(), sweeps=1000, rng=1, progress=False)
    assert found.report["accepted"] == 1.0
    assert found.diagnostics.converged


def test_a_run_that_is_continued_equals_one_that_was_not_interrupted(tmp_path: Path) -> None:
    kernel, model = gs.importance.MiniBucketMetropolis(entries=4), triangles()
    whole = gs.sample(model, kernel, sweeps=700, warmup=50, rng=1, record="draws", progress=False)
    path = tmp_path / "run.npz"
    gs.sample(model, kernel, sweeps=300, warmup=50, rng=1, record="draws", progress=False, checkpoint=path)
    again = gs.sample(
        model,
        kernel,
        sweeps=700,
        warmup=50,
        rng=1,
        record="draws",
        progress=False,
        checkpoint=gs.Checkpoint(path, resume=True),
    )
    assert again.marginals == whole.marginals


def test_tables_that_are_too_small_are_refused() -> None:
    with pytest.raises(gs.errors.IncompatibleError, match="entries=3 is less than the largest table of the model has"):
        gs.sample(triangles(), gs.importance.MiniBucketMetropolis(entries=3), sweeps=10, rng=1, progress=False)
    with pytest.raises(gs.errors.ArgumentError, match="entries must be a whole number of at least 2"):
        gs.importance.MiniBucketMetropolis(entries=1)
