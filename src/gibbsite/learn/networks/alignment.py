"""Hidden sites: their states have no names, so draws of tables may have them in any order.

Each draw is relabelled so that its tables are nearest to those of a reference: the last draw of the first chain, and
then the mean of all relabelled draws.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints16
from gibbsite.learn.networks.layout import Layout

_MOST = 6  # states, above which there are too many orders


def align_states(layout: Layout, codes: Ints16, pseudocounts: Floats, kept: Floats) -> list[int]:
    """Relabel the states of hidden sites in draws (chains, draws, entries), in place; return these sites.

    Sites whose pseudocounts tell their states apart are left as they are.
    """
    done = []
    for i in np.flatnonzero((codes < 0).all(axis=1)).tolist():
        card = int(layout.card[i])
        orders = [_permuted(layout, i, order) for order in permutations(range(card))] if card <= _MOST else []
        if not orders or any((pseudocounts[order] != pseudocounts).any() for order in orders):
            continue
        flat = kept.reshape(-1, kept.shape[-1])
        touched = np.flatnonzero(np.any([order != orders[0] for order in orders], axis=0))
        reference = flat[len(kept[0]) - 1, touched]
        for _ in range(3):
            apart = np.stack([np.square(flat[:, order[touched]] - reference).sum(axis=1) for order in orders])
            best = np.argmin(apart, axis=0)
            for k, order in enumerate(orders[1:], 1):
                rows = np.flatnonzero(best == k)
                flat[rows] = flat[np.ix_(rows, order)]
            reference = flat[:, touched].mean(axis=0)
            if not best.any():
                break
        done.append(i)
    return done


def _permuted(layout: Layout, site: int, order: tuple[int, ...]) -> Ints:
    """Return, for each entry, the entry that it takes its value from when the states of a site are reordered."""
    source = np.arange(int(layout.start[-1]))
    for i in range(layout.card.size):
        for k in range(int(layout.begin[i]), int(layout.begin[i + 1])):
            if layout.site[k] == site:
                first, last, stride = int(layout.start[i]), int(layout.start[i + 1]), int(layout.stride[k])
                place = np.arange(last - first)
                digit = place // stride % len(order)
                source[first:last] = first + place + (np.array(order)[digit] - digit) * stride
    return source
