"""Pictures of sensitivity: bars end where the answer does, and curves pass through the tables as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import gibbsite as gs  # noqa: E402


@pytest.fixture(scope="module")
def found() -> Any:
    return gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})


def test_bars_end_where_the_answer_does(found: Any, tmp_path: Path):
    axes = gs.plots.plot_tornado(found, most=5, path=tmp_path / "t.png")
    entries = found.top(5)
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert len(ends) == 10
    assert np.allclose([start for start, _ in ends], found.probability)
    assert np.allclose([end for _, end in ends], [end for entry in entries for end in (entry.low, entry.high)])
    assert [label.get_text() for label in axes.get_yticklabels()][1] == "P(xray = yes | either = no) = 0.05"
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


def test_curves_pass_through_the_tables_as_they_are(found: Any):
    axes = gs.plots.plot_sensitivity(found, [("smoke", "yes"), ("xray", "yes", {"either": "no"})])
    curves = axes.lines[1:]
    for line, value in zip(curves, (0.5, 0.05), strict=True):
        at = np.interp(value, line.get_xdata(), line.get_ydata())
        assert at == pytest.approx(found.probability, abs=1e-3)
    dots = np.concatenate([np.asarray(each.get_offsets()) for each in axes.collections])
    assert np.allclose(dots, [[0.5, found.probability], [0.05, found.probability]])
    matplotlib.pyplot.close("all")


def test_an_answer_may_depend_on_no_entry():
    certain = gs.questions.analyse_sensitivity(gs.example("asia"), "either", "yes", {"tub": "yes"})
    axes = gs.plots.plot_tornado(certain)
    assert [text.get_text() for text in axes.texts] == ["no entry matters"]
    assert len(gs.plots.plot_sensitivity(certain).lines) == 1
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("plot", [gs.plots.plot_tornado, gs.plots.plot_sensitivity])
def test_other_answers_are_refused(plot: Any):
    with pytest.raises(gs.GibbsiteError, match="sensitivity must be"):
        plot(3)
    with pytest.raises(gs.GibbsiteError, match="sensitivity must be"):
        plot({"a": 1})


def test_wrong_entries_are_refused(found: Any):
    with pytest.raises(gs.GibbsiteError, match="tuples of a site"):
        gs.plots.plot_sensitivity(found, ["smoke"])
    with pytest.raises(gs.GibbsiteError, match="needs the states of its parents: 'smoke'"):
        gs.plots.plot_sensitivity(found, [("lung", "yes")])
