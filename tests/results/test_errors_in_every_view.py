"""Standard errors that come from the spread of chains instead of draws, or none; nowhere a wrong one."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.cli import answers
from gibbsite.results.compare import read_errors
from gibbsite.results.measure.measurement import measure_cells, source_of_errors, widen
from gibbsite.results.verdict.convergence import judge

MODEL = gs.FactorGraph(
    {"a": ["no", "yes"], "b": 3, "seen": 2},
    [(("a", "b"), [[4, 1, 2], [1, 2, 3]]), (("b", "seen"), [[1, 2], [2, 1], [1, 1]])],
).observe({"seen": 1})


@dataclass(frozen=True)
class Counted(gs.Gibbs):
    """Says of itself that chance has no part in it."""

    error_source: ClassVar[str] = "none"


def sample(kernel: gs.kernels.Kernel, **more: Any) -> gs.Result:
    return gs.sample(MODEL, kernel, **{"sweeps": 1024, "rng": 1, "progress": False, **more})


@pytest.fixture(scope="module")
def spread() -> gs.Result:
    """Eight replicates."""
    return sample(gs.kernels.QuasiGibbs(), chains=8)


@pytest.fixture(scope="module")
def single() -> gs.Result:
    """A replicate alone."""
    return sample(gs.kernels.QuasiGibbs(), chains=1)


@pytest.fixture(scope="module")
def counted() -> gs.Result:
    """Four chains of a kernel without chance."""
    return sample(Counted())


@pytest.fixture(scope="module")
def herded() -> gs.Result:
    """One chain of herded Gibbs, with weights that start at random."""
    return sample(gs.HerdedGibbs(), chains=1)


@pytest.fixture(scope="module")
def centred() -> gs.Result:
    """Four chains of herded Gibbs without chance."""
    return sample(gs.HerdedGibbs(start="centred"))


def test_what_kernels_say_of_their_errors() -> None:
    assert gs.Gibbs().error_source == "draws"
    assert gs.kernels.QuasiGibbs().error_source == "chains"
    assert Counted().error_source == "none"
    assert gs.HerdedGibbs().error_source == gs.HerdedGibbs(rule="bounded").error_source == "none"
    assert (source_of_errors("chains", 4), source_of_errors("chains", 3)) == ("chains", "none")
    assert source_of_errors("sums", 1) == "none"
    assert source_of_errors("draws", 1) == "draws"


# ---- from the spread of chains


def test_errors_are_the_widened_spread_of_the_means_of_chains(spread: gs.Result) -> None:
    means = spread.totals / spread.n_draws
    error = widen(8) * means.std(axis=0, ddof=1) / np.sqrt(8)
    pooled = means.mean(axis=0)
    assert spread.mcse.cells == pytest.approx(error[: spread._n_marginal], rel=1e-12)
    assert spread.ess.cells == pytest.approx((pooled * (1 - pooled) / error**2)[: spread._n_marginal])
    rhat = np.sqrt((1023 + 1024 * means.var(axis=0, ddof=1) / (means * (1 - means)).mean(axis=0) * 1023 / 1024) / 1024)
    assert spread.rhat.cells == pytest.approx(rhat[: spread._n_marginal], rel=1e-6)
    verdict = spread.diagnostics
    assert verdict.converged
    assert verdict.errors == "chains"
    assert verdict.disagreement == pytest.approx(np.abs(means - pooled).max())
    assert "spread of 8 chains x 1,024 draws" in verdict.line()


def test_batches_within_chains_have_no_say() -> None:
    """Whatever the draws of a chain do, its mean is all that counts."""
    rng = np.random.default_rng(1)
    totals = rng.uniform(40, 60, (5, 3))
    first = measure_cells(totals, rng.random((5, 50, 3)).astype(np.float32), 100, 2, "chains")
    other = measure_cells(totals, np.zeros((5, 50, 3), np.float32), 100, 2, "chains")
    for name in ("mean", "error", "ess", "rhat", "spread"):
        assert getattr(first, name).tolist() == getattr(other, name).tolist()


def test_errors_are_calibrated() -> None:
    """The truth lies within two of them, before they are widened, about as often as Student's law says.

    With 16 replicates that is 0.936 of all runs: 40 of 60 or fewer have a probability of 5e-10 (binomial).
    """
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 2], [2, 13]])])
    within = 0
    for seed in range(60):
        result = gs.sample(model, gs.kernels.QuasiGibbs(m=10), chains=16, rng=seed, progress=False)
        within += abs(result.marginals["a"][1] - 0.75) < 2.0 * result.mcse["a"][1] / widen(16)
    assert within > 40


def small_models() -> list[gs.FactorGraph]:
    """Return models of 3 to 8 sites with random couplings, every third of them complete."""
    rng = np.random.default_rng(7)
    found = []
    for number in range(12):
        cards = rng.integers(2, 4, int(rng.integers(3, 9)))
        factors: list[Any] = [((i,), np.exp(rng.normal(0.0, 0.5, k))) for i, k in enumerate(cards)]
        for i, k in enumerate(cards):
            factors += [
                ((i, j), np.exp(rng.normal(0.0, 0.6, (k, cards[j]))))
                for j in range(i)
                if number % 3 == 0 or rng.random() < 0.45
            ]
        found.append(gs.FactorGraph({str(i): int(k) for i, k in enumerate(cards)}, factors))
    return found


@pytest.mark.long
@pytest.mark.parametrize("chains", [4, 8, 32])
def test_replicates_miss_by_at_most_four_widened_errors(chains: int) -> None:
    """Of 880 cells 0.06 are expected to; more than 8 have a probability below 1e-9 (cells come in groups)."""
    beyond = 0
    for model in small_models():
        exact = gs.solve_exact(model).marginals.cells
        for seed in range(5):
            result = gs.sample(model, gs.kernels.QuasiGibbs(m=10), chains=chains, rng=seed, progress=False)
            off = np.abs(result.marginals.cells - exact)
            beyond += int((off > 4.0 * result.mcse.cells + 1e-12).sum())
    assert beyond <= 8


def test_herded_chains_have_an_error_in_common_and_state_none() -> None:
    model = small_models()[9]  # complete: convergence is proved
    exact = gs.solve_exact(model).marginals.cells
    result = gs.sample(model, gs.HerdedGibbs(), sweeps=1024, chains=128, rng=1, progress=False)
    means = result.totals / result.n_draws
    spread = means.std(axis=0, ddof=1) / np.sqrt(128)
    assert (np.abs(means.mean(axis=0)[: exact.size] - exact) / spread[: exact.size]).max() > 6.0
    assert np.isnan(result.mcse.cells).all()
    assert result.diagnostics.word == "NOT JUDGED"


def test_chains_that_disagree_are_not_converged() -> None:
    model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 0], [0, 1]])])
    start = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    with pytest.warns(gs.ConvergenceWarning, match="chains disagree"):
        result = gs.sample(model, gs.kernels.QuasiGibbs(m=8), rng=1, start=start, progress=False)
    assert result.diagnostics.rhat_max == np.inf


def test_draws_alone_are_judged_by_their_chains() -> None:
    result = sample(gs.kernels.QuasiGibbs(), chains=6, record="draws")
    share = (result.draws == 1).mean(axis=1)[:, 0]  # a = yes
    verdict = result.diagnostics
    assert verdict.errors == "chains"
    assert verdict.mcse_max is not None
    assert verdict.mcse_max >= share.std(ddof=1) / np.sqrt(6) * (1 - 1e-12)


# ---- no errors


def test_a_single_replicate_says_that_it_has_no_errors() -> None:
    with pytest.warns(gs.ConvergenceWarning, match="was not judged: there is no standard error from fewer"):
        result = sample(gs.kernels.QuasiGibbs(), chains=1)
    verdict = result.diagnostics
    assert not verdict.converged
    assert verdict.line() == "NOT JUDGED: no standard errors (1 chain x 1,024 draws)"


def test_a_kernel_without_chance_is_not_judged_and_does_not_warn(counted: gs.Result) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample(Counted())
    verdict = counted.diagnostics
    assert not verdict.converged
    assert verdict.reasons == ()
    assert verdict.line() == "NOT JUDGED: no standard errors (4 chains x 1,024 draws)"


def test_doubts_are_raised_without_errors_as_well() -> None:
    model = gs.FactorGraph({"a": 2, "b": 3}, [(("a", "b"), [[1, 1, 0], [0, 0, 1]])])
    with pytest.warns(gs.ConvergenceWarning, match="never possible"):
        gs.sample(model, Counted(), rng=1, start={"a": 0, "b": 0}, progress=False)


def test_nothing_to_estimate_is_nothing_to_doubt() -> None:
    empty = measure_cells(np.zeros((1, 0)), np.zeros((1, 4, 0), np.float32), 4, 1, "chains")
    assert judge(empty, 1, 4, (), str, errors="chains").converged


@pytest.mark.parametrize("which", ["single", "counted", "herded", "centred"])
class TestWithoutErrors:
    """No view of a result shows a number that means nothing."""

    @pytest.fixture
    def result(self, which: str, request: pytest.FixtureRequest) -> gs.Result:
        found: gs.Result = request.getfixturevalue(which)
        return found

    def test_tables(self, result: gs.Result) -> None:
        for table in (result.mcse, result.ess, result.rhat):
            assert np.isnan(table.cells).all()
        assert result.mcse["seen"] == {0: 0.0, 1: 0.0}  # observed
        verdict = result.diagnostics
        assert verdict.rhat_max is verdict.ess_min is verdict.mcse_max is None
        assert verdict.errors == "none"

    def test_summary_and_html(self, result: gs.Result) -> None:
        text, page = result.summary(), result._repr_html_()
        assert "no standard errors" in text
        assert "no standard errors" in page
        assert "not judged" in page
        free = [line for line in text.splitlines() if line.strip().startswith(("a ", "b "))]
        assert len(free) == 2
        for part in (*free, page):
            assert "nan" not in part
        assert "±" not in "".join(free)

    def test_comparison(self, result: gs.Result) -> None:
        assert read_errors(result) is None
        assert gs.compare(result, gs.solve_exact(MODEL)).max_z is None

    def test_saved_and_loaded(self, result: gs.Result, tmp_path: Path) -> None:
        result.save(tmp_path / "r.npz")
        again = gs.load(tmp_path / "r.npz")
        assert (again.errors, again._period) == (result.errors, result._period)
        assert again.diagnostics == result.diagnostics
        assert again.summary() == result.summary()

    def test_datatree(self, result: gs.Result) -> None:
        tree = result.to_datatree()
        assert tree.attrs["errors"] == "none"
        assert np.isnan(tree["marginals/mcse"].values).all()

    def test_plots(self, result: gs.Result) -> None:
        figure = gs.plot_convergence(result)[0].figure
        assert "no standard errors" in figure.get_suptitle()
        words = " ".join(text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label))
        assert "R-hat" not in words
        assert "ffective" not in words
        legend = gs.plot_marginals(result)[0].figure.legends[0]
        assert [text.get_text() for text in legend.get_texts()] == ["estimate"]
        gs.plot_trace(result)


@pytest.mark.parametrize("kernel", [gs.kernels.QuasiGibbs(m=10), gs.HerdedGibbs()])
@pytest.mark.parametrize("chains", [1, 4])
def test_answers_of_infer(chains: int, kernel: gs.kernels.Kernel) -> None:
    answer = gs.infer(MODEL, method=kernel, sweeps=1024, chains=chains, rng=1, progress=False)
    written = json.dumps(answers.as_json(answer, MODEL, ["a", "b"]), allow_nan=False)
    data = json.loads(written)
    table = "".join(answers.as_table(answer, MODEL, ["a"], False))
    lines = "".join(answers.as_csv(answer, ["a"])).splitlines()
    if chains == 1 or isinstance(kernel, gs.HerdedGibbs):
        assert data["mcse"]["a"] == {"no": None, "yes": None}
        assert data["diagnostics"]["mcse_max"] is data["diagnostics"]["rhat_max"] is None
        assert any("no standard errors" in reason for reason in answer.reasons)
        assert not answer.converged
        assert "NOT JUDGED: no standard errors" in answer.line()
        assert "±" not in table
        assert all(line.endswith(",") for line in lines[1:])
    else:
        assert data["mcse"]["a"]["no"] > 0
        assert data["diagnostics"]["errors"] == "chains"
        assert "±" in table
        assert float(lines[1].split(",")[-1]) > 0


def test_plots_of_replicates_have_no_band_within_chains(spread: gs.Result) -> None:
    figure = gs.plot_convergence(spread)[0].figure
    bands = [path for axes in figure.axes for band in axes.collections for path in band.get_paths()]
    assert bands
    for band in bands:
        heights: dict[float, set[float]] = {}
        for x, y in band.vertices.tolist():
            heights.setdefault(x, set()).add(y)
        assert all(len(found) == 1 for found in heights.values())
    assert "spread of 8 chains" in figure.get_suptitle()


def test_an_infinite_error_is_no_number_of_json() -> None:
    answer = gs.infer(MODEL, method="gibbs", sweeps=2, chains=1, rng=1, progress=False)
    json.dumps(answer.to_dict(), allow_nan=False)
