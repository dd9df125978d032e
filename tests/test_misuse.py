"""Whatever is given as an argument of a public function: a result comes out, or one sentence of ours.

``tests.campaigns.misuse`` makes all calls; here is a part of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from tests.campaigns import misuse
from tests.campaigns.misuse import bell, grid, table

pytest.importorskip("pandas")


@pytest.mark.parametrize("wrong", [None, "yes", np.array([True, False]), [1], 0.5])
def test_flags_are_true_or_false(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="directed must be True or False, got"):
        gs.FactorGraph({"a": 2}, directed=wrong)
    with pytest.raises(gs.errors.ArgumentError, match="dispersed_starts must be True or False, got"):
        gs.Criteria(dispersed_starts=wrong)


@pytest.mark.parametrize("wrong", [3, None, "a\x00b", "\ud800", b"a", [], np.array("a"), 1j])
def test_paths_are_paths(wrong: Any) -> None:
    for call in (gs.load, gs.read_model):
        with pytest.raises(gs.GibbsiteError):
            call(wrong)


def _draw(x: Any, rng: Any) -> float:
    return float(rng.normal())


def test_absurd_sizes_are_refused_at_once() -> None:
    for call in (
        lambda: gs.sample(grid(), chains=10**9),
        lambda: gs.PersistentChains(grid(), chains=10**9),
        lambda: gs.ising_grid((10**6, 10**6)),
        lambda: gs.ising(([0], [1], [1.0]), sites=10**9),  # type: ignore[arg-type]
        lambda: gs.LogDensity(bell, dim=10**12),
        lambda: gs.infer(table(), method="gibbs", chains=10**9),
        lambda: gs.Observable("m", bell, size=10**9),
        lambda: gs.couple(grid(), pairs=10**400),
        lambda: gs.sample(grid(), gs.Wolff(clusters=10**18)),
        lambda: gs.applications.denoise(np.tri(8), sigma=0.1, levels=10**18),
        lambda: gs.inference.check_conditionals(gs.Conditionals({"a": _draw}, log_density=bell), places=10**9),
    ):
        with pytest.raises(gs.GibbsiteError):
            call()


@pytest.mark.parametrize("wrong", [True, 3, "text", [], [1, 2], np.zeros((2, 2)), {"a": 1}, None])
def test_places_of_densities_are_arrays_of_their_coordinates(wrong: Any) -> None:
    for model in (gs.LogDensity(bell, dim=3), misuse.continuous()[4]):
        with pytest.raises(gs.errors.ModelError, match="place"):
            model.log_potential(wrong)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: gs.importance.Forward(np.ones(2)), "proposal must be text, got"),
        (lambda: gs.kernels.Proposal(bell, symmetric=np.ones(2)), "symmetric must be True or False, got"),
        (lambda: gs.learn.Settings(gradient=np.ones(2)), "gradient must be text, got"),
        (lambda: gs.testing.check_law(3, 3, 3, 3), "exact must be an answer of gs.exact.enumerate, got 3"),
        (lambda: gs.plots.plot_variation(3), "certificates must be"),
        (lambda: gs.plots.plot_autocorrelation(np.arange(9.0), ax=3), "ax must be axes of Matplotlib or None, got 3"),
        (lambda: gs.learn.fit_ising(misuse.SPINS, sites=3), "sites must be a list or None, got 3"),
        (lambda: gs.sample(grid(), scan=gs.influence.BlockOrder([[0, 1], [2, 3]], order="ab")), "order"),
    ],
)
def test_types_are_compared_with_annotations(wrong: Any, sentence: str) -> None:
    with pytest.raises(gs.GibbsiteError, match=sentence):
        wrong()


@pytest.mark.parametrize("wrong", [10**400, 1j, "1", [], np.array([1.0]), True, float("nan"), -1])
def test_seconds_are_a_positive_number(wrong: Any) -> None:
    with pytest.raises(gs.errors.ArgumentError, match="seconds must be a positive number, got"):
        gs.infer(table(), seconds=wrong)


#: Functions of these namespaces compile little.
LIGHT = ("applications.entities", "exact", "factors", "formats", "graphs", "models", "plots", "scans")


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: Any) -> None:
    """Let functions that write files write them elsewhere."""
    monkeypatch.chdir(tmp_path)


def _sample_calls(spaces: tuple[str, ...], many: int) -> Iterator[str]:
    """Yield the raw errors of some of the calls of the campaign."""
    listed = [one for space in spaces for one in (misuse.method_calls() if space == "methods" else misuse.calls(space))]
    found = [(one, argument) for one in listed for argument in misuse.arguments(one[1])]
    kinds = list(misuse.nonsense())
    random = np.random.default_rng(1)
    for _ in range(many):
        (name, function, given), argument = found[int(random.integers(len(found)))]
        what = str(random.choice(kinds))
        if not misuse.left_out(argument, what):
            error = misuse.wrong(function, {**given, argument: misuse.nonsense()[what]})
            if error:
                yield f"{name}({argument}={what}): {error}"


def test_the_campaign_has_valid_arguments_of_all_public_functions() -> None:
    for space in LIGHT:
        for name, function, given in misuse.calls(space):
            try:
                inspect.signature(function).bind(**given)
            except TypeError as error:
                pytest.fail(f"name valid arguments of {name} in SPECIAL: {error}")


def test_a_sample_of_wrong_calls_of_functions_that_compile_little() -> None:
    assert list(_sample_calls(LIGHT, 600)) == []


@pytest.mark.long
@pytest.mark.parametrize("spaces", [("methods",), misuse.SPACES], ids=["methods", "functions"])
def test_a_sample_of_wrong_calls_of_all_public_functions(spaces: tuple[str, ...]) -> None:
    assert list(_sample_calls(spaces, 1000)) == []


@pytest.mark.campaign
@pytest.mark.parametrize("space", [*misuse.SPACES, "methods"])
def test_all_wrong_calls(space: str) -> None:
    said: list[str] = []
    for name, function, given in misuse.method_calls() if space == "methods" else misuse.calls(space):
        misuse.try_all(name, function, given, said.append)
    assert [one for one in said if " took " not in one] == []
