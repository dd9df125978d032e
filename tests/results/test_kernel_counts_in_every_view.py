"""What a kernel has counted is in every view of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gibbsite as gs

MODEL = gs.potts(np.full((40, 40), 0.02) - 0.02 * np.eye(40), 3)


def test_counts_are_shown_saved_and_survive_checkpoints(tmp_path: Path) -> None:
    kernel = gs.PoissonGibbs(1.5)
    result = gs.sample(MODEL, kernel, sweeps=1000, rng=1, progress=False)
    assert set(result.report) == {"minibatch", "factors"}
    # lambda at the site of largest energy, and all sites are alike; and L more, of which some are kept
    error = 6.0 * np.sqrt(2.28 / (4 * 1100 * 40))  # a Poisson mean over all updates, false alarm 2e-9
    assert abs(result.report["factors"] - (1.5 + 0.78)) < error
    assert 1.5 - error < result.report["minibatch"] < result.report["factors"]
    assert f"\n  {result.report_line()}\n" in result.summary()
    assert result.report_line() in result._repr_html_()
    result.save(tmp_path / "r.npz")
    assert gs.load(tmp_path / "r.npz").report == result.report
    path = tmp_path / "c.ckpt"
    gs.sample(MODEL, kernel, sweeps=300, warmup=100, rng=1, progress=False, checkpoint=path)
    more = gs.sample(
        MODEL, kernel, sweeps=1000, warmup=100, rng=1, progress=False, checkpoint=gs.Checkpoint(path, resume=True)
    )
    assert more.report == result.report


def test_most_kernels_count_nothing() -> None:
    result = gs.sample(MODEL, sweeps=200, rng=1, progress=False)
    assert result.report == {}
    assert result.report_line() == ""
