"""Log-potentials as short decimal potentials that read back as the same log-potentials."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats

LOWEST, HIGHEST = -700.0, 700.0
"""Log-potentials between which potentials keep all their digits."""

# Nine digits bring back what people and other programs have written, without its trailing zeros.
_DIGITS = (9, 15, 16, 17)
# exp and log may each be off by the last bit, so a neighbour may be the one that reads back.
_STEPS = (1, -1, 2, -2)


def decimals(logs: Floats) -> Array:
    """Return potentials as texts, given log-potentials that are ``-inf`` or from `LOWEST` to `HIGHEST`.

    The logarithm of each number equals the log-potential wherever some number has that logarithm; close to zero, where
    potentials are close to one, not all do.
    """
    unique, inverse = np.unique(logs, return_inverse=True)
    potentials = np.exp(unique)
    texts = np.full(len(unique), "0", object)
    left = np.flatnonzero(potentials > 0)
    trials = [(digits, potentials) for digits in _DIGITS]
    trials += [(17, potentials + step * np.spacing(potentials)) for step in _STEPS]
    first = True
    for digits, values in trials:
        if not len(left):
            break
        written = [f"{value:.{digits}g}" for value in values[left].tolist()]
        same = np.log(np.fromiter(map(float, written), np.float64, len(written))) == unique[left]
        # Without an exact one it is the first attempt of full length that stays.
        if digits == 17 and first:
            texts[left] = written
            first = False
        hits = np.flatnonzero(same)
        texts[left[hits]] = [written[k] for k in hits.tolist()]
        left = left[~same]
    return texts[inverse].reshape(np.shape(logs))
