"""Whole draws, of which every host has a share: what depends on all sites is recorded by the client.

Marginals of a host's own sites are recorded where they are. Log-potentials, draws of chosen sites, joint
probabilities and functions of the state need more than a host sees: it keeps its share of what they read, a
bit for each site with two states, and the client puts the shares together and records what one process would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite.sampling.batched_layouts import PackedLayout
from gibbsite.sampling.tape import Tape


@dataclass(frozen=True)
class Share:
    """Positions of which states are kept: all of some ranges, or chosen ones; as bits where they can be.

    Examples
    --------
    >>> share = Share(np.array([[0, 2], [5, 8]]), None, np.dtype(np.int8), bits=True)
    >>> x = np.array([1, 0, 1, 1, 1, 0, 1, 1], np.int8)
    >>> kept, again = share.room(1), np.zeros(8, np.int8)
    >>> kept[0] = share.take(x)
    >>> kept.tolist()
    [[152]]
    >>> share.put(kept[0], again)
    >>> again.tolist()
    [1, 0, 0, 0, 0, 0, 1, 1]
    """

    ranges: Ints
    chosen: Ints | None
    dtype: np.dtype[Any]
    bits: bool

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum()) if self.chosen is None else self.chosen.size

    def room(self, draws: int) -> Array:
        """Return an array for what is kept of a number of draws."""
        if self.bits:
            return np.empty((draws, -(-self.sites // 8)), np.uint8)
        return np.empty((draws, self.sites), self.dtype)

    def take(self, x: Array) -> Array:
        """Return what is kept of a draw."""
        if self.chosen is not None:
            states = x[self.chosen]
        else:
            states = np.concatenate([x[:0], *(x[low:high] for low, high in self.ranges.tolist())])
        return np.packbits(states) if self.bits else states

    def put(self, kept: Array, x: Array) -> None:
        """Write what was kept of a draw to where it belongs."""
        states = np.unpackbits(kept, count=self.sites) if self.bits else kept
        if self.chosen is not None:
            x[self.chosen] = states
            return
        at = 0
        for low, high in self.ranges.tolist():
            x[low:high] = states[at : at + high - low]
            at += high - low


@dataclass(frozen=True)
class Demand:
    """What recorders read of draws besides marginals of all sites.

    Attributes
    ----------
    everything : bool
        Whether they read all sites of every draw.
    positions : int
        The positions that they read of every draw otherwise, in ascending order.
    pulse : bool
        Whether all sites are read at the moments of which log-potentials are kept.
    dtype, bits
        Of what type states are, and whether they are bits.
    """

    everything: bool
    positions: Ints
    pulse: bool
    dtype: np.dtype[Any]
    bits: bool

    @classmethod
    def of(cls, layout: PackedLayout) -> Demand:
        """Find out what the recorders of a run read.

        Examples
        --------
        >>> import gibbsite as gs
        >>> from gibbsite.sampling.setup import Recipe
        >>> record = ["marginals", gs.recorders.Joint([("0", "5")])]
        >>> grid = gs.ising_grid((40, 40))
        >>> layout = Recipe(grid, gs.Gibbs(), gs.Chromatic(), record, 1).lay_out().layout
        >>> found = Demand.of(layout)
        >>> found.everything, layout.order.locate(np.array([0, 5])).tolist(), found.positions.tolist()
        (False, [0, 802], [0, 802])
        """
        record, graph = layout.record, layout.graph
        everything = bool(record.energy or record.best or record.open)
        read = np.concatenate([record.draw_sites, record.set_member]).astype(np.int64)
        positions = np.unique(layout.order.locate(read)) if read.size and not everything else np.zeros(0, np.int64)
        pulse = record.pulse and record.batches and not everything
        return cls(everything, positions, pulse, np.dtype(graph.state_dtype), graph.binary)

    @property
    def each(self) -> bool:
        """Whether states of every draw are read."""
        return self.everything or self.positions.size > 0

    def size(self, n_sites: int) -> int:
        """Return the approximate number of bytes kept of each draw of a model of ``n_sites`` sites."""
        sites = n_sites if self.everything else self.positions.size
        return -(-sites // 8) if self.bits else sites * self.dtype.itemsize

    def always(self, ranges: Ints) -> Share:
        """Return what the owner of some ranges keeps of every draw."""
        if self.everything:
            return Share(ranges, None, self.dtype, self.bits)
        pieces = [self.positions[slice(*np.searchsorted(self.positions, each))] for each in ranges]
        return Share(ranges, np.concatenate(pieces), self.dtype, self.bits)

    def sometimes(self, ranges: Ints) -> Share:
        """Return what the owner keeps of draws whose log-potentials are kept."""
        return Share(ranges if self.pulse else ranges[:0], None, self.dtype, self.bits)


def rest_of(tape: Tape) -> Tape:
    """Return a tape without marginals of all sites: views, but for the trace of its other cells."""
    first = tape.n_marginal
    return tape._replace(
        offset=tape.offset[:0],
        stride=1,
        n_marginal=0,
        set_cell=tape.set_cell - first,
        open_batch=tape.open_batch[first:],
        recent=tape.recent[:0],
        total=tape.total[first:],
        trace=np.ascontiguousarray(tape.trace[:, first:]),
    )
