"""Do conditionals belong to one joint distribution? Asked of functions that draw, with its log-density.

At random places each block is drawn many times. Given the rest of such a draw, a coordinate of the block
should follow the density along its own axis: its distribution function, by integration, makes it uniform,
whatever the other coordinates are. Uniformity is tested (Kolmogorov and Smirnov), also of states, each
spread over the step of its code.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._foreign import call_at
from gibbsite._jit import compiled
from gibbsite._random import stream
from gibbsite.errors import ModelError
from gibbsite.graph.conditionals import ConditionalsGraph
from gibbsite.graph.lower import compile_graph
from gibbsite.model.conditionals import Conditionals

Floats = NDArray[np.float64]

_NODES = 400  # of the integral along an axis
_FAR = 60.0  # log-density below its maximum that is as good as nothing
_STEPS = 80  # of growing length, to where that is so


@dataclass(frozen=True)
class Compatibility:
    """How well conditionals agree with a joint density.

    Attributes
    ----------
    compatible : bool
        No test was failed.
    p_values : dict
        Smallest p-value of each site, over all places, times the number of tests (Bonferroni).
    worst : str
        The site that agrees least.
    """

    compatible: bool
    p_values: dict[str, float]
    worst: str

    def __bool__(self) -> bool:
        return self.compatible


def check_conditionals(
    model: Conditionals,
    *,
    places: int = 5,
    draws: int = 400,
    false_alarm: float = 1e-6,
    start: Any = None,
    rng: Any = 0,
) -> Compatibility:
    """Check that the conditionals of a model are those of its joint log-density.

    Parameters
    ----------
    model : Conditionals
        With ``log_density``.
    places, draws : int
        Random places, and draws of every block at each.
    false_alarm : float
        How likely conditionals that are right are called wrong.
    start : array (n,), optional
        A place to begin at; the places are those that the conditionals themselves lead to from there.
    rng : int
        Seed.

    Returns
    -------
    Compatibility

    Raises
    ------
    ModelError
        If there is no joint density, or it is not a number somewhere.

    Examples
    --------
    >>> import gibbsite as gs
    >>> density = lambda x: -0.5 * (x[0] ** 2 - 1.6 * x[0] * x[1] + x[1] ** 2) / 0.36
    >>> right = lambda k: lambda x, rng: rng.normal(0.8 * x[k], 0.6)
    >>> check_conditionals(gs.Conditionals({"a": right(1), "b": right(0)}, log_density=density)).compatible
    True
    >>> wrong = lambda x, rng: rng.normal(0.8 * x[0], 1.0)
    >>> check_conditionals(gs.Conditionals({"a": right(1), "b": wrong}, log_density=density)).worst
    'b'
    """
    from scipy import stats

    if not isinstance(model, Conditionals) or model.log_density is None:
        raise ModelError("check_conditionals needs gs.Conditionals(..., log_density=...), the joint density.")
    graph: ConditionalsGraph = compile_graph(model).arrays
    words = stream(int(rng), 0)
    generator = np.random.default_rng(int(rng))
    x = model.draw_start(generator) if start is None else np.array(start, float)
    found: dict[str, list[float]] = {name: [] for name in model.sites}
    for _ in range(places):
        for block in range(graph.address.size):
            if graph.address[block] == 0:
                continue  # moved by the density itself
            sites = graph.member[graph.start[block] : graph.start[block + 1]]
            drawn = np.array([_draw(graph, block, x, words, sites.size) for _ in range(draws)])
            for k, site in enumerate(sites.tolist()):
                cells = [_place_in_law(model, graph, x, sites, values, k) for values in drawn]
                if graph.card[site]:
                    p = _test_states(np.array(cells), drawn[:, k].astype(int), generator)
                else:
                    p = float(stats.kstest(np.array(cells), "uniform").pvalue)
                found[model.sites[site]].append(p)
            x[sites] = drawn[-1]
    tests = sum(len(ps) for ps in found.values())
    p_values = {name: min(min(ps) * tests, 1.0) for name, ps in found.items() if ps}
    worst = min(p_values, key=lambda name: p_values[name]) if p_values else ""
    return Compatibility(all(p >= false_alarm for p in p_values.values()), p_values, worst)


def _draw(graph: ConditionalsGraph, block: int, x: Floats, words: NDArray[np.uint64], count: int) -> Floats:
    out = np.zeros(count)
    said = call_at(int(graph.address[block]), x.copy(), 0, x.size, out, 0, count, words)
    if math.isnan(said) or not np.isfinite(out).all():
        raise ModelError(f"conditional {block} failed at {np.array2string(x, precision=4)}.")
    return out


@compiled
def _fill_logs(
    density: int, x: Floats, site: int, values: Floats, logs: Floats, words: NDArray[np.uint64]
) -> None:
    for k in range(values.size):
        x[site] = values[k]
        logs[k] = call_at(density, x, 0, x.size, x, 0, 0, words)


def _log_densities(graph: ConditionalsGraph, x: Floats, site: int, values: Floats) -> Floats:
    """Return the joint log-density along an axis."""
    logs = np.empty(values.size)
    _fill_logs(graph.density, x, site, values, logs, graph.nothing)
    wrong = np.isnan(logs) | (logs == math.inf)
    if wrong.any():
        x[site] = values[int(np.argmax(wrong))]
        raise ModelError(f"the joint log-density is {logs[wrong][0]} at {np.array2string(x, precision=4)}.")
    return logs


def _place_in_law(
    model: Conditionals, graph: ConditionalsGraph, x: Floats, sites: NDArray[Any], values: Floats, k: int
) -> Any:
    """Return where a drawn value lies in the law of its coordinate given all others: a number in (0, 1).

    For states, the probabilities of all of them.
    """
    there = x.copy()
    there[sites] = values
    site = int(sites[k])

    def logs_at(values: Floats) -> Floats:
        return _log_densities(graph, there, site, np.asarray(values, float))

    if graph.card[site]:
        logs = logs_at(np.arange(float(graph.card[site])))
        chances = np.exp(logs - logs.max())
        return chances / chances.sum()
    at = float(values[k])
    low, high = _support(logs_at, at, float(graph.low[site]), float(graph.high[site]))
    nodes, weights = _quadrature()
    places = [0.5 * (b - a) * nodes + 0.5 * (a + b) for a, b in ((low, at), (at, high))]
    logs = logs_at(np.concatenate(places)).reshape(2, -1)
    below, above = np.exp(logs - logs.max()) @ weights * np.array([at - low, high - at])
    return below / (below + above) if below + above > 0 else 0.5


@functools.cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss and Legendre."""
    return np.polynomial.legendre.leggauss(_NODES)


def _support(logs_at: Any, at: float, low: float, high: float) -> tuple[float, float]:
    """Return between which values nearly all of the density along an axis lies."""
    steps = 1e-3 * (1.0 + abs(at)) * 1.5 ** np.arange(_STEPS)
    ends = []
    for side, bound in ((-1.0, low), (1.0, high)):
        places = at + side * steps
        places = places[side * (bound - places) > 0]
        if not places.size:
            ends.append(bound)
            continue
        logs = logs_at(places)
        over = np.flatnonzero(logs < np.maximum.accumulate(logs) - _FAR)
        reached = float(places[over[0]]) if over.size else float(places[-1])
        ends.append(bound if not over.size and math.isfinite(bound) else reached)
    return ends[0], ends[1]


def _test_states(probabilities: Floats, codes: NDArray[Any], rng: np.random.Generator) -> float:
    """Return the p-value of drawn codes: made uniform by a random place in the step of their code."""
    from scipy import stats

    upto = np.cumsum(probabilities, axis=1)
    rows = np.arange(codes.size)
    u = upto[rows, codes] - rng.random(codes.size) * probabilities[rows, codes]
    return float(stats.kstest(u, "uniform").pvalue)
