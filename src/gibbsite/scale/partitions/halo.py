"""Who needs which states of whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.graph.layouts.cut import cut_positions, look_across

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Halo:
    """What one of several hosts owns, and what it exchanges after each color.

    Attributes
    ----------
    ranges : int (colors, 2)
        Its positions of each color.
    sent, received : list of dicts
        For each color, positions by host: what the other needs of this one, and the other way round.
    inner : int (colors, 2)
        A range of each color of which nobody else needs anything: it can be moved while states travel.
    """

    ranges: Longs
    sent: list[dict[int, Longs]]
    received: list[dict[int, Longs]]
    inner: Longs


def host_ranges(arrays: Any, parts: int, hosts: int) -> Longs:
    """Return what each host owns (hosts, colors, 2), if so many parts are shared out to them.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.graph.layouts.checkered import pack_checkerboard
    >>> packed = pack_checkerboard(gs.compile_graph(gs.ising_grid((6, 3))))
    >>> host_ranges(packed.arrays, 3, 2).tolist()
    [[[0, 3], [9, 12]], [[3, 9], [12, 18]]]
    """
    bounds = cut_positions(arrays, parts)[:, np.arange(hosts + 1) * parts // hosts]
    return np.stack([bounds[:, :-1].T, bounds[:, 1:].T], axis=-1)


def find_halo(arrays: Any, ranges: Longs, host: int) -> Halo:
    """Return what a host exchanges with the others.

    Examples
    --------
    >>> import gibbsite as gs
    >>> from gibbsite.graph.layouts.checkered import pack_checkerboard
    >>> packed = pack_checkerboard(gs.compile_graph(gs.ising_grid((4, 2))))
    >>> halo = find_halo(packed.arrays, host_ranges(packed.arrays, 2, 2), 0)
    >>> [(color, other, at.tolist()) for color in (0, 1) for other, at in halo.sent[color].items()]
    [(0, 1, [1]), (1, 1, [5])]
    """
    seen = [look_across(arrays, own) for own in ranges]
    own = ranges[host]
    sent: list[dict[int, Longs]] = []
    received: list[dict[int, Longs]] = []
    inner = []
    for color in range(own.shape[0]):
        others = [other for other in range(len(ranges)) if other != host]
        gives = {other: _between(seen[other], *own[color]) for other in others}
        takes = {other: _between(seen[host], *ranges[other, color]) for other in others}
        sent.append({other: at for other, at in gives.items() if at.size})
        received.append({other: at for other, at in takes.items() if at.size})
        inner.append(_widest_gap(sent[-1], *own[color]))
    return Halo(own, sent, received, np.array(inner, np.int64))


def _between(positions: Longs, low: int, high: int) -> Longs:
    return positions[slice(*np.searchsorted(positions, [low, high]))]


def _widest_gap(sent: dict[int, Longs], low: int, high: int) -> tuple[int, int]:
    """Return the longest range of positions between low and high that are sent to nobody."""
    needed = np.unique(np.concatenate([*sent.values(), np.zeros(0, np.int64)]))
    begin = np.concatenate([[low], needed + 1])
    end = np.concatenate([needed, [high]])
    widest = int(np.argmax(end - begin))
    return int(begin[widest]), int(end[widest])
