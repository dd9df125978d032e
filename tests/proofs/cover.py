"""Which scans a kernel is proved with on which kind of graph: few combinations that hold all pairs.

Every combination of kernel, kind and schedule is a loop of its own to compile, but the code of a step does
not know the scan, and the code of a scan knows neither kernel nor kind. So every kernel moves on every kind
in order, and with one more type of schedule, which changes from kernel to kernel and from kind to kind: every
kernel has met every schedule, and every kind has. The whole product is run by the campaign of
`test_conformance.py`. Minibatch kernels have proofs of their own (`test_minibatch.py`); kernels that draw
blocks do so by functions that know neither kind nor scan, and are proved on two kinds, on others by the
campaign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gibbsite as gs
from gibbsite.graph.compile import KINDS
from gibbsite.kernel.registry import registered_kernels
from gibbsite.testing import scans

CLASSES = tuple(
    one.kernel for one in registered_kernels() if one.proof_instances() and one.family != "minibatch"
)
#: Kernels that refuse random scans.
REFUSING = (gs.QuasiGibbs,)


def by_schedule(n_sites: int) -> dict[type, list[gs.Scan]]:
    """Return all scans by the type of their schedule, the one without an order of its own first."""
    graph = gs.compile_graph(gs.ising(np.triu(np.ones((n_sites, n_sites)), 1)))
    found: dict[type, list[gs.Scan]] = {}
    for scan in scans(n_sites):
        found.setdefault(type(scan.schedule(graph)), []).append(scan)
    return found


def numbers(kernel: gs.Kernel | type[gs.Kernel], kind: str) -> tuple[int, ...]:
    """Return the numbers of the types of schedules for a kernel on a kind: the first, and some other.

    The first kernel also stands in for those that refuse random scans.
    """
    own = kernel if isinstance(kernel, type) else type(kernel)
    classes = (own, *REFUSING) if own is CLASSES[0] else (own,)
    others = len(by_schedule(3)) - 1
    return (0, *(1 + (CLASSES.index(one) + KINDS.index(kind)) % others for one in classes))


def cover(kernel: gs.Kernel, kind: str) -> Callable[[int], list[gs.Scan]]:
    """Return the function that gives the scans of a kernel on a kind for a number of sites."""
    chosen = numbers(kernel, kind)

    def of_sites(n_sites: int) -> list[gs.Scan]:
        groups = list(by_schedule(n_sites).values())
        return [scan for k in chosen for scan in groups[k]]

    return of_sites
