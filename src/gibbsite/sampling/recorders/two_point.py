"""Two-point functions: how sites at a distance vary together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.sampling.recorders.observable import Observable

if TYPE_CHECKING:
    from gibbsite.models import Model


_FARTHEST = 1_000_000


def _correlate(x: Any, memory: Any) -> None:
    """Average (q a - 1) / (q - 1) over the pairs at each distance along the axes; a is 1 if two sites agree.

    Behind the values stand the number of axes, sizes, whether axes are periodic, the number q of states, and
    the number of values.
    """
    # the number of values is not known here, so it stands at the very end
    k = int(memory[memory.size - 1])
    at, states = k, memory[memory.size - 2]
    same, other = 1.0, -1.0 / (states - 1.0)
    axes = int(memory[at])
    for r in range(k):
        total, pairs = 0.0, 0
        stride = x.size
        for axis in range(axes):
            size, ring = int(memory[at + 1 + axis]), memory[at + 1 + axes + axis] > 0.0
            stride //= size
            for i in range(x.size):
                place = (i // stride) % size
                if place + r < size:
                    total += same if x[i] == x[i + r * stride] else other
                    pairs += 1
                elif ring:
                    total += same if x[i] == x[i + (r - size) * stride] else other
                    pairs += 1
        memory[r] = total / max(pairs, 1)


@dataclass(frozen=True, init=False)
class TwoPoint(Observable):
    """Correlations of sites at distance 0, 1, 2, ... along the axes of a lattice, averaged over all places.

    Of spins they are the mean products; of q states in general, the means of (q a - 1) / (q - 1), where a is
    1 if two sites agree and 0 otherwise. Nothing is subtracted for a mean of the sites that is not zero.

    Parameters
    ----------
    most : int
        Largest distance.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((16,), coupling=0.5, periodic=True)
    >>> result = gs.sample(model, sweeps=4000, rng=1, record=["marginals", gs.recorders.TwoPoint(3)], progress=False)
    >>> g = result.observables["two-point"]
    >>> t = np.tanh(0.5)  # a ring of 16 sites: (t^r + t^(16 - r)) / (1 + t^16)
    >>> bool((abs(g.mean - [1.0, t, t**2, t**3]) < 5 * g.mcse + 1e-5).all())
    True
    """

    most: int = 8
    definition = "two-point, 1"

    def __init__(self, most: int = 8, name: str = "two-point", series: bool = False) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or most < 0:
            raise ArgumentError(f"TwoPoint takes a largest distance, a whole number, got {most!r}.")
        if most > _FARTHEST:
            raise ArgumentError(f"TwoPoint takes distances of at most {_FARTHEST:,}, got {describe(most)}.")
        object.__setattr__(self, "most", most)
        names = tuple(str(r) for r in range(most + 1))
        super().__init__(name, _correlate, len(names), names, series)

    @property
    def shape(self) -> str:
        """The function writes its values."""
        return "update"

    def start(self, model: Model) -> Floats:
        """Return the shape of the lattice."""
        from gibbsite.models.lattice import LatticeFactors

        lattices = [g for g in getattr(model, "groups", ()) if isinstance(g, LatticeFactors)]
        if not lattices or int(np.prod(lattices[0].shape)) != model.n_sites:
            raise ArgumentError("TwoPoint needs a lattice without observed sites, such as gs.ising_grid((8, 8)).")
        shape, rings = lattices[0].shape, lattices[0].periodic
        if self.most >= max(shape):
            raise ArgumentError(f"TwoPoint: there is no distance {self.most} in a lattice of shape {shape}.")
        states = float(model.cards.max())
        if states < 2 or model.cards.min() != states:
            raise ArgumentError("TwoPoint needs sites with the same number of states, two or more.")
        return np.array([len(shape), *shape, *(float(ring) for ring in rings), states, self.most + 1.0])
