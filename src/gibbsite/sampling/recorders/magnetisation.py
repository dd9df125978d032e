"""Magnetisation: how far the sites are aligned, and the moments of that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Angle, Interval
from gibbsite.sampling.recorders.observable import Observable

if TYPE_CHECKING:
    from gibbsite.models import Model

_MEAN, _COUNT, _DIRECTION = range(3)


def _moments(x: Any, memory: Any) -> None:
    """Write the magnetisation and its moments.

    Behind these four numbers stand: which magnetisation it is, the number of sites (observed ones included),
    and what observed sites contribute. For a mean, that is their sum; for directions the length of a turn,
    and their sums of cosines and of sines; for states their number, how many observed sites are in each, and
    as much room to count in.
    """
    kind, n = int(memory[4]), memory[5]
    m = 0.0
    if kind == 0:
        total = memory[6]
        for i in range(x.size):
            total += x[i]
        m = total / n
    elif kind == 1:
        states = int(memory[6])
        for k in range(states):
            memory[7 + states + k] = memory[7 + k]
        for i in range(x.size):
            memory[7 + states + int(x[i])] += 1.0
        most = 0.0
        for k in range(states):
            most = max(most, memory[7 + states + k])
        m = (states * most / n - 1.0) / (states - 1.0)
    else:
        cosines, sines = memory[7], memory[8]
        for i in range(x.size):
            turned = 2.0 * math.pi * x[i] / memory[6]
            cosines += math.cos(turned)
            sines += math.sin(turned)
        m = math.sqrt(cosines**2 + sines**2) / n
    memory[0], memory[1], memory[2], memory[3] = m, abs(m), m**2, m**4


@dataclass(frozen=True)
class Magnetisation(Observable):
    """The magnetisation m of a state, its absolute value, square and fourth power.

    It is an average over all sites, observed ones included. Which one depends on what sites are:

    - spins, other numbers as labels, and 0 or 1: the mean of all sites;
    - Potts models, and states with names: (q f - 1) / (q - 1), where q is the number of states and f the
      share of sites in the most frequent one; 1 if all sites are in the same state, 0 if all states are
      equally frequent;
    - angles: the length of the mean of the unit vectors, from 0 to 1;
    - real numbers: their mean.

    All sites must be of one kind, with the same states. From the moments follows the Binder cumulant,
    1 - <m^4> / (3 <m^2>^2), see ``Observables.derive``.

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
    #: A hash of the code that checkpoints were first written with.
    definition = "49cd62534de4923885db43b0f8b448bc"

    @property
    def shape(self) -> str:
        """The function writes its values."""
        return "update"

    def start(self, model: Model) -> Floats:
        """Return which magnetisation is meant, and what observed sites contribute."""
        kinds = [model.domains.kinds[k] for k in np.unique(model.domains.kind_of)]
        seen, labels = model.evidence, model.evidence_labels
        n, kind = float(model.n_sites + len(seen)), kinds[0]
        same = all(type(each) is type(kind) and len(each) == len(kind) for each in kinds)
        if isinstance(kind, Angle):
            same = same and all(isinstance(each, Angle) and each.period == kind.period for each in kinds)
        elif not isinstance(kind, Interval):
            same = len(kinds) == 1
        names = kind.moments if isinstance(kind, Interval) else kind
        if not same or any(each != names for each in labels.values()):
            raise ArgumentError(
                "Magnetisation needs sites that are all of one kind, with the same states; for others, "
                "record a function of your own with gs.Observable."
            )
        if isinstance(kind, Angle):
            turned = 2.0 * np.pi * np.array([float(value) for value in seen.values()]) / kind.period
            return np.array([_DIRECTION, n, kind.period, np.cos(turned).sum(), np.sin(turned).sum()])
        if isinstance(kind, Interval) or _are_spins(model, kind):
            return np.array([_MEAN, n, sum(float(value) for value in seen.values())])
        states = len(kind)
        if states < 2:
            raise ArgumentError("Magnetisation needs sites of two or more states.")
        codes = np.array([kind.index(label) for label in seen.values()], np.int64)
        counts = np.bincount(codes, minlength=states)
        return np.concatenate([[_COUNT, n, states], counts, np.zeros(states)])


def _are_spins(model: Model, labels: tuple[Any, ...]) -> bool:
    """Return whether labels are numbers to be averaged, not merely the names of states."""
    from gibbsite.models import AgreementFactors, LatticeFactors

    if any(isinstance(label, bool) or not isinstance(label, int) for label in labels):
        return False
    potts = any(
        isinstance(group, AgreementFactors) or (isinstance(group, LatticeFactors) and not group.spin)
        for group in getattr(model, "groups", ())
    )
    return labels != tuple(range(len(labels))) or (len(labels) == 2 and not potts)
