"""Naive Python twins of the compiled loops: slow, plain, and written without looking at speed.

They follow the same arithmetic in the same order, so their results must be equal bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite.kernels.tempered.paired import find_cluster

MASK = (1 << 64) - 1


class Xoshiro:
    """xoshiro256++ with Python integers."""

    def __init__(self, words: Any) -> None:
        self.s = [int(word) for word in words]

    def bits(self) -> int:
        a, b, c, d = self.s
        out = (rotate((a + d) & MASK, 23) + a) & MASK
        t = (b << 17) & MASK
        c, d = c ^ a, d ^ b
        b, a = b ^ c, a ^ d
        self.s = [a, b, c ^ t, rotate(d, 45)]
        return out

    def uniform(self) -> float:
        return (self.bits() >> 11) / 2**53

    def below(self, n: int) -> int:
        # reject so that every value has the same number of 32-bit words
        while True:
            product = (self.bits() >> 32) * n
            if product % 2**32 >= 2**32 % n:
                return product >> 32


def rotate(word: int, by: int) -> int:
    return ((word << by) | (word >> (64 - by))) & MASK


def register_bits(polynomial: int) -> list[int]:
    """One period of b[j + m] = XOR of b[j + e] over the exponents e < m, from 1, 0, 0, ... on."""
    m = polynomial.bit_length() - 1
    bits = [1] + [0] * (m - 1)
    while len(bits) < 2**m - 1:
        bits.append(sum(bits[-m + e] for e in range(m) if polynomial >> e & 1) % 2)
    return bits


def register_numbers(polynomial: int, stride: int) -> list[int]:
    """One period of the 32-bit numbers that begin at bits 0, stride, 2 stride, ..."""
    bits = register_bits(polynomial)
    period = len(bits)
    return [int("".join(str(bits[(i * stride + k) % period]) for k in range(32)), 2) for i in range(period)]


def driving_rows(polynomial: int, stride: int, shift: Any) -> list[list[float]]:
    """The rows that drive a chain: zeros, then numbers in rows of a length prime to the period."""
    numbers = register_numbers(polynomial, stride)
    width = next(d for d in range(len(shift), 2**40) if math.gcd(d, len(numbers)) == 1)
    rows = [[0] * len(shift)]
    rows += [[numbers[(t * width + k) % len(numbers)] for k in range(len(shift))] for t in range(len(numbers))]
    return [[(word ^ int(own)) / 2**32 + 2**-33 for word, own in zip(row, shift, strict=True)] for row in rows]


class Driven:
    """Hands out given numbers one after another, over and over, in place of a generator."""

    def __init__(self, numbers: list[float]) -> None:
        self.numbers, self.at, self.s = numbers, 0, []

    def uniform(self) -> float:
        self.at += 1
        return self.numbers[(self.at - 1) % len(self.numbers)]


def log_odds(graph: Any, x: list[int], i: int) -> float:
    g = graph.arrays
    if graph.kind == "ising":
        total = float(g.field[i])
        for k in range(int(g.start[i]), int(g.start[i + 1])):
            total += float(g.coupling[k]) * x[int(g.neighbour[k])]
        return total
    sizes = (g.size_0, g.size_1, g.size_2)
    wraps = (g.wrap_0, g.wrap_1, g.wrap_2)
    couplings = (g.coupling_0, g.coupling_1, g.coupling_2)
    strides = (sizes[1] * sizes[2], sizes[2], 1)
    place = np.unravel_index(i, sizes)
    total = float(g.field[i if g.field.size > 1 else 0])
    for axis in (2, 0, 1):
        at, size, stride, weight = int(place[axis]), sizes[axis], strides[axis], couplings[axis]
        part = 0.0
        before = i - stride if at > 0 else i + (size - 1) * stride
        after = i + stride if at < size - 1 else i - (size - 1) * stride
        if at > 0 or wraps[axis]:
            part += float(weight[before if weight.size > 1 else 0]) * (2 * x[before] - 1)
        if at < size - 1 or wraps[axis]:
            part += float(weight[i if weight.size > 1 else 0]) * (2 * x[after] - 1)
        if axis != 0 or size > 1:
            total += part
    return 2.0 * total


def table_rows(graph: Any, x: list[int], i: int) -> list[list[int]]:
    """Return, for every factor of site i, where its entries for the states of the site stand."""
    g = graph.arrays
    states = range(int(g.card[i]))
    rows = []
    for k in range(int(g.start[i]), int(g.start[i + 1])):
        if graph.kind == "pairwise":
            first = int(g.table[k]) + x[int(g.neighbour[k])] * len(states)
            rows.append([first + a for a in states])
        else:
            f = int(g.factor[k])
            members = range(int(g.member_start[f]), int(g.member_start[f + 1]))
            rows.append(
                [
                    int(g.table[f])
                    + sum(int(g.stride[m]) * (a if int(g.member[m]) == i else x[int(g.member[m])]) for m in members)
                    for a in states
                ]
            )
    return rows


def log_weights(graph: Any, x: list[int], i: int) -> list[float]:
    if graph.binary:
        return [0.0, log_odds(graph, x, i)]
    g = graph.arrays
    logs = g.log_unary[int(g.offset[i]) : int(g.offset[i]) + int(g.card[i])].tolist()
    if graph.kind in ("potts", "distance"):
        for j, coupling in potts_row(graph, i):
            logs[x[j]] += coupling
    else:
        for row in table_rows(graph, x, i):
            logs = [log + float(g.log_value[at]) for log, at in zip(logs, row, strict=True)]
    return logs


def weights(graph: Any, x: list[int], i: int) -> list[float]:
    g = graph.arrays
    if graph.kind == "potts":
        return potts_weights(graph, x, i)
    if graph.kind == "distance":
        return from_logs(log_weights(graph, x, i))
    states, rows = range(int(g.card[i])), table_rows(graph, x, i)
    cell = int(g.offset[i])
    w = [float(g.unary[cell + a]) for a in states]
    for row in rows:
        w = [w[a] * float(g.value[row[a]]) for a in states]
    return from_logs(log_weights(graph, x, i)) if sum_in_order(w) < 1e-150 else w


def from_logs(logs: list[float]) -> list[float]:
    top = max(logs)
    return [math.exp(value - top) for value in logs]


def potts_row(graph: Any, i: int) -> list[tuple[int, float]]:
    """Neighbours of a site and their couplings."""
    g = graph.arrays
    if graph.kind == "distance":
        at = g.positions.tolist()
        squares = [sum_in_order([(a - b) ** 2 for a, b in zip(at[i], other, strict=True)]) for other in at]
        return [(j, g.beta * math.exp(-g.decay.gamma * square)) for j, square in enumerate(squares) if j != i]
    row = range(int(g.start[i]), int(g.start[i + 1]))
    return [(int(g.neighbour[k]), float(g.coupling[k if g.coupling.size > 1 else 0])) for k in row]


def potts_weights(graph: Any, x: list[int], i: int) -> list[float]:
    cells = range(int(graph.offset[i]), int(graph.offset[i + 1]))
    row = potts_row(graph, i)
    if sum_in_order([abs(coupling) for _, coupling in row]) > 300.0:
        return from_logs(log_weights(graph, x, i))
    w = [float(graph.arrays.unary[c]) for c in cells]
    for j, coupling in row:
        w[x[j]] *= float(np.exp(coupling))
    return w


class Kept:
    """Log-weights of all sites, changed with every change of a site, taken anew after 64 changes per site."""

    def __init__(self, graph: Any) -> None:
        self.graph, self.left = graph, 0
        self.logs: list[list[float]] = []

    def weights(self, x: list[int], i: int) -> list[float]:
        if self.left == 0:
            offset, log_unary = self.graph.offset, self.graph.arrays.log_unary
            self.logs = [log_unary[offset[j] : offset[j + 1]].tolist() for j in range(len(x))]
            for j in range(len(x)):
                self.add(j, x[j], 1)
            self.left = 64 * len(x)
        return from_logs(self.logs[i])

    def change(self, i: int, old: int, new: int) -> None:
        self.add(i, old, -1)
        self.add(i, new, 1)
        self.left -= 1

    def add(self, i: int, state: int, sign: int) -> None:
        if self.graph.arrays.dense.size:  # there, parallel factors have been added up
            matrix = self.graph.arrays.dense.reshape(len(self.logs), -1)
            row = list(enumerate(matrix[i].tolist()))
        else:
            row = potts_row(self.graph, i)
        for j, coupling in row:
            self.logs[j][state] += sign * coupling


def sum_in_order(values: list[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def pick(w: list[float], level: float) -> int:
    passed, chosen = 0.0, 0
    for a, weight in enumerate(w):
        if weight > 0.0:
            chosen, passed = a, passed + weight
            if level < passed:
                break
    return chosen


def step(graph: Any, rule: str, x: list[int], i: int, rng: Any, kept: Kept | None = None) -> list[float]:
    """Move site i; return what is recorded: the log-odds or the probabilities."""
    if graph.binary:
        u = rng.uniform()
        odds = log_odds(graph, x, i)
        if rule == "heat-bath":
            x[i] = int(odds > (math.log(u / (1.0 - u)) if u > 0 else -math.inf))
        else:
            gain = odds if x[i] == 0 else -odds
            if gain >= 0 or u < math.exp(gain):
                x[i] = 1 - x[i]
        return [odds]
    w, old = weights(graph, x, i) if kept is None else kept.weights(x, i), x[i]
    u = rng.uniform()
    total = sum_in_order(w)
    probabilities = [weight * (1.0 / total) for weight in w]
    if rule == "heat-bath":
        x[i] = pick(w, u * total)
    elif rule == "metropolised":
        now = x[i]
        rest = sum_in_order([weight for a, weight in enumerate(w) if a != now])
        row = [0.0 if a == now or w[a] <= 0 else w[a] / max(rest, total - w[a]) for a in range(len(w))]
        stay = total
        for a in range(len(w)):
            if a != now:
                stay -= row[a] * total
        row[now] = max(stay / total, 0.0)
        x[i] = pick(row, u)
    else:
        x[i] = pick(suwa_todo(w, x[i]), u)
    if kept is not None and x[i] != old:
        kept.change(i, old, x[i])
    return probabilities


def suwa_todo(w: list[float], now: int) -> list[float]:
    """Turn the circle of weights by the largest; see where the interval of ``now`` comes to lie."""
    first = w.index(max(w))
    order = [(first + k) % len(w) for k in range(len(w))]
    edges = [0.0]
    for a in order:
        edges.append(edges[-1] + w[a])
    total = edges[-1]
    low = edges[order.index(now)] + w[first]
    high = low + w[now]
    row = [0.0] * len(w)
    length, landed = 0.0, first
    for k, a in enumerate(order):
        begin, end = edges[k], edges[k + 1]
        if w[a] > 0 and (begin <= low < end or begin <= low - total < end):
            landed = a
        straight = min(high, end) - max(low, begin)
        around = min(high - total, end) - max(low - total, begin)
        row[a] = max(0.0, straight) + max(0.0, around)
        length += row[a]
    return [value / length for value in row] if length > 0 else [float(a == landed) for a in range(len(w))]


def visits(scan: Any, graph: Any, rng: Any) -> Callable[[], int]:
    """Return a function that gives one site after another."""
    name, n = type(scan).__name__, graph.n_sites
    schedule = scan.schedule(graph)
    order: list[int] = list(range(n))
    queue: list[int] = []

    def following() -> int:
        if not queue:
            if name == "Shuffled":
                for k in range(n - 1, 0, -1):
                    j = rng.below(k + 1)
                    order[k], order[j] = order[j], order[k]
                queue.extend(order)
            elif name == "RandomScan":
                for _ in range(n):
                    site = rng.below(n)
                    if schedule.stay.size and rng.uniform() >= float(schedule.stay[site]):
                        site = int(schedule.other[site])
                    queue.append(site)
            elif hasattr(schedule, "order"):
                queue.extend(int(site) for site in schedule.order)
            else:
                queue.extend(range(n))
        return queue.pop(0)

    return following


def sigmoid(odds: float) -> float:
    """1 / (1 + exp(-odds)) by the polynomial of the tape."""
    y = min(max(odds, -40.0), 40.0) * -0.015625
    e = 1.0 / 479001600.0
    for k in range(11, -1, -1):
        e = e * y + 1.0 / math.factorial(k)
    for _ in range(6):
        e = e * e
    return 1.0 / (1.0 + e)


def run(graph: Any, rule: str, scan: Any, x0: Any, words: Any, sweeps: int, kept: Kept | None = None) -> Any:
    """Run ``sweeps`` sweeps from ``x0``; return the state, the generator words and the marginal sums."""
    x = [int(code) for code in x0]
    rng = words if isinstance(words, Driven) else Xoshiro(words)
    site_of = visits(scan, graph, rng)
    offset = list(range(graph.n_sites + 1)) if graph.binary else graph.offset.tolist()
    if graph.binary:
        recorded = [math.inf if code else -math.inf for code in x]
    else:
        recorded = [0.0] * graph.n_cells
        for i, code in enumerate(x):
            recorded[offset[i] + code] = 1.0
    sums = [0.0] * graph.n_cells
    for _ in range(sweeps):
        for _ in range(graph.n_sites):
            i = site_of()
            cells = step(graph, rule, x, i, rng, kept)
            recorded[offset[i] : offset[i] + len(cells)] = cells
        for c, value in enumerate(recorded):
            sums[c] += sigmoid(value) if graph.binary else value
    return x, rng.s, sums


def cooled_step(graph: Any, temperature: float, x: list[int], i: int, rng: Xoshiro) -> None:
    """Move site i by its conditional to the power 1 / T; at zero to the first of its best states."""
    u = rng.uniform()
    logs = log_weights(graph, x, i)
    top = max(logs)
    if temperature == 0.0:
        x[i] = logs.index(top)
    elif graph.binary:
        x[i] = int(logs[1] * (1.0 / temperature) > (math.log(u / (1.0 - u)) if u > 0 else -math.inf))
    else:
        w = [math.exp(1.0 / temperature * (log - top)) for log in logs]
        x[i] = pick(w, u * sum_in_order(w))


def run_annealed(graph: Any, temperatures: Any, scan: Any, x0: Any, words: Any, sweeps: int) -> Any:
    """Run sweeps at one temperature after another; the last one stays. Return state and generator words."""
    x = [int(code) for code in x0]
    rng = Xoshiro(words)
    site_of = visits(scan, graph, rng)
    for sweep in range(sweeps):
        for _ in range(graph.n_sites):
            cooled_step(graph, temperatures[min(sweep, len(temperatures) - 1)], x, site_of(), rng)
    return x, rng.s


def exchange_around(memory: Any, x: Any, y: Any, seed: int) -> int:
    """Exchange the cluster of a site at which two states differ; return its size."""
    size = int(find_cluster(memory, x, y, seed))
    sites = memory.todo[:size]
    memory.mark[sites] = 0
    x[sites], y[sites] = y[sites], x[sites]
    return size
