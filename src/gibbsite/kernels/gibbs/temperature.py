"""First and last temperatures of annealing and tempering, computed from the scale of a model.

Couplings of a spin glass may be 1 or 100,000. The effect of a temperature depends on the differences of
log-weights between the states of single sites. In random states, these are the barriers that a freely moving chain
must cross; at local maxima, they keep a site in its state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.kernels.gibbs.uphill import go_uphill, measure_drops

_STATES, _SITES = 4, 100_000  # number of random states, and the number of sites for which one state is enough
_SMALLEST = 0.05  # share of the smallest differences at local maxima, which are raised because they are not typical
EXCITED = 1e-3  # share of sites that leave their best state at the last temperature
_LEAST_RATIO = 3.0  # of the first temperature to the last


class TemperatureRange(NamedTuple):
    """The range of temperatures in which a model freezes."""

    # hot, cold: at ``hot`` half of all sites in a random state take each of their states with comparable probabilities;
    # at ``cold`` a given share of all sites, such as one of a thousand, leaves its best state in a sweep
    hot: float
    cold: float
    steep: float  # a difference of log-weights that only one site of ten exceeds in a random state


def temperature_range(graph: Graph, excited: float = EXCITED) -> TemperatureRange:
    """Find the range of temperatures of a model; the result is the same for equal graphs.

    Zeros are ignored, because no temperature makes an impossible state possible. ``excited`` is the share of sites that
    leave their best state at the last temperature.

    Examples
    --------
    >>> import gibbsite as gs
    >>> weak, strong = (gs.ising_grid((20, 20), coupling=c) for c in (1.0, 1e5))
    >>> found = temperature_range(gs.graphs.compile_graph(weak))
    >>> 0.1 < found.cold < 1.0 < found.hot < 10.0
    True
    >>> round(temperature_range(gs.graphs.compile_graph(strong)).hot / found.hot)
    100000
    """
    rng = np.random.default_rng(0)
    work = np.zeros(max(int(graph.cards.max(initial=1)), 2))
    free: list[Floats] = []
    bound: list[Floats] = []
    costly = graph.n_sites >= _SITES or isinstance(graph.arrays, DistanceGraph)
    for _ in range(1 if costly else _STATES):
        x = rng.integers(0, graph.cards, dtype=graph.state_dtype)
        for uphill in (False, True):
            if uphill:
                go_uphill(graph.arrays, x, work)
            nearest, farthest = np.zeros(graph.n_sites), np.zeros(graph.n_sites)
            measure_drops(graph.arrays, x, work, nearest, farthest)
            (bound if uphill else free).append(nearest if uphill else farthest)
    steps, gaps = (_positive(np.concatenate(drops)) for drops in (free, bound))
    if not steps.size or not gaps.size:
        return TemperatureRange(1.0, 1.0 / _LEAST_RATIO, 1.0)
    hot, steep = (float(np.quantile(steps, q)) for q in (0.5, 0.9))
    gaps = np.maximum(gaps, np.quantile(gaps, _SMALLEST))
    return TemperatureRange(hot, min(_freezing(gaps, excited), hot / _LEAST_RATIO), steep)


def _positive(drops: Floats) -> Floats:
    return drops[np.isfinite(drops) & (drops > 0.0)]


def _freezing(gaps: Floats, excited: float) -> float:
    """Return the temperature at which a share of sites is excited, by bisection."""
    low, high = np.log(gaps.min() / 100.0), np.log(gaps.max())
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.exp(-gaps / np.exp(middle)).mean() > excited:
            high = middle
        else:
            low = middle
    return float(np.exp(low))
