"""How much neighbours agree: the coupling of a Potts model, learnt from labels by pseudo-likelihood.

The pseudo-likelihood is the product over sites of the probability of the label given those of the neighbours,
with fields f: log PL = sum_i f_i(x_i) + J n_i(x_i) - log sum_a exp(f_i(a) + J n_i(a)), where n_i(a) counts
the neighbours of i with label a. It is concave in J [1]_.

References
----------
.. [1] Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician 24, 179-195.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Integers
from gibbsite.errors import ModelError

FOUR = ((0, 1), (1, 0))
EIGHT = (*FOUR, (1, 1), (1, -1))


class LabelledField(NamedTuple):
    """Fields of sites with a known label, and how many neighbours have which label."""

    fields: Floats
    labels: Integers
    near: Floats


def count_neighbours(labels: Integers, states: int, neighbours: int = 4) -> Floats:
    """Count the neighbours with each label, an array (rows, columns, states); negative labels are unknown."""
    known: Floats = (labels[..., None] == np.arange(states)).astype(np.float64)
    rows, columns = labels.shape
    near = np.zeros_like(known)
    for down, right in FOUR if neighbours == 4 else EIGHT:
        a = (slice(0, rows - down), slice(max(0, -right), columns - max(0, right)))
        b = (slice(down, rows), slice(max(0, right), columns + min(0, right)))
        near[a] += known[b]
        near[b] += known[a]
    return near


def gather(fields: Floats, labels: Integers, neighbours: int = 4) -> LabelledField:
    """Return the sites of a lattice whose labels are known.

    ``fields`` (rows, columns, states): log-potentials; ``labels`` (rows, columns): labels; negative ones are unknown,
    and neither sites nor neighbours; ``neighbours`` in {4, 8}: which sites are neighbours.
    """
    known = labels >= 0
    near = count_neighbours(labels, fields.shape[-1], neighbours)
    return LabelledField(fields[known], labels[known], near[known])


def pseudo_likelihood(coupling: float, data: LabelledField) -> tuple[float, float, float]:
    """Return the log-pseudo-likelihood of a coupling with its first two derivatives."""
    weights = data.fields + coupling * data.near
    most = weights.max(axis=1, keepdims=True)
    p = np.exp(weights - most)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    at = (np.arange(len(p)), data.labels)
    value = float((weights[at] - most[:, 0] - np.log(total[:, 0])).sum())
    mean = (p * data.near).sum(axis=1)
    slope = float((data.near[at] - mean).sum())
    bend = -float(((p * data.near**2).sum(axis=1) - mean**2).sum())
    return value, slope, bend


def learn_coupling(parts: Sequence[LabelledField], ridge: float = 1e-3) -> float:
    """Return the coupling of the largest pseudo-likelihood, by Newton's method.

    ``parts``: lattices with known labels; ``ridge``: penalty on half the square of the coupling, which keeps it
    finite where all neighbours agree.
    """
    data = LabelledField(*(np.concatenate([part[k] for part in parts]) for k in range(3)))
    if not data.near.any():
        raise ModelError("no two neighbouring patches have a label; a coupling cannot be learnt from that.")
    coupling, value = 0.0, -np.inf
    for _ in range(100):
        found = pseudo_likelihood(coupling, data)
        value = found[0] - 0.5 * ridge * coupling**2
        step = (found[1] - ridge * coupling) / (ridge - found[2])
        # concave: halving a step that goes too far ends in a better one
        while abs(step) > 1e-10:
            trial = coupling + step
            if pseudo_likelihood(trial, data)[0] - 0.5 * ridge * trial**2 >= value:
                break
            step *= 0.5
        coupling += step
        if abs(step) <= 1e-10:
            break
    return coupling
