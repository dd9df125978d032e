"""The log-density of a model as a landscape to walk in: coordinates without bounds, in units of a run.

Coordinates with bounds are mapped to the whole line (logarithm, logit), with the density that belongs to
that, so that a mode at a bound is a hill like others. All coordinates are then counted in standard
deviations of the run, along its main axes.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.cache import Recent
from gibbsite.graphs.functions.densities import evaluate_gradients, evaluate_places
from gibbsite.graphs.graph import Graph

_MANY_ROWS = 20_000  # rows of data that are too many to go through for each place
_SOME_ROWS = 2_000  # rows that are looked at instead
_STEEPEST = 40.0  # logits beyond this are bounds
_TRIAL, _SLOW = 8, 1e-4  # places by which the time of an evaluation is measured; more if it takes less
_AGAIN, _ENOUGH = 8, 0.02  # measurements with more places, and seconds that they take
_PACES: Recent[float] = Recent(256)  # by the digest of a graph


def can_be_walked_in(graph: Graph) -> bool:
    """Tell whether a model has a joint log-density of numbers alone."""
    if graph.kind in ("density", "data"):
        return True
    if graph.kind == "functions":
        return not graph.arrays.card.any()
    return graph.kind == "conditionals" and graph.arrays.density != 0 and not graph.arrays.card.any()


class Landscape:
    """A log-density, in coordinates made for a run.

    Parameters
    ----------
    graph : Graph
        The compiled model.
    places : float array (places, n)
        Places of the run.
    deviations : float array (n,)
        Its standard deviations; NaN where they are not known.
    rng : Generator
        Chooses the rows that are looked at where the data are many.
    """

    def __init__(self, graph: Graph, places: Floats, deviations: Floats, rng: np.random.Generator) -> None:
        self.graph, arrays = graph, graph.arrays
        self.low, self.high = arrays.low, arrays.high
        self.turn: Floats = getattr(arrays, "period", np.zeros(self.low.size))
        straight = self.turn == 0.0
        self.above = np.isfinite(self.low) & ~np.isfinite(self.high) & straight
        self.below = ~np.isfinite(self.low) & np.isfinite(self.high) & straight
        self.between = np.isfinite(self.low) & np.isfinite(self.high) & straight
        self.bent = bool((self.above | self.below | self.between).any())
        self.evaluations = 0
        self.arrays, self.nothing, self.scale = arrays, None, 1.0
        if graph.kind == "data" and arrays.rows > _MANY_ROWS:
            rows = np.sort(rng.choice(arrays.rows, _SOME_ROWS, replace=False))
            data = arrays.data.reshape(arrays.rows, arrays.width)[rows].ravel()
            self.scale = arrays.rows / _SOME_ROWS
            self.arrays = arrays._replace(data=data, rows=_SOME_ROWS)
            self.nothing = arrays._replace(data=np.zeros(0), rows=0)
        self.center, self.factor = np.zeros(self.low.size), np.eye(self.low.size)
        self._scale(places, deviations)

    @property
    def sampled(self) -> bool:
        """Whether values are estimates from some rows of the data."""
        return self.nothing is not None

    # ---- coordinates

    def _scale(self, places: Floats, deviations: Floats) -> None:
        """Choose coordinates in which the places have about mean zero and the identity as covariance."""
        u = self._straighten(places)
        n, many = u.shape[1], len(u)
        if self.turn.any():  # angles around their mean direction
            rate = np.where(self.turn > 0.0, 2.0 * np.pi / np.maximum(self.turn, 1e-300), 1.0)
            middle = np.angle(np.exp(1j * rate * u).mean(axis=0)) / rate
            u = np.where(self.turn > 0.0, middle + _wrap(u - middle, self.turn), u)
        self.center = u.mean(axis=0)
        sd = u.std(axis=0)
        # there may be few places: the standard deviations of the run are more accurate than theirs
        seen = places.std(axis=0)
        ratio = np.where((seen > 0.0) & np.isfinite(deviations), deviations / np.maximum(seen, 1e-300), 1.0)
        sd = sd * np.where(self.turn > 0.0, 1.0, np.clip(ratio, 1.0, 100.0))
        least = 1e-12 * np.maximum(np.abs(self.center), 1e-30)
        sd = np.where(sd > least, sd, np.maximum(np.abs(self.center), 1.0) * 1e-3)
        z = (u - self.center) / np.maximum(u.std(axis=0), 1e-300)
        weight = min(1.0, 0.05 + n / many)
        together = np.nan_to_num((1.0 - weight) * (z.T @ z) / many)
        np.fill_diagonal(together, 1.0)
        values, vectors = np.linalg.eigh(together)
        self.factor = sd[:, None] * vectors * np.sqrt(np.maximum(values, 1e-3))

    def _straighten(self, x: Floats) -> Floats:
        """Return places in coordinates without bounds."""
        if not self.bent:
            return np.array(x, float)
        u = np.array(x, float)
        with np.errstate(all="ignore"):
            u = np.where(self.above, np.log(x - self.low), u)
            u = np.where(self.below, np.log(self.high - x), u)
            share = (x - self.low) / (self.high - self.low)
            u = np.where(self.between, np.log(share) - np.log1p(-share), u)
        return np.where(np.isnan(u), 0.0, np.clip(u, -700.0, 700.0))

    def _bend(self, u: Floats) -> tuple[Floats, Floats]:
        """Return places, and the logarithm of how much volume is stretched there."""
        if not self.bent:
            return self._turned(u), np.zeros(len(u))
        with np.errstate(all="ignore"):
            half = np.clip(u, -700.0, 700.0)
            grown = np.exp(half)
            logit = np.clip(u, -_STEEPEST, _STEEPEST)
            share = 1.0 / (1.0 + np.exp(-logit))
            x = np.where(self.above, self.low + grown, u)
            x = np.where(self.below, self.high - grown, x)
            x = np.where(self.between, self.low + (self.high - self.low) * share, x)
            x = np.where(self.between, np.clip(x, self.low, self.high), x)
            stretched = np.where(self.above | self.below, half, 0.0)
            wide = np.log(np.where(self.between, self.high - self.low, 1.0))
            # beyond the largest logit nothing is left of the density
            edge = wide - np.abs(u) - 2.0 * np.log1p(np.exp(-np.abs(u)))
            stretched = np.where(self.between, edge, stretched)
        return self._turned(x), stretched.sum(axis=1)

    def _turned(self, x: Floats) -> Floats:
        if not self.turn.any():
            return x
        low = np.where(self.turn > 0.0, self.low, 0.0)
        turn = np.where(self.turn > 0.0, self.turn, 1.0)
        return np.where(self.turn > 0.0, low + (x - low) % turn, x)

    def to_model(self, z: Floats) -> Floats:
        """Return places of the model."""
        return self._bend(self.center + z @ self.factor.T)[0]

    def from_model(self, x: Floats) -> Floats:
        """Return places in coordinates of the landscape."""
        u = self._straighten(x) - self.center
        if self.turn.any():
            u = np.where(self.turn > 0.0, _wrap(u, self.turn), u)
        return np.asarray(np.linalg.solve(self.factor, u.T).T)

    # ---- the log-density

    def heights(self, x: Floats, whole: bool = False) -> Floats:
        """Return log-densities at places of the model; of all rows if ``whole``."""
        places = np.ascontiguousarray(x)
        out = np.empty(len(places))
        self.evaluations += len(places)
        with np.errstate(all="ignore"):
            if not self.sampled or whole:
                evaluate_places(self.graph.arrays, places, out)
            else:
                prior = np.empty(len(places))
                evaluate_places(self.nothing, places, prior)
                evaluate_places(self.arrays, places, out)
                out = np.where(np.isfinite(prior), prior + self.scale * (out - prior), -np.inf)
        return np.where(np.isnan(out), -np.inf, out)

    def values(self, z: Floats, whole: bool = False) -> Floats:
        """Return log-densities in coordinates of the landscape, up to a constant."""
        x, stretched = self._bend(self.center + z @ self.factor.T)
        return self.heights(x, whole) + stretched

    def gradients(self) -> Any:
        """Return a function for gradients in coordinates of the landscape; None if there is no cheap one."""
        if self.bent or self.sampled or self.graph.kind not in ("density", "data"):
            return None
        arrays: Any = self.arrays
        if not arrays.gradient or (self.graph.kind == "data" and arrays.prior and not arrays.prior_gradient):
            return None

        def slopes(z: Floats) -> Floats:
            x = self.center + z @ self.factor.T
            room = np.concatenate([x, np.zeros_like(x)], axis=1)
            self.evaluations += 2 * len(z)
            evaluate_gradients(arrays, room)
            return np.asarray(room[:, x.shape[1] :] @ self.factor)

        return slopes

    def pace(self, z: Floats) -> float:
        """Return the seconds of processor time that an evaluation takes, the least of some measurements.

        It is measured once for a model, so that all of its runs get the same number.
        """
        return _PACES.find(self.graph.digest, lambda: self._measure_pace(z))

    def _measure_pace(self, z: Floats) -> float:
        least, spent = math.inf, 0.0
        for many in (_TRIAL, 1, _TRIAL, *(len(z),) * _AGAIN):  # the first time, code is loaded
            if many == len(z) and (least > _SLOW or spent > _ENOUGH):
                break
            began = time.thread_time()
            self.values(z[:many])
            took = time.thread_time() - began
            least, spent = min(least, took / many), spent + took
        return max(least, 1e-9)


def _wrap(difference: Floats, turn: Floats) -> Floats:
    """Return differences of angles as those between minus and plus half a turn."""
    whole = np.where(turn > 0.0, turn, 1.0)
    return difference - whole * np.round(difference / whole)
