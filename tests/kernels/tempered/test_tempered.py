"""Tempered runs: what they refuse, what they report, and that they find both modes."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.tempered.ladder import FEWEST, rungs_for, spread_rungs
from gibbsite.kernels.tempered.rungs import energy_of, fit_reference
from gibbsite.sampling.checkpoint import load_checkpoint


def two_modes(strength: float = 14.0, bias: float = 0.5, n: int = 6) -> gs.FactorGraph:
    """All sites equal, or nearly so; the two modes have weights e^bias : 1, and single sites do not cross."""
    sites = [f"x{i}" for i in range(n)]
    pairs = [((a, b), np.exp(strength * np.eye(2))) for a, b in itertools.pairwise(sites)]
    return gs.FactorGraph(dict.fromkeys(sites, 2), [*pairs, ("x0", [1.0, np.exp(bias)])])


def tempered(model: Any, kernel: Any = None, **more: Any) -> gs.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        run = {"sweeps": 3000, "rng": 1, "progress": False, "threads": 1, **more}
        return gs.sample(model, gs.Tempered() if kernel is None else kernel, **run)


def error_of(result: gs.Result, model: gs.FactorGraph) -> float:
    exact = gs.solve_exact(model).marginals
    return max(abs(result.marginals[site][state] - p) for site in model.sites for state, p in exact[site].items())


def test_two_modes_of_known_weight_are_found_and_converged() -> None:
    """Where plain chains stay in one mode, whatever their start."""
    model = two_modes()
    result = tempered(model, start=dict.fromkeys(model.sites, 0), sweeps=8000)
    verdict = result.diagnostics
    assert verdict.converged, verdict.reasons
    assert verdict.dispersed_starts == "crossed"
    assert "states cross between modes" in verdict.line()
    assert error_of(result, model) < 5 * verdict.mcse_max < 0.1
    assert abs(result.log_z - gs.solve_exact(model).log_z) < 5 * result.log_z_error < 0.5


def test_what_is_reported() -> None:
    result = tempered(two_modes())
    tempering = result.tempering
    assert result.report["rungs"] == tempering.betas.size >= FEWEST
    assert result.report["round_trips"] == tempering.round_trips.sum() > 100
    assert result.report["barrier"] == pytest.approx(tempering.barrier)
    assert result.report["lowest_swap_rate"] == pytest.approx(tempering.swap_rates.min())
    assert tempering.swap_rates.min() > 0.3
    assert tempering.swap_rates.std() < 0.1  # they are about equal
    assert (np.diff(tempering.betas) > 0).all()


def test_a_run_with_few_round_trips_is_not_converged() -> None:
    """A single pair of rungs, far apart: chains agree, but none crosses."""
    model = two_modes(strength=5.0, bias=0.0, n=40)
    start = dict.fromkeys(model.sites, 0)
    result = tempered(model, gs.Tempered(ladder=(0.0, 1.0)), start=start, sweeps=500)
    reasons = " ".join(result.diagnostics.reasons)
    assert not result.diagnostics.converged
    assert "too few round trips" in reasons
    assert "hardly pass between the inverse temperatures 0 and 1" in reasons


def test_a_ladder_without_its_reference_is_looked_at_as_any_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.results.verdict.known_marginals.TINY", 0)
    result = tempered(gs.ising_grid((3, 3), coupling=0.2), gs.Tempered(ladder=(0.5, 1.0)))
    assert result.diagnostics.dispersed_starts == "agrees"
    assert math.isnan(result.log_z)
    assert math.isnan(result.log_z_error)


BAD_LADDERS = [
    ("hot", "must be"),
    (0.5, "must be"),
    ([0.0, "x", 1.0], "numbers from 0 to 1"),
    ([1.0], "at least two"),
    ([0.0, 0.6, 0.4, 1.0], "must rise"),
    ([0.0, 0.5, 0.5, 1.0], "0.5 follows 0.5"),
    ([-0.1, 1.0], "-0.1, which is not from 0"),
    ([0.0, 1.2], "1.2, which is not from 0"),
    ([0.0, 0.9], "must end at 1"),
    ([0.0, float("nan"), 1.0], "numbers from 0 to 1"),
]


@pytest.mark.parametrize(("ladder", "words"), BAD_LADDERS)
def test_ladders_that_make_no_sense(ladder: Any, words: str) -> None:
    with pytest.raises(gs.errors.ArgumentError, match=words) as caught:
        tempered(gs.ising_grid((2, 2)), gs.Tempered(ladder=ladder))
    assert str(caught.value).count(".\n") == 0


BAD_KERNELS = [
    (gs.HerdedGibbs(), "swaps of states would corrupt"),
    (gs.kernels.QuasiGibbs(), "swaps of states would corrupt"),
    (gs.PoissonGibbs(), "minibatches"),
    (gs.AnnealedGibbs(), "has temperatures"),
    (gs.Tempered(), "has temperatures"),
]


@pytest.mark.parametrize(("inner", "words"), BAD_KERNELS, ids=lambda value: str(value)[:12])
def test_kernels_that_cannot_be_inside(inner: gs.kernels.Kernel, words: str) -> None:
    with pytest.raises(gs.errors.IncompatibleError, match=words):
        tempered(gs.potts_grid((3, 3), states=3, coupling=0.3), gs.Tempered(inner))


# of both, and of blocks, `tests/proofs/test_tempered.py` has exact matrices
@pytest.mark.parametrize(
    "inner", [gs.SwendsenWang(), pytest.param(gs.Wolff(clusters=4), marks=pytest.mark.campaign)], ids=str
)
def test_cluster_moves_inside(inner: gs.kernels.Kernel, tmp_path: Path) -> None:
    """Both modes of a magnet in a weak field; threads and interruptions change nothing."""
    model = gs.ising_grid((4, 4), coupling=0.9, field=0.02)
    result = tempered(model, gs.Tempered(inner), sweeps=2000)
    assert result.diagnostics.converged, result.diagnostics.reasons
    assert error_of(result, model) < 5 * result.diagnostics.mcse_max + 1e-9
    assert abs(result.log_z - gs.solve_exact(model).log_z) < 5 * result.log_z_error
    assert tempered(model, gs.Tempered(inner), sweeps=2000, threads=2).marginals == result.marginals
    path = tmp_path / "run.npz"
    tempered(model, gs.Tempered(inner), sweeps=700, warmup=200, checkpoint=path)
    again = tempered(model, gs.Tempered(inner), sweeps=2000, warmup=200, checkpoint=gs.Checkpoint(path, resume=True))
    assert again.marginals == result.marginals


def test_frustrated_models_are_refused_around_cluster_moves() -> None:
    model = gs.ising((np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1.0, 1.0, -1.0])))
    with pytest.raises(gs.errors.IncompatibleError, match="SwendsenWang joins sites that agree"):
        tempered(model, gs.Tempered(gs.SwendsenWang()))


def test_other_bad_input() -> None:
    with pytest.raises(gs.errors.ArgumentError, match="must be a kernel"):
        tempered(gs.ising_grid((2, 2)), gs.Tempered("gibbs"))  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ArgumentError, match="reference"):
        tempered(gs.ising_grid((2, 2)), gs.Tempered(reference="best"))
    with pytest.raises(gs.errors.ArgumentError, match="keep"):
        tempered(gs.ising_grid((2, 2)), gs.Tempered(keep="some"))
    with pytest.raises(gs.errors.IncompatibleError, match="Gibbs cannot run on a gaussian graph"):
        tempered(gs.Gaussian(covariance=np.eye(2)))
    plain = gs.sample(gs.ising_grid((2, 2)), sweeps=50, rng=1, progress=False)
    assert plain.log_z is None and plain.log_z_error is None


@pytest.mark.parametrize(
    "kernel", [gs.Gibbs(), pytest.param(gs.BlockGibbs("trees"), marks=pytest.mark.campaign)], ids=str
)
def test_models_with_zeros(kernel: gs.kernels.Kernel) -> None:
    """States that single sites cannot pass between: exactly one of each pair is up, and pairs agree."""
    unlike, sites = [[0.0, 1.0], [1.0, 0.0]], {f"s{i}": 2 for i in range(6)}
    zeros = [((f"s{i}", f"s{i + 1}"), unlike) for i in range(5)]
    model = gs.FactorGraph(sites, [*zeros, ("s0", [2.0, 1.0])])
    result = tempered(model, gs.Tempered(kernel), sweeps=4000)
    assert result.diagnostics.converged, result.diagnostics.reasons
    assert abs(result.marginals["s3"][1] - 2 / 3) < 5 * result.mcse["s3"][1] + 1e-12 < 0.1
    assert abs(result.log_z - math.log(3.0)) < 5 * result.log_z_error < 0.2


@pytest.mark.parametrize("scan", [gs.Chromatic(), gs.scans.Shuffled(), gs.RandomScan()], ids=str)
def test_other_scans(scan: gs.scans.Scan) -> None:
    model = gs.ising_grid((3, 3), coupling=0.8, field=0.05)
    result = tempered(model, scan=scan, sweeps=4000)
    assert error_of(result, model) < 5 * result.diagnostics.mcse_max < 0.1
    assert abs(result.log_z - gs.solve_exact(model).log_z) < 5 * result.log_z_error


def test_the_fitted_reference_lowers_the_barrier_of_a_model_of_one_mode() -> None:
    model = gs.ising_grid((5, 5), coupling=0.3, field=1.0)
    even, fitted = (tempered(model, gs.Tempered(reference=which)) for which in ("even", "fitted"))
    assert fitted.tempering.barrier < 0.8 * even.tempering.barrier
    for result in (even, fitted):
        assert abs(result.log_z - gs.solve_exact(model).log_z) < 5 * result.log_z_error


def test_references_share_the_support_of_single_sites() -> None:
    model = gs.FactorGraph({"a": 3, "b": 2}, [("a", [1.0, 0.0, 2.0]), (("a", "b"), np.ones((3, 2)))])
    graph = gs.graphs.compile_graph(model)
    law = np.exp(fit_reference(graph, np.array([0.9, 0.0, 0.1, 0.5, 0.5]), even=0.5))
    assert law == pytest.approx([0.7, 0.0, 0.3, 0.5, 0.5])


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter(threads: int) -> None:
    """Of one chain, whose rungs are shared by threads, and of two."""
    model = gs.ising_grid((4, 4), coupling=0.6)
    for chains in (1, 2):
        one = tempered(model, sweeps=300, chains=chains)
        many = tempered(model, sweeps=300, chains=chains, threads=threads)
        assert (one.totals == many.totals).all()
        assert all((one.kept[name] == many.kept[name]).all() for name in one.kept)


def test_results_are_saved_with_what_was_seen_of_the_rungs(tmp_path: Path) -> None:
    result = tempered(gs.ising_grid((3, 3), coupling=0.7), sweeps=500)
    result.save(tmp_path / "run.npz")
    again = gs.load(tmp_path / "run.npz")
    assert again.log_z == result.log_z
    assert again.log_z_error == result.log_z_error
    assert again.diagnostics.line() == result.diagnostics.line()
    assert again.diagnostics.reasons == result.diagnostics.reasons


def test_other_temperatures() -> None:
    """Energies and log Z between rungs, and marginals of a rung, against exact answers; no draw is new."""
    model = gs.ising_grid((3, 3), coupling=0.8, field=0.1)
    result = tempered(model, gs.Tempered(ladder=(0.0, 0.25, 0.5, 1.0), keep="all"), sweeps=4000)
    for beta in (0.1, 0.5, 0.8, 1.0):
        hot = gs.ising_grid((3, 3), coupling=0.8 * beta, field=0.1 * beta)
        exact, states = gs.solve_exact(hot), gs.exact.enumerate(hot)
        energy = -states.probabilities @ [model.log_potential(x) for x in states.states]
        found = result.at(beta)
        assert abs(found.energy - energy) < 5 * found.energy_error < 1.0
        assert abs(found.log_z - exact.log_z) < 5 * found.log_z_error < 0.5
        each = np.array([model.log_potential(x) for x in states.states])
        heat = beta**2 * (states.probabilities @ each**2 - energy**2)
        assert abs(found.heat_capacity - heat) < 6 * found.heat_capacity_error < 2.0
        assert found.effective > 100
        assert (found.marginals is not None) == (beta in (0.5, 1.0))
        if found.marginals is not None:
            assert abs(found.marginals["4"][1] - exact.marginals["4"][1]) < 0.06
    assert result.at(1.0).log_z == pytest.approx(result.log_z, abs=3 * result.log_z_error)
    with pytest.raises(gs.errors.ArgumentError, match="from 0 to 1"):
        result.at(1.5)
    with pytest.raises(gs.errors.ArgumentError, match="too short"):
        tempered(model, gs.Tempered(ladder=(0.0, 1.0)), sweeps=10).at(0.5)


def test_other_temperatures_of_any_numbers_of_states() -> None:
    """The reference is one over the product of the numbers of states; where it is uneven there is no estimate."""
    table = [[1.0, 2.0, 5.0], [3.0, 1.0, 1.0]]
    model = gs.FactorGraph({"a": 2, "b": 3, "c": 4}, [(("a", "b"), table), ("c", [4.0, 3.0, 2.0, 1.0])])
    half = gs.solve_exact(
        gs.FactorGraph({"a": 2, "b": 3, "c": 4}, [(("a", "b"), np.sqrt(table)), ("c", np.sqrt([4, 3, 2, 1]))])
    )
    found = tempered(model, gs.Tempered(ladder=(0.0, 0.5, 1.0))).at(0.5)
    assert abs(found.log_z - half.log_z) < 5 * found.log_z_error < 0.2
    zeros = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1.0, 0.0, 5.0], [3.0, 1.0, 1.0]])])
    result = tempered(zeros, gs.Tempered(ladder=(0.0, 0.5, 1.0)))
    assert math.isnan(result.at(0.5).log_z) and math.isnan(result.at(0.5).energy)
    assert abs(result.at(1.0).log_z - math.log(11.0)) < 5 * result.at(1.0).log_z_error


def test_marginals_of_rungs_one_after_another() -> None:
    model = gs.potts_grid((2, 2), states=3, coupling=0.9)
    result = tempered(model, gs.Tempered(ladder=(0.0, 0.5, 1.0), keep="all"))
    for beta in (0.0, 0.5, 1.0):
        assert [*result.at(beta).marginals["0"].values()] == pytest.approx([1 / 3] * 3, abs=0.05)


def test_rungs_are_spread_by_the_barrier() -> None:
    betas = spread_rungs(np.array([0.0, 0.1, 1.0]), np.array([0.5, 0.5]))
    assert betas.size == rungs_for(2 * 0.538)
    assert (betas <= 0.1).sum() == 2
    assert betas[0] == 0.0
    assert betas[-1] == 1.0


# ---- interrupted, killed, continued


def test_a_run_that_is_continued_equals_one_in_one_go(tmp_path: Path) -> None:
    model, path = gs.ising_grid((4, 4), coupling=0.6), tmp_path / "run.chk"
    whole = tempered(model, sweeps=600, warmup=60)
    tempered(model, sweeps=200, warmup=60, checkpoint=path)
    rest = tempered(model, sweeps=600, warmup=60, checkpoint=gs.Checkpoint(path, resume=True))
    assert (rest.totals == whole.totals).all()
    assert all((rest.kept[name] == whole.kept[name]).all() for name in whole.kept)


def test_a_ladder_that_was_found_by_time_is_kept_when_a_run_is_continued(tmp_path: Path) -> None:
    """Its search would find another one."""
    model, path = gs.ising_grid((4, 4), coupling=0.6), tmp_path / "run.chk"
    first = tempered(model, sweeps=None, seconds=1.0, checkpoint=path)
    rest = tempered(model, sweeps=None, seconds=2.0, checkpoint=gs.Checkpoint(path, resume=True))
    assert (first.kept["betas"] == rest.kept["betas"]).all()
    assert rest.n_draws > first.n_draws


def test_a_killed_run_is_continued_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.chk"
    script = f"""
        import warnings; warnings.simplefilter("ignore")
        import gibbsite as gs
        model = gs.ising_grid((6, 6), coupling=0.6)
        result = gs.sample(model, gs.Tempered(), sweeps=SWEEPS, warmup=100, rng=3, progress=False, chains=2,
                           threads=1, checkpoint=gs.Checkpoint({str(path)!r}, every=0.1, resume=True))
        result.save({str(tmp_path / "end.npz")!r})
    """
    long = textwrap.dedent(script.replace("SWEEPS", "2000000"))
    with subprocess.Popen([sys.executable, "-c", long]) as run:
        deadline = time.monotonic() + 120.0
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(run.pid, signal.SIGKILL)
    done = int(load_checkpoint(path)[0]["progress"]["draws"])
    sweeps = done + 500
    short = textwrap.dedent(script.replace("SWEEPS", str(sweeps)))
    subprocess.run([sys.executable, "-c", short], check=True)
    # the plan and the length of the search follow from the warmup, which is the same
    whole = tempered(gs.ising_grid((6, 6), coupling=0.6), sweeps=sweeps, warmup=100, rng=3, chains=2)
    rest = gs.load(tmp_path / "end.npz")
    assert (rest.totals == whole.totals).all()
    assert all((rest.kept[name] == whole.kept[name]).all() for name in whole.kept)


def energy_models() -> dict[str, gs.FactorGraph]:
    """Models whose log-potential is summed up in each of the ways that there are."""
    rng = np.random.default_rng(3)
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    graded = gs.potts((pairs[:, 0], pairs[:, 1], rng.normal(size=10)), states=3)
    names = [f"v{i}" for i in range(4)]
    tables = [(scope, rng.random((3, 3))) for scope in itertools.pairwise(names)]
    sites = dict.fromkeys(names, 3)
    twice = [*tables, (("v1", "v0"), rng.random((3, 3)))]
    return {
        "one coupling": gs.potts_grid((3, 4), states=3, coupling=0.7),
        "one coupling and fields": gs.potts_grid((3, 4), states=3, coupling=0.7, field=[0.1, 0.2, 0.5]),
        "couplings": graded,
        "pairs": gs.FactorGraph(sites, tables),
        "pairs twice, and fields": gs.FactorGraph(sites, [*twice, ("v2", [1.0, 2.0, 3.0])]),
        "unequal numbers of states": gs.FactorGraph(
            {"a": 2, "b": 3, "c": 4}, [(("a", "b"), rng.random((2, 3))), (("c", "a"), rng.random((4, 2)))]
        ),
        "no pairs": gs.FactorGraph({"a": 3, "b": 3}, [("a", [1.0, 2.0, 3.0])]),
    }


@compiled
def _potential(arrays: Any, x: Any) -> float:
    return log_potential(arrays, x)


@pytest.mark.parametrize("name", energy_models())
def test_sums_over_pairs_are_log_potentials(name: str) -> None:
    model = energy_models()[name]
    graph = gs.graphs.compile_graph(model)
    assert graph.kind in ("potts", "pairwise")
    arrays = energy_of(graph.arrays)
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.integers(0, model.cards).astype(graph.state_dtype)
        found = _potential(arrays, x) + graph.log_offset
        assert found == pytest.approx(model.log_potential(x), abs=1e-12)


def test_without_free_sites_there_is_nothing_to_move() -> None:
    model = gs.FactorGraph({"a": 2}, [("a", [1, 2])]).observe({"a": 1})
    with pytest.raises(gs.errors.IncompatibleError, match="no free sites"):
        gs.sample(model, gs.Tempered(), sweeps=10, rng=1, progress=False)
