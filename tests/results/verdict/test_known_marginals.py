"""Tiny models are compared with their exact marginals before chains are started elsewhere."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.batch import sample_batch
from gibbsite.results.verdict import dispersed_starts, known_marginals
from gibbsite.results.verdict.known_marginals import solve_parts, solve_together
from gibbsite.sampling.setup import prepare


def three_states() -> gs.FactorGraph:
    """Return a ring of five sites with three states, with factors of one to three sites and two named groups."""
    rng = np.random.default_rng(4)
    scopes = np.array([(k, (k + 1) % 5) for k in range(5)], np.int32)
    groups = [
        gs.models.TableFactors(scopes, rng.normal(size=(5, 3, 3)), name="pairs"),
        gs.models.TableFactors(np.arange(5, dtype=np.int32)[:, None], rng.normal(size=(5, 3)), name="fields"),
        gs.models.TableFactors(np.array([[0, 2, 4]], np.int32), rng.normal(size=(1, 3, 3, 3))),
    ]
    return gs.FactorGraph(5, groups=groups, states=3)


@pytest.mark.parametrize(
    "models",
    [
        [gs.ising_grid((3, 4), coupling=w, field=h) for w, h in ((0.1, 0.3), (0.4, -0.2))],
        [gs.ising_grid((3, 3), coupling=0.2).reweight(couplings=w) for w in (0.1, 0.5)],
        [three_states().reweight(pairs=np.random.default_rng(k).normal(size=(5, 3, 3))) for k in range(3)],
    ],
)
def test_models_solved_together_have_their_own_marginals(models: list[gs.FactorGraph]) -> None:
    first = models[0]
    alike = [first, *(first.reweight(**{g.name: g.weights for g in m.groups if g.name}) for m in models[1:])]
    setups = [prepare(model, chains=2, rng=1) for model in alike]
    together = solve_together(setups)
    for model, setup, known in zip(models, setups, together, strict=True):
        assert known is not None and known.parts is not None and known.parts.known.all() and not known.parts.large
        exact = gs.solve_exact(model).marginals
        wanted = [exact[site][1] if setup.graph.binary else p for site in model.sites for p in exact[site].values()]
        wanted = wanted[::2] if setup.graph.binary else wanted
        assert known.parts.cells == pytest.approx(wanted, abs=1e-10)
        alone = solve_parts(setup)
        assert alone is not None and known.parts.cells == pytest.approx(alone.cells, abs=1e-13)


def _chains(number: int) -> gs.FactorGraph:
    """Return a model of many chains of ten sites each."""
    names = [f"v{i}" for i in range(10 * number)]
    pairs = [(names[k], names[k + 1]) for k in range(len(names) - 1) if k % 10 != 9]
    return gs.FactorGraph(dict.fromkeys(names, 2), [(pair, [[2.0, 1.0], [1.0, 1.5]]) for pair in pairs])


def test_some_of_the_small_components_of_a_large_model_are_solved() -> None:
    model = _chains(1000)
    parts = solve_parts(prepare(model, chains=2, rng=1))
    exact = list(gs.solve_exact(_chains(1)).marginals.values())
    assert parts is not None and parts.known[:4090].all() and not parts.known[4100:].any() and not parts.large
    assert parts.cells[:4090] == pytest.approx(409 * [law[1] for law in exact], abs=1e-10)


def test_the_sites_of_large_components_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_marginals, "Neighbourhoods", None)
    assert solve_parts(prepare(gs.ising_grid((100, 100), coupling=0.1), chains=2, rng=1)) is None


def test_models_of_different_structure_are_solved_one_by_one() -> None:
    models = [gs.ising_grid((2, 3), coupling=0.1), gs.ising_grid((3, 3), coupling=0.1)]
    assert solve_together([prepare(model, chains=2, rng=1) for model in models]) == [None, None]


def test_no_chains_start_elsewhere_where_exact_marginals_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **more: Any) -> Any:
        raise AssertionError("a chain was started")

    monkeypatch.setattr(dispersed_starts.DispersedStarts, "examine", refuse)
    model = gs.ising_grid((4, 4), coupling=0.2)
    result = gs.sample(model, sweeps=4000, rng=1, progress=False)
    assert result.diagnostics.converged and result.diagnostics.figures["dispersed_starts"] == "exact marginals"
    assert "agrees with exact marginals" in result.summary()
    # what else is recorded has no exact answer at hand
    with pytest.raises(AssertionError, match="a chain was started"):
        gs.sample(model, sweeps=4000, rng=1, record="draws", progress=False)


def test_a_batch_is_judged_as_single_runs_are() -> None:
    grid, rng = gs.ising_grid((4, 4), coupling=0.3), np.random.default_rng(3)
    fields = np.concatenate([rng.normal(0.0, 0.5, (5, 16)), np.full((1, 16), 1e-9)])
    results = sample_batch(grid, fields=fields, sweeps=2000, rng=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        for row, result in zip(fields, results, strict=True):
            alone = gs.sample(grid.reweight(fields=row), sweeps=2000, rng=result.plan.entropy, progress=False)
            assert alone.diagnostics == result.diagnostics
            assert np.array_equal(alone.totals, result.totals)


def test_a_tiny_model_in_the_wrong_mode_is_refused() -> None:
    """Four chains that agree with each other, all of them in the mode of less weight."""
    sites = [f"x{k}" for k in range(6)]
    agree = [((a, b), np.exp(14.0 * np.eye(2))) for a, b in itertools.pairwise(sites)]
    model = gs.FactorGraph(dict.fromkeys(sites, 2), [*agree, ("x0", [1.0, 2.0])])
    given: dict[str, Any] = {"start": dict.fromkeys(sites, 0), "sweeps": 2000, "progress": False}
    with pytest.warns(gs.ConvergenceWarning, match="two groups of chains"):
        assert not gs.sample(model, rng=1, **given).diagnostics.converged
    assert known_marginals.is_tiny(prepare(model, chains=2, rng=1))
