"""Each deliberate mistake is caught, and the test says by which check."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.testing import check_kernel
from tests.proofs import broken

RING = gs.ising_grid((4,), coupling=0.6, field=np.array([0.4, -0.3, 0.2, 0.1]), periodic=True)


def caught_by(kernel: gs.kernels.Kernel, scan: gs.scans.Scan) -> set[str]:
    report = check_kernel(kernel, models={"ring": RING}, scans_of=lambda n: [scan], kinds=["table"], seed=3)
    return report.failed


def test_the_right_kernel_passes_on_the_same_model() -> None:
    assert caught_by(gs.Gibbs(), gs.Systematic()) == set()


@pytest.mark.parametrize(
    ("mistake", "checks"),
    [("WrongSign", {"law", "invariance", "reversibility"}), *((mistake, {"law"}) for mistake in broken.MISTAKES)],
)
def test_mistakes_in_the_step_are_caught(mistake: str, checks: set[str]) -> None:
    assert checks <= caught_by(broken.Broken(mistake), gs.Systematic())


def test_a_scan_that_skips_a_site_is_caught() -> None:
    # the law is kept by any order of right steps; that a site never moves shows in the matrix alone
    assert caught_by(gs.Gibbs(), broken.SkipsLast()) == {"ergodicity"}
