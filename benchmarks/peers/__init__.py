"""Other samplers on the same models, in the same race as ours; those that are not installed are left out.

All run on one thread and are called as their users would for speed: model and compilation before the race,
many sweeps to a call, so that what a call costs beside them does not matter. The last column would show a
wrong model, no more: on grids it is the mean product of neighbouring spins, on machines how often two units
are on together, which should agree; on networks the mean absolute error of the marginals, which should be
small.
"""

from __future__ import annotations

from itertools import chain

from benchmarks.peers import densities, machines, networks, programs, spins
from benchmarks.peers.contest import HEAD, compete
from benchmarks.report import Section


def measure(*, quick: bool = False) -> Section:
    """Hold all contests."""
    rooms = (spins, machines, programs, networks, densities)
    contests = chain.from_iterable(room.contests(quick) for room in rooms)
    held = [compete(contest, quick=quick) for contest in contests]
    return Section(
        "peers",
        [target for section in held for target in section.targets],
        HEAD,
        [row for section in held for row in section.rows],
        {title: seen for section in held for title, seen in section.data.items()},
    )
