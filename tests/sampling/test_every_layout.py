"""Runs in every form: resumed, on any number of threads, with every recorder, they give the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import alone
from gibbsite.sampling import batched_layouts as forms
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import sweep_chain


def model(kind: str) -> gs.FactorGraph:
    rng = np.random.default_rng(3)
    if kind == "lattice":
        return gs.ising_grid((30, 41), coupling=0.3 * rng.normal(size=(2, 30, 41)), field=0.1)
    if kind == "potts":
        coupling, field = 0.5 * rng.normal(size=(2, 30, 41)), 0.3 * rng.normal(size=(30, 41, 3))
        return gs.potts_grid((30, 41), 3, coupling=coupling, field=field)
    i = rng.permutation(1200)
    pairs = np.stack([np.concatenate([i, i]), np.concatenate([np.roll(i, 1), rng.permutation(i)])], axis=1)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    return gs.ising((pairs[:, 0], pairs[:, 1], 0.3 * rng.normal(size=len(pairs))), 0.1 * rng.normal(size=1200))


def run(kind: str, chains: int, **settings: Any) -> gs.Result:
    options = {"sweeps": 60, "warmup": 10, "rng": 5, "criteria": gs.Criteria(dispersed_starts=False), **settings}
    return gs.sample(model(kind), scan=gs.Chromatic(), chains=chains, progress=False, **options)


def numbers(result: gs.Result) -> list[bytes]:
    return [np.ascontiguousarray(part).tobytes() for part in (result.totals, result._trace)]


@pytest.fixture(autouse=True)
def teams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small models be shared by threads, too."""
    monkeypatch.setattr(forms, "LEAST_SHARE", 100)


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["lattice", "potts", "pairs"])
@pytest.mark.parametrize("chains", [1, 2, 40, 130])
def test_threads_do_not_matter(kind: str, chains: int) -> None:
    results = [run(kind, chains, threads=threads) for threads in (1, 2, 4)]
    board = kind == "potts" or (kind == "lattice" and chains < 16)
    assert results[0].plan.form == ("checkered" if board else "arranged")
    assert numbers(results[0]) == numbers(results[1]) == numbers(results[2])


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["lattice", "potts", "pairs"])
@pytest.mark.parametrize("chains", [2, 70])
def test_resumed_runs_are_the_same(kind: str, chains: int, tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    run(kind, chains, sweeps=25, checkpoint=file, threads=2)
    resumed = run(kind, chains, checkpoint=gs.Checkpoint(file, resume=True), threads=1)
    assert numbers(resumed) == numbers(run(kind, chains))


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
def test_chains_side_by_side_are_the_chains_one_by_one() -> None:
    many, few = run("pairs", 20), run("pairs", 4)
    # adding up in another order may differ in the last digits
    assert np.allclose(many.totals[:4], few.totals, atol=1e-9)
    assert np.allclose(many._trace[:4], few._trace, atol=1e-6)


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["lattice", "potts", "pairs"])
def test_every_recorder_speaks_of_the_right_sites(kind: str) -> None:
    sites = [3, 1199, 700, 0, 41]
    pairs = [(3, 44), (0, 1199)]
    record = [
        gs.Marginals(rao_blackwell=False),
        gs.Draws(),
        gs.recorders.Joint(pairs),
        gs.recorders.Energy(),
        gs.recorders.BestState(),
    ]
    result = run(kind, 2, record=record)
    assert result.plan.form != "plain"
    here = model(kind)
    draws = result.draws.reshape(-1, here.n_sites)
    for site in sites:
        name = here.sites[site]
        for state, chance in enumerate(result.marginals[name].values()):
            assert abs(chance - (draws[:, site] == state).mean()) < 1e-9
    for a, b in pairs:
        joint = np.asarray(result.joint(here.sites[a], here.sites[b]))
        for states in np.ndindex(joint.shape):
            seen = (draws[:, a] == states[0]) & (draws[:, b] == states[1])
            assert abs(float(joint[states]) - seen.mean()) < 1e-9
    potentials = [here.log_potential(x) for x in draws]
    assert np.allclose(-result.energy.ravel(), potentials, rtol=1e-6, atol=1e-3)
    assert abs(here.log_potential(result._best_x) - max(potentials)) < 1e-3


@pytest.mark.parametrize("chains", [4, 24])
def test_strong_pairs_are_not_called_converged(chains: int) -> None:
    with pytest.warns(gs.ConvergenceWarning):
        gs.sample(gs.ising_grid((70, 70), coupling=1.5), sweeps=200, chains=chains, rng=1, progress=False)


def test_the_scan_is_chosen_by_size() -> None:
    small, large = gs.ising_grid((5, 5)), gs.ising_grid((70, 70))
    few, many = gs.potts_grid((5, 5), 3, 0.2), gs.potts_grid((70, 70), 3, 0.2)
    three_colors = gs.potts_grid((70, 71), 3, 0.2, periodic=True)
    for here, chains, name in (
        (small, 4, "Systematic"),
        (large, 4, "Chromatic"),
        (small, 16, "Chromatic"),
        (few, 4, "Systematic"),
        (few, 16, "Systematic"),  # neither many sites of a color nor chains side by side
        (many, 4, "Chromatic"),
        (three_colors, 4, "Systematic"),
    ):
        result = gs.sample(here, sweeps=64, chains=chains, rng=1, progress=False)
        assert result.plan.scan["name"] == name


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("steps", [1.0, 1.5])
def test_potts_runs_agree_with_exact_marginals(uniform: bool, steps: float) -> None:
    """Means of independent chains, as t-values; rounds of one and a half sweeps count states instead."""
    rng = np.random.default_rng(4)
    shape = (5, 40)
    coupling = 0.6 if uniform else rng.normal(size=(2, *shape))
    here = gs.potts_grid(shape, 3, coupling=coupling, field=None if uniform else rng.normal(size=(*shape, 3)))
    chains, n = 48, here.n_sites
    graph = gs.graphs.compile_graph(here)
    kernel = gs.Gibbs()
    form = forms.pack_sites(here, graph, kernel, lay_out(here, graph, kernel, None))
    assert form is not None and form.name == "checkered"
    means = []
    for c in range(chains):
        state, tape = form.start([rng.integers(0, 3, n)], [stream(7, c)]), form.tape(1)
        for rounds, length, keep in ((100, n, False), (800, int(steps * n), True)):
            arrays, parameters = form.arrays(1), kernel.parameters(graph)
            sweep_chain(parameters, arrays, form.schedule(), state, tape, rounds, length, keep, alone())
        ((_, released),) = form.release(state, tape, 1)
        means.append((released.total + released.open_batch) / 800)
    exact = gs.solve_exact(here).marginals
    truth = np.concatenate([list(exact[site].values()) for site in here.sites])
    seen = np.array(means)
    t = (seen.mean(axis=0) - truth) / (seen.std(axis=0, ddof=1) / np.sqrt(chains))
    # the largest of 600 t-values with 47 degrees of freedom exceeds 8.5 once in ten million runs
    assert np.abs(t).max() < 8.5
    assert np.abs(seen.mean(axis=0) - truth).max() < 0.02
