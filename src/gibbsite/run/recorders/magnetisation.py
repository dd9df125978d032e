"""Magnetisation: the mean of all sites, and its moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.run.recorders.observable import Observable

Floats = NDArray[np.float64]


def _moments(x: Any, memory: Any) -> None:
    total = 0.0
    for i in range(x.size):
        total += x[i]
    m = total / x.size
    memory[0], memory[1], memory[2], memory[3] = m, abs(m), m**2, m**4


@dataclass(frozen=True)
class Magnetisation(Observable):
    """The mean m of all sites (-1 and 1 in an Ising model), its absolute value, square and fourth power.

    From the latter two follows the Binder cumulant, 1 - <m^4> / (3 <m^2>^2), see ``Observables.derive``.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.0, field=0.5)
    >>> record = ["marginals", "magnetisation"]
    >>> result = gs.sample(model, sweeps=2000, rng=1, record=record, progress=False)
    >>> m = result.observables["magnetisation"]
    >>> bool(abs(m.mean[0] - np.tanh(0.5)) < 5 * m.mcse[0])
    True
    """

    name: str = "magnetisation"
    function: Any = _moments
    names: tuple[str, ...] | None = ("m", "abs", "m2", "m4")
    word = "magnetisation"

    @property
    def shape(self) -> str:
        """The function writes its values."""
        return "update"
