"""How couplings fall with the distance of two sites: exp(-gamma d^2), or a function of the user."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Words64
from gibbsite._numba.foreign import adopt, call_at, stack_room
from gibbsite._numba.jit import inlined
from gibbsite.errors import ModelError


class Decay(NamedTuple):
    """The rate of an exponential, or the address of a function of the distance (0: there is none)."""

    gamma: float
    address: int
    nothing: Words64


_KEPT: dict[str, Any] = {}  # functions of users, by digest: machine code lives as long as the process


def make_decay(gamma: float, function: Any) -> Decay:
    """Return how couplings fall, as compiled code sees it."""
    address = 0
    if function is not None:
        try:
            code = adopt(function, "value", must_compile=True)
        except ModelError as reason:
            raise ModelError(f"the couplings: {reason}") from None
        address = _KEPT.setdefault(code.digest, code).address
    return Decay(gamma, address, np.zeros(4, np.uint64))


@inlined
def fall(decay: Decay, square: float) -> float:
    """Return the coupling at a squared distance, one at distance zero."""
    if decay.address == 0:
        return math.exp(-decay.gamma * square)
    room = stack_room()
    room[0] = math.sqrt(square)
    return call_at(decay.address, room, 0, 1, room, 0, 0, decay.nothing)
