"""The benchmark of DoGS does the job it times, and its machinery runs."""

from __future__ import annotations

import gibbsite as gs
from benchmarks import dogs


def test_the_job_is_the_one_of_the_paper() -> None:
    model = dogs.paper_grid(40)
    scan = dogs.paper_order(1600)
    found = dogs.choose(model, scan)
    assert found.variation <= gs.certify(model, scan=scan, sweeps=2, target=0).variation
    assert 4 <= len(found.order) <= 16


def test_figures_are_positive() -> None:
    assert dogs.per_step(10, 1).median > 0
    assert dogs.walk_rate(10, 1).median > 0
    assert dogs.bytes_per_site(40) > 50
