"""Functions of ``gibbsite.lab.experiment`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.experiment import Meter
from gibbsite.sampling.progress import choose_progress


def test_meter_tellss_a_display_how_many_parts_of_an_experiment_are_done() -> None:
    seen = []
    meter = Meter("trial", choose_progress(lambda status: seen.append(status.fraction)))
    meter.expect(2)
    meter.tick()
    assert seen == [0.5]
