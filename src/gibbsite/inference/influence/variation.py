"""Dobrushin variation, a bound on the distance of a chain from its stationary distribution for any start.

Let b_i bound the probability that a chain and the stationary chain, optimally coupled, differ at site i. At first b =
1; a step on site i makes b_i = sum_j C_ij b_j (Mitliagkas and Mackey 2017, definition 7), a step on a site drawn from
q makes b = (I - diag(q) (I - C)) b. The variation is the weighted sum of b.

The three classes below share an interface: the variation after given numbers of steps, and the smallest number of
steps that brings it down to a goal.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32, Words32
from gibbsite._numba.jit import Integer, compiled_loop
from gibbsite.inference.influence.matrix import Influence, multiply


class Found(NamedTuple):
    """The result of a search: steps, their variation, whether the goal is reached, and the curve."""

    steps: int
    value: float
    reached: bool
    stalled: bool
    curve: tuple[Ints, Floats]


class SiteDecay(Protocol):
    """The variation of a scan, and the bounds of single sites, as a function of the number of steps."""

    def values(self, steps: Ints) -> Floats:
        """Return the variation after each of these numbers of steps, ascending."""

    def search(self, goal: float, most: int) -> Found:
        """Find the smallest number of steps, at most ``most``, with a variation of at most ``goal``."""

    def bounds(self, steps: int) -> Floats:
        """Return b after a number of steps: a bound on the total variation of each site."""


@compiled_loop
def _walk(
    start: Words32,
    neighbour: Words32,
    value: Floats,
    order: Ints32,
    at: Integer,
    steps: Integer,
    weights: Floats,
    b: Floats,
    v: float,
    goal: float,
) -> Integer:
    """Take steps of a fixed order until the variation reaches the goal; return their number."""
    for t in range(steps):
        i = np.uintp(order[at])
        at += 1
        if at == order.size:
            at = 0
        new = 0.0
        for k in range(start[i], start[i + np.uintp(1)]):
            new += value[k] * b[neighbour[k]]
        v += weights[i] * (new - b[i])
        b[i] = new
        if v <= goal:
            return t + 1
    return steps


class OrderDecay:
    """The decay of a fixed order, repeated."""

    def __init__(self, influence: Influence, weights: Floats, order: Ints32) -> None:
        self.influence, self.weights = influence, weights
        self.order = np.ascontiguousarray(order, np.int32)
        self.targets = np.flatnonzero(weights)

    def _sum(self, b: Floats) -> float:
        if self.targets.size == self.weights.size:
            return float(self.weights @ b)
        return float(self.weights[self.targets] @ b[self.targets])

    def _advance(self, b: Floats, done: int, steps: int, v: float, goal: float) -> int:
        rows = self.influence
        arrays = (rows.start, rows.neighbour, rows.value, self.order)
        return int(_walk(*arrays, done % self.order.size, steps, self.weights, b, v, goal))

    def values(self, steps: Ints) -> Floats:
        """Return the variation after each of these numbers of steps, ascending."""
        b, done, found = np.ones(self.weights.size), 0, []
        for wanted in steps.tolist():
            self._advance(b, done, wanted - done, 0.0, -np.inf)
            done = wanted
            found.append(self._sum(b))
        return np.array(found)

    def bounds(self, steps: int) -> Floats:
        """Return the bound of each site after a number of steps."""
        b = np.ones(self.weights.size)
        self._advance(b, 0, steps, 0.0, -np.inf)
        return b

    def search(self, goal: float, most: int) -> Found:
        """Find the smallest number of steps, at most ``most``, that brings the variation to ``goal``."""
        b, done = np.ones(self.weights.size), 0
        points, values = [0], [float(self.weights.sum())]
        before, stalled = b.copy(), False
        while values[-1] > goal and done < most and not stalled:
            chunk = min(self.order.size - done % self.order.size, most - done)
            # the tracked value only decides when to stop; the returned value is summed again
            done += self._advance(b, done, chunk, values[-1], goal)
            points.append(done)
            values.append(self._sum(b))
            if done % self.order.size == 0:
                # the bound is monotone: if it does not fall in a whole period, it never will
                stalled = bool((b >= before).all())
                before[:] = b
        curve = np.array(points, np.int64), np.array(values)
        return Found(done, values[-1], values[-1] <= goal, stalled, curve)


class DrawnDecay:
    """The decay of a scan that draws a site at every step with fixed probabilities.

    With r the largest probability, a step is (1 - r) I + r N for the nonnegative N = I - diag(q / r) (I - C), so that T
    steps are a mean of powers of N with binomial weights, which takes T r products instead of T. Uniform scans have N =
    C. The neglected tail of the binomial is bounded by the norm of N and added.
    """

    def __init__(self, influence: Influence, weights: Floats, chances: Floats) -> None:
        self.influence, self.weights = influence, weights
        self.rate = float(chances.max())
        self.share = chances / self.rate
        self.b = np.ones(weights.size)
        self.powers = [float(weights.sum())]
        after = self._apply(np.ones(weights.size))
        self.growth = max(1.0, float(after.max(initial=0.0)))

    def _apply(self, b: Floats) -> Floats:
        rows, moved = self.influence, np.empty_like(b)
        multiply(rows.start, rows.neighbour, rows.value, b, moved)
        return b + self.share * (moved - b)

    def _power(self, most: int) -> Floats:
        """Return the weighted sums of N^k 1 for k up to ``most``."""
        while len(self.powers) <= most:
            self.b = self._apply(self.b)
            self.powers.append(float(self.weights @ self.b))
        return np.array(self.powers[: most + 1])

    def _mixture(self, steps: int) -> Floats:
        """Return the weights of the powers of N; the last one covers the neglected tail."""
        if self.rate >= 1.0:
            last_alone: Floats = np.eye(1, steps + 1, steps)[0]
            return last_alone
        odds = self.rate / (1.0 - self.rate)
        mean = steps * self.rate * self.growth
        last = min(steps, int(mean + 12.0 * np.sqrt(mean) + 60.0))
        k = np.arange(1, last + 1)
        logs = np.concatenate([[0.0], np.cumsum(np.log((steps - k + 1.0) / k) + np.log(odds))])
        shares: Floats = np.exp(logs + steps * np.log1p(-self.rate))
        if last < steps:
            ratio = (steps - last) / (last + 1.0) * odds * self.growth
            shares[-1] *= 1.0 / (1.0 - ratio) if ratio < 1.0 else np.inf
        return shares

    def value(self, steps: int) -> float:
        """Return the variation after a number of steps."""
        with np.errstate(over="ignore", invalid="ignore"):
            shares = self._mixture(steps)
            total = float((shares * self._power(shares.size - 1)).sum())
        return total if np.isfinite(total) else np.inf

    def bounds(self, steps: int) -> Floats:
        """Return the bound of each site after a number of steps."""
        b, total = np.ones(self.weights.size), np.zeros(self.weights.size)
        with np.errstate(over="ignore", invalid="ignore"):
            for share in self._mixture(steps):
                total += share * b
                b = self._apply(b)
        return np.where(np.isfinite(total), total, np.inf)

    def values(self, steps: Ints) -> Floats:
        """Return the variation after each of these numbers of steps."""
        return np.array([self.value(int(each)) for each in steps])

    def search(self, goal: float, most: int) -> Found:
        """Find the smallest number of steps, at most ``most``, that brings the variation to ``goal``."""
        high, points = 1, {0: self.powers[0]}
        n = self.weights.size
        while points[max(points)] > goal and high < most:
            high = min(2 * high, most)
            points[high] = self.value(high)
            if high >= 4 * n and min(points.values()) >= self.powers[0]:
                break  # no decrease for many sweeps, because the norm is 1 or more
        low = max((t for t in points if points[t] > goal), default=0)
        while high - low > 1 and points[high] <= goal:
            middle = (low + high) // 2
            points[middle] = self.value(middle)
            low, high = (low, middle) if points[middle] <= goal else (middle, high)
        best = high if points.get(high, np.inf) <= goal else min(points, key=lambda t: (points[t], t))
        if points[0] <= goal:
            best = 0
        kept = np.array(sorted(t for t in points if t <= best), np.int64)
        curve = kept, np.array([points[int(t)] for t in kept])
        return Found(best, points[best], points[best] <= goal, high < most, curve)


class SweepDecay:
    """The decay of scans that visit every site once per sweep, in an order that may change between sweeps.

    If u bounds b at all later times, (C u)_i bounds b_i after the next visit to site i. After one more sweep, min(u, C
    u) therefore bounds b at all later times, for any order.
    """

    def __init__(self, influence: Influence, weights: Floats) -> None:
        self.influence, self.weights = influence, weights

    def _sweep(self, u: Floats) -> Floats:
        rows, moved = self.influence, np.empty_like(u)
        multiply(rows.start, rows.neighbour, rows.value, u, moved)
        return np.minimum(u, moved)

    def values(self, steps: Ints) -> Floats:
        """Return the variation after each of these numbers of steps, ascending; only whole sweeps count."""
        u, done, found = np.ones(self.weights.size), 0, []
        for wanted in (steps // self.weights.size).tolist():
            for _ in range(wanted - done):
                u = self._sweep(u)
            done = wanted
            found.append(float(self.weights @ u))
        return np.array(found)

    def bounds(self, steps: int) -> Floats:
        """Return the bound of each site after a number of steps, of which only whole sweeps count."""
        u = np.ones(self.weights.size)
        for _ in range(steps // self.weights.size):
            u = self._sweep(u)
        return u

    def search(self, goal: float, most: int) -> Found:
        """Find the smallest number of steps, at most ``most``, that brings the variation to ``goal``."""
        n = self.weights.size
        u, points, values, stalled = np.ones(n), [0], [float(self.weights.sum())], False
        while values[-1] > goal and points[-1] + n <= most and not stalled:
            after = self._sweep(u)
            stalled = bool((after >= u).all())
            u = after
            points.append(points[-1] + n)
            values.append(float(self.weights @ u))
        curve = np.array(points, np.int64), np.array(values)
        return Found(points[-1], values[-1], values[-1] <= goal, stalled, curve)
