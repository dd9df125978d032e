"""Messages on binary lattices, updated line by line; a two-state message is a single number, its odds.

A message along an edge of coupling J, from a site whose field and other messages give odds c, has the odds (w c + 1) /
(c + w) with w = exp(2 J). A missing edge has coupling zero and odds one, so that every axis is treated as periodic. A
pass goes through the lines of the last axis: first the messages along the line, in both directions, then those to the
next line (and plane), which are independent of each other. A sweep is a forward and a backward pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.graphs.kinds.lattice import LatticeGraph

_STEEPEST = 600.0  # log-odds that a product of odds may have


class OddsLattice(NamedTuple):
    """Messages of a binary lattice, as odds of state 1; arrays of sites are flat.

    ``size_0`` to ``size_2`` are the numbers of planes, of lines in a plane, and of sites in a line. ``field`` is exp(2
    field), ``along_0`` to ``along_2`` are exp(2 coupling) of a site and the next one of each axis, ``ahead_0`` to
    ``back_2`` the messages of a site to the next one, and of the next one to it. ``base`` and ``worst`` belong to the
    sites of one line: their odds without messages along the line, and the largest relative changes.
    """

    size_0: int
    size_1: int
    size_2: int
    field: Floats
    along_0: Floats
    along_1: Floats
    along_2: Floats
    ahead_0: Floats
    ahead_1: Floats
    ahead_2: Floats
    back_0: Floats
    back_1: Floats
    back_2: Floats
    base: Floats
    worst: Floats


def lay_out_lattice(lattice: LatticeGraph) -> OddsLattice | None:
    """Return messages of odds one; None if couplings are too large, or an edge exists twice."""
    sizes = (lattice.size_0, lattice.size_1, lattice.size_2)
    wraps = (lattice.wrap_0, lattice.wrap_1, lattice.wrap_2)
    if any(wrap and size <= 2 for size, wrap in zip(sizes, wraps, strict=True)):
        return None
    n = int(np.prod(sizes))
    field = np.broadcast_to(lattice.field, (n,))
    reach = np.abs(field).copy()
    couplings = []
    for axis, given in enumerate((lattice.coupling_0, lattice.coupling_1, lattice.coupling_2)):
        coupling = np.array(np.broadcast_to(given, (n,))).reshape(sizes)
        if not wraps[axis]:
            np.moveaxis(coupling, axis, 0)[-1] = 0.0
        reach += (np.abs(coupling) + np.abs(np.roll(coupling, 1, axis))).ravel()
        couplings.append(coupling.ravel())
    if 2.0 * reach.max(initial=0.0) > _STEEPEST:
        return None
    odds = [np.exp(2.0 * one) for one in couplings]
    messages = [np.ones(n) for _ in range(6)]
    line = [np.zeros(sizes[2]) for _ in range(2)]
    return OddsLattice(*sizes, np.exp(2.0 * field), *odds, *messages, *line)


@inlined
def _pass_on(w: float, c: float) -> float:
    return (w * c + 1.0) / (c + w)


@inlined
def _larger(a: float, b: float) -> float:
    return a if a > b else b


@inlined
def _change(old: float, new: float) -> float:
    """Return the relative change of odds, with respect to the larger."""
    return abs(new - old) / _larger(old, new)


@inlined
def _renew_line(g: OddsLattice, at: Integer, damping: float) -> None:
    """Update the messages along the line that starts at a site, in both directions at once."""
    n = np.uintp(g.size_2)
    last = at + n - np.uintp(1)
    up = g.ahead_2[last]  # along the edge from the last site to the first one
    for t in range(n):
        s = at + t
        w = g.along_2[s]
        old = g.ahead_2[s]
        new = _pass_on(w, g.base[t] * up)
        g.worst[t] = _larger(g.worst[t], _change(old, new))
        up = old + damping * (new - old)
        g.ahead_2[s] = up
        # the message back along the edge before site r, for r from the last site down
        r = n - np.uintp(1) - t
        before = at + r - np.uintp(1) if r > np.uintp(0) else last
        old = g.back_2[before]
        incoming = g.back_2[at + r]
        new = _pass_on(g.along_2[before], g.base[r] * incoming)
        g.worst[r] = _larger(g.worst[r], _change(old, new))
        g.back_2[before] = old + damping * (new - old)


@inlined
def _renew_across(
    g: OddsLattice, at: Integer, edge: Integer, w: Floats, messages: Floats, into: Floats, damping: float
) -> None:
    """Update the messages of a line to a neighbouring line, excluding the messages that come from that line."""
    n = np.uintp(g.size_2)
    last = n - np.uintp(1)
    for t in range(n):
        s = at + t
        before = s - np.uintp(1) if t > np.uintp(0) else at + last
        odds = g.base[t] * g.ahead_2[before] * g.back_2[s] / into[edge + t]
        old = messages[edge + t]
        new = _pass_on(w[edge + t], odds)
        g.worst[t] = _larger(g.worst[t], _change(old, new))
        messages[edge + t] = old + damping * (new - old)


@compiled_loop
def sweep_lattice(g: OddsLattice, passes: int, damping: float) -> float:
    """Make passes, alternately forward and back; return the largest relative change of the odds of a message."""
    n, n_1 = np.uintp(g.size_2), np.uintp(g.size_1)
    plane = n_1 * n
    lines = np.uintp(g.size_0) * n_1
    for t in range(n):
        g.worst[t] = 0.0
    for one in range(passes):
        forward = one % 2 == 0
        for number in range(lines):
            line = np.uintp(number) if forward else lines - np.uintp(1) - np.uintp(number)
            at = line * n
            p, y = line // n_1, line % n_1
            above = at - n if y > np.uintp(0) else at + plane - n
            over = at - plane if p > np.uintp(0) else at + (np.uintp(g.size_0) - np.uintp(1)) * plane
            for t in range(n):
                s = at + t
                g.base[t] = g.field[s] * g.ahead_1[above + t] * g.back_1[s]
            if g.size_0 > 1:
                for t in range(n):
                    g.base[t] *= g.ahead_0[over + t] * g.back_0[at + t]
            _renew_line(g, at, damping)
            if forward:
                _renew_across(g, at, at, g.along_1, g.ahead_1, g.back_1, damping)
                if g.size_0 > 1:
                    _renew_across(g, at, at, g.along_0, g.ahead_0, g.back_0, damping)
            else:
                _renew_across(g, at, above, g.along_1, g.back_1, g.ahead_1, damping)
                if g.size_0 > 1:
                    _renew_across(g, at, over, g.along_0, g.back_0, g.ahead_0, damping)
    worst = 0.0
    for t in range(n):
        worst = max(worst, g.worst[t])
    return worst


def edges_of(g: OddsLattice) -> list[tuple[Floats, Floats, Floats, Ints]]:
    """Return, for each axis, exp(2 coupling), messages ahead and back, and the next site of every site."""
    sizes = (g.size_0, g.size_1, g.size_2)
    sites = np.arange(g.field.size).reshape(sizes)
    parts = zip(
        (g.along_0, g.along_1, g.along_2),
        (g.ahead_0, g.ahead_1, g.ahead_2),
        (g.back_0, g.back_1, g.back_2),
        strict=True,
    )
    return [(*part, np.roll(sites, -1, axis).ravel()) for axis, part in enumerate(parts) if sizes[axis] > 1]


def summarise_lattice(g: OddsLattice) -> tuple[Floats, float]:
    """Return the log-odds of all sites, and Bethe's log-partition function."""
    half = np.log(g.field)
    degree = np.zeros(half.size)
    edges = [(np.log(w), np.log(ahead), np.log(back), far) for w, ahead, back, far in edges_of(g)]
    for w, ahead, back, far in edges:
        half += back
        half[far] += ahead  # a permutation of the sites
        degree += w != 0.0
        degree[far] += w != 0.0
    log_z = float(((1.0 - degree) * np.logaddexp(0.5 * half, -0.5 * half)).sum())
    for w, ahead, back, far in edges:
        near_field, far_field = 0.5 * (half - back), 0.5 * (half[far] - ahead)
        same = np.logaddexp(near_field + far_field, -near_field - far_field) + 0.5 * w
        other = np.logaddexp(near_field - far_field, far_field - near_field) - 0.5 * w
        log_z += float(np.logaddexp(same, other)[w != 0.0].sum())
    return half, log_z
