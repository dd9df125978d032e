"""Who needs which states of whom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite.kernels.batched.base import PackedModel
from gibbsite.kernels.batched.cut import cut_positions, look_across, segment_colors


@dataclass(frozen=True)
class Halo:
    """What one of several hosts owns, and what it exchanges after each color.

    Attributes
    ----------
    ranges : int (segments, 2)
        Its positions of each segment.
    sent, received : list of dicts
        For each color, positions by host: what the other needs of this one, and the other way round.
    inner, outer : list of int (ranges, 2)
        Ranges of each color that no other host needs, which can be moved while states travel; and all
        others.
    """

    ranges: Ints
    sent: list[dict[int, Ints]]
    received: list[dict[int, Ints]]
    inner: list[Ints]
    outer: list[Ints]


def host_ranges(packed: PackedModel, parts: int, hosts: int) -> Ints:
    """Return what each host owns (hosts, segments, 2), if ``parts`` parts are divided among them.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.kernels.batched.checkered import pack_checkerboard
    >>> packed = pack_checkerboard(gs.graphs.compile_graph(gs.ising_grid((6, 3))))
    >>> host_ranges(packed, 3, 2).tolist()
    [[[0, 3], [9, 12]], [[3, 9], [12, 18]]]
    """
    bounds = cut_positions(packed, parts)[:, np.arange(hosts + 1) * parts // hosts]
    return np.stack([bounds[:, :-1].T, bounds[:, 1:].T], axis=-1)


def find_halo(arrays: Any, ranges: Ints, host: int) -> Halo:
    """Return what a host exchanges with the others.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.kernels.batched.checkered import pack_checkerboard
    >>> packed = pack_checkerboard(gs.graphs.compile_graph(gs.ising_grid((4, 2))))
    >>> halo = find_halo(packed.arrays, host_ranges(packed, 2, 2), 0)
    >>> [(color, other, at.tolist()) for color in (0, 1) for other, at in halo.sent[color].items()]
    [(0, 1, [1]), (1, 1, [5])]
    """
    seen = [look_across(arrays, own) for own in ranges]
    others = [other for other in range(len(ranges)) if other != host]
    first = segment_colors(arrays).tolist()
    found = Halo(ranges[host], [], [], [], [])
    for begin, end in pairwise(first):
        own = ranges[host, begin:end]
        gives = {other: _within(seen[other], own) for other in others}
        takes = {other: _within(seen[host], ranges[other, begin:end]) for other in others}
        found.sent.append({other: at for other, at in gives.items() if at.size})
        found.received.append({other: at for other, at in takes.items() if at.size})
        needed = np.unique(np.concatenate([*gives.values(), np.zeros(0, np.int64)]))
        inner = np.array([_widest_gap(needed, low, high) for low, high in own.tolist()]).reshape(-1, 2)
        outer = np.stack([own[:, 0], inner[:, 0], inner[:, 1], own[:, 1]], axis=1).reshape(-1, 2)
        found.inner.append(inner[inner[:, 0] < inner[:, 1]])
        found.outer.append(outer[outer[:, 0] < outer[:, 1]])
    return found


def _within(positions: Ints, ranges: Ints) -> Ints:
    """Return those of some positions, in ascending order, that are in one of some ranges."""
    return np.concatenate([positions[slice(*np.searchsorted(positions, each))] for each in ranges])


def _widest_gap(needed: Ints, low: int, high: int) -> tuple[int, int]:
    """Return the longest range of positions between low and high that no other host needs."""
    inside = needed[slice(*np.searchsorted(needed, [low, high]))]
    begin = np.concatenate([[low], inside + 1])
    end = np.concatenate([inside, [high]])
    widest = int(np.argmax(end - begin))
    return int(begin[widest]), int(end[widest])
