"""Overlaps between replicas: how alike independent chains are at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.sampling.recorders.base import MeetingRecorder
from gibbsite.sampling.recorders.observable import Binned

if TYPE_CHECKING:
    from gibbsite.models import Model

_NAMES = ("q", "abs", "q2", "q4")


@dataclass(frozen=True)
class Overlap(MeetingRecorder):
    """Overlaps q of chains 0 and 1, 2 and 3, and so on, with moments, as for spin glasses.

    The overlap of two states is the mean over sites of (K a - 1) / (K - 1), where a is 1 if they agree and 0
    otherwise, and K is the number of states: 1 if they are equal, 0 on average if they have nothing to do
    with each other; for two states, the mean product of spins. <q^2> and the Binder cumulant of q follow from
    it. Observed sites do not count: they agree in all chains.

    Parameters
    ----------
    every : int
        Draws from one comparison to the next.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((6, 6), coupling=0.0, field=0.5)
    >>> record = ["marginals", gs.recorders.Overlap()]
    >>> result = gs.sample(model, sweeps=1000, chains=4, rng=1, record=record, progress=False)
    >>> q = result.observables["overlap"]
    >>> bool(abs(q.mean[0] - np.tanh(0.5) ** 2) < 5 * q.mcse[0])
    True
    """

    key = "overlap"
    word = "overlap"

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise ArgumentError(f"{argument('every')} must be a whole number above 0, got {self.every!r}.")

    def check(self, model: Model) -> None:
        """Refuse numbers, which never agree."""
        if model.domains.numbers.any():
            raise ArgumentError("Overlap compares states, and sites of this model are numbers.")

    def meet(self, states: Array, cards: Ints32) -> Floats:
        """Return overlap, absolute value, square and fourth power of each pair."""
        pairs = len(states) // 2
        if not pairs:
            raise ArgumentError(f"Overlap compares chains; take {argument('chains', 2)} or more.")
        same = states[0 : 2 * pairs : 2] == states[1 : 2 * pairs : 2]
        q = ((cards * same - 1.0) / np.maximum(cards - 1, 1)).mean(axis=1)
        return np.stack([q, abs(q), q**2, q**4], axis=1)

    def conclude(self, blocks: Floats, draws: int) -> Binned:
        """Return the series of all pairs, and averages of it."""
        series = np.asarray(blocks).reshape(len(blocks), -1, len(_NAMES))
        return Binned(_NAMES, series.shape[1], 1, series.sum(axis=1), (series**2).sum(axis=1), series, series)

    @classmethod
    def revive(cls, about: dict[str, Any]) -> Overlap:
        """Return the recorder of a saved result."""
        return Overlap()
