"""Functions of ``gibbsite.lab.poisson.mh`` on small inputs whose results are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.lab.poisson import mh, mixture
from gibbsite.lab.poisson.mh import list_methods


def test_list_methods_returns_poisson_mh_with_the_lambda_of_the_paper_and_tunamh() -> None:
    assert list(list_methods()) == ["Poisson-MH", "TunaMH"]


def test_a_long_run_that_was_stopped_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = mixture.prepare
    monkeypatch.setattr(mixture, "prepare", lambda quick, rng: small(True, rng))
    monkeypatch.setitem(mh.SWEEPS, "long", 600)
    monkeypatch.setitem(mixture.SWEEPS, "quick", 40)  # for the times
    whole = gs.lab.run("poisson-mh", long=tmp_path / "whole", progress=False)

    def stop(status: Any) -> None:
        if status.unit == "part" and status.done == 2:  # the first method is done
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gs.lab.run("poisson-mh", long=tmp_path / "parts", progress=stop)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["Poisson-MH.checkpoint"]
    before = (tmp_path / "parts" / "Poisson-MH.checkpoint").stat().st_mtime_ns
    again = gs.lab.run("poisson-mh", long=tmp_path / "parts", progress=False)
    assert again.settings["sweeps"] == 600
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert (tmp_path / "parts" / "Poisson-MH.checkpoint").stat().st_mtime_ns >= before


def test_only_some_experiments_have_a_long_run(tmp_path: Path) -> None:
    for name, quick in (("poisson-mh", True), ("poisson-cost", False)):
        with pytest.raises(gs.errors.ArgumentError, match="long is for poisson-mixture, poisson-mh, and not together"):
            gs.lab.run(name, quick=quick, long=tmp_path)
