"""Which scans a kernel is proved with on which kind of graph: few combinations that hold all pairs.

Every combination of kernel, kind and schedule is a loop of its own to compile, but the code of a step does
not know the scan, and the code of a scan knows neither kernel nor kind.
So `Gibbs` moves on every kind with every type of schedule, and each of the other kernels on every kind with
one type that it takes, another one from kernel to kernel and from kind to kind: every kernel has met every
schedule, and every kind has. The whole product is run by the campaign of `test_conformance.py`. Minibatch
kernels have proofs of their own (`test_minibatch.py`); kernels that draw blocks do so by functions that know
neither kind nor scan, and are proved on two kinds, on others by the campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import gibbsite as gs
from gibbsite.graphs.graph import KINDS
from gibbsite.kernels.base import units_of
from gibbsite.kernels.registry import registered_kernels
from gibbsite.testing import _try_scan, scans

#: Kinds of two states and of more: one each for kernels that move sites by functions which know no kind.
TWO_KINDS = ("ising", "table")
CLASSES = tuple(one.kernel for one in registered_kernels() if one.proof_instances() and one.family != "minibatch")


def small_graph(n_sites: int) -> gs.graphs.Graph:
    """Return a graph for asking scans what their schedules are."""
    return gs.graphs.compile_graph(gs.ising(np.triu(np.ones((n_sites, n_sites)), 1)))


def by_schedule(n_sites: int) -> dict[type, list[gs.scans.Scan]]:
    """Return all scans by the type of their schedule, the one without an order of its own first."""
    graph = small_graph(n_sites)
    found: dict[type, list[gs.scans.Scan]] = {}
    for scan in scans(n_sites):
        found.setdefault(type(scan.schedule(graph)), []).append(scan)
    return found


def taken(kernel: gs.kernels.Kernel) -> list[int]:
    """Return the numbers of the types of schedules of which a kernel takes one scan at least."""
    graph = small_graph(3)
    graph = replace(graph, units=units_of(kernel, graph))
    groups = by_schedule(graph.n_units).values()
    return [k for k, group in enumerate(groups) if any(_try_scan(kernel, scan, graph) for scan in group)]


def numbers(kernel: gs.kernels.Kernel, kind: str) -> tuple[int, ...]:
    """Return the numbers of the types of schedules for a kernel on a kind.

    Rules of `Gibbs` other than the default one have the type that the default one leaves out.
    """
    types = taken(kernel)
    place = [*TWO_KINDS, *(other for other in KINDS if other not in TWO_KINDS)].index(kind)
    if isinstance(kernel, gs.Gibbs):
        left_out = 1 + place % (len(types) - 1)
        usual = kernel == gs.Gibbs()
        return tuple(k for k in types if (k != left_out) == usual)
    return (types[(CLASSES.index(type(kernel)) + place) % len(types)],)


def cover(kernel: gs.kernels.Kernel, kind: str) -> Callable[[int], list[gs.scans.Scan]]:
    """Return the function that gives the scans of a kernel on a kind for a number of sites."""
    chosen = numbers(kernel, kind)

    def of_sites(n_sites: int) -> list[gs.scans.Scan]:
        groups = list(by_schedule(n_sites).values())
        return [scan for k in chosen for scan in groups[k]]

    return of_sites
