"""Annealed Gibbs sampling: temperatures fall from sweep to sweep, to find a most probable state.

A site is drawn from its conditional raised to the power 1/T and normalised again; at T = 0 it takes its most
probable state, the first one in case of ties, which is the method of iterated conditional modes [2]_. Schedules are
those of the Stanford named-entity recogniser [1]_: linear, T_k = start (1 - k/K) for k = 0, ..., K, whose
last sweep is at T = 0, and exponential, start * rate^k; or any list of temperatures, one per sweep. After the
last one, a chain stays at its temperature. The paper starts at T = 1, the model itself; here the default ``start``
is computed from the differences of log-weights in the model (:mod:`.temperature`).

The distribution of the states changes from sweep to sweep, so draws do not estimate probabilities.

References
----------
.. [1] Finkel, J. R., Grenager, T. and Manning, C. (2005). Incorporating non-local information into
   information extraction systems by Gibbs sampling. ACL 43.
.. [2] Besag, J. (1986). On the statistical analysis of dirty pictures. JRSS B 48.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints8, Words64
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import Integer, called, implement, inlined
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.local import log_odds, log_weights
from gibbsite.graphs.rows import entry_at
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.gibbs.temperature import temperature_range
from gibbsite.kernels.registry import register
from gibbsite.kernels.rules import is_up, pick

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

SCHEDULES = ("linear", "exponential")
_SWEEPS = 1000
_ONE = np.uintp(1)
_CHANGES_PER_SITE = 64  # changes of states after which running sums are computed again
_LAST = 0.01  # last temperature of an exponential schedule without a rate, as a share of the first


class AnnealedParameters(NamedTuple):
    """Inverse temperatures by sweep, infinite for T = 0, and the number of steps in a sweep."""

    inverse: Floats
    sites: int


class Cooling(NamedTuple):
    """Memory of an annealed chain: scratch space, number of finished sweeps, and number of steps in the current one."""

    work: Floats
    clock: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        return {"clock": (0, 1 << 62)}


class RunningCooling(NamedTuple):
    """Memory that also keeps the log-odds of all sites; after ``left`` more changes they are computed again.

    At low temperatures few visits change a state: a visit then reads one number instead of all neighbours.
    """

    work: Floats
    clock: Ints
    odds: Floats
    left: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays, to check those of a file."""
        return {"clock": (0, 1 << 62), "left": (0, 1 << 62)}


@register(methods={"annealed": ("MAP", "MMAP")}, proof=[{"sweeps": 4}])
@dataclass(frozen=True)
class AnnealedGibbs(Kernel):
    """Gibbs sampling at falling temperatures, for most probable states.

    Parameters
    ----------
    schedule : {"linear", "exponential"} or sequence of float
        Temperatures by sweep: ``start * (1 - k / K)`` for k = 0, ..., K, ``start * rate**k``, or a list of
        temperatures of at least 0; 1 is the model itself, and 0 takes the most probable state.
    sweeps : int, optional
        Number of temperatures; by default 1000, or the length of the list.
    start : float, optional
        First temperature of the named schedules; by default so high that most sites of the model move freely.
    rate : float, optional
        Rate of the exponential schedule. By default, the last temperature is a hundredth of ``start`` if that is
        given, and otherwise so low that nearly all sites are frozen.

    See Also
    --------
    infer : With ``task="MAP"``.
    Tempered : Sample at several temperatures.

    Examples
    --------
    >>> import gibbsite as gs
    >>> AnnealedGibbs(sweeps=5, start=1.0).temperatures.tolist()
    [1.0, 0.75, 0.5, 0.25, 0.0]
    >>> model = gs.ising_grid((10, 10), coupling=0.5, field=0.1)
    >>> result = gs.sample(model, gs.AnnealedGibbs(sweeps=100), rng=1, progress=False)
    >>> set(result.assignment.values())
    {1}
    """

    exact: ClassVar[bool] = False
    conditional: ClassVar[bool] = False
    estimates: ClassVar[bool] = False
    schedule: str | Sequence[float] | Floats = "linear"
    sweeps: int | None = None
    start: float | None = None
    rate: float | None = None

    @property
    def temperatures(self) -> Floats:
        """The temperature of every sweep, if it does not depend on the model."""
        if isinstance(self.schedule, str) and self.start is None:
            raise ArgumentError(
                "Without start=, temperatures depend on the model: use temperatures_for(model), or give "
                "start=1.0 or another one."
            )
        return self.temperatures_for(None)

    def temperatures_for(self, model: FactorGraph | Graph | None) -> Floats:
        """Return the temperature of every sweep on a model."""
        if not isinstance(self.schedule, str):
            return self._listed()
        sweeps, last = self._named(), _LAST
        if self.start is not None:
            start = float(self.start)
        else:
            graph = model if isinstance(model, Graph) else compile_graph(cast("FactorGraph", model))
            start, cold, _ = temperature_range(graph)
            last = cold / start
        k, ends = np.arange(sweeps), max(sweeps - 1, 1)
        if self.schedule == "exponential":
            rate = last ** (1.0 / ends) if self.rate is None else self.rate
            return np.asarray(start * rate**k, np.float64)
        return np.asarray(start * (1.0 - k / ends) if sweeps > 1 else np.zeros(1), np.float64)

    def _named(self) -> int:
        """Check all parameters of a named schedule; return its number of temperatures."""
        if self.schedule not in SCHEDULES:
            raise ArgumentError(unknown("schedule", self.schedule, SCHEDULES, ", or give temperatures"))
        sweeps = _SWEEPS if self.sweeps is None else self.sweeps
        if isinstance(sweeps, bool) or not isinstance(sweeps, int | np.integer) or sweeps < 1:
            raise ArgumentError(f"sweeps of a schedule must be a whole number of at least 1, got {sweeps!r}.")
        if self.start is not None:
            _positive("start", self.start)
        if self.rate is not None and self.schedule != "exponential":
            raise ArgumentError("rate belongs to the exponential schedule; leave it out, or choose that one.")
        if self.rate is not None and _positive("rate", self.rate) > 1.0:
            raise ArgumentError(f"{argument('rate')} must be at most 1, so that temperatures fall, got {self.rate!r}.")
        return int(sweeps)

    def _listed(self) -> Floats:
        """Check temperatures that were given as a list; return them."""
        try:
            given = np.array(self.schedule, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"Temperatures must be numbers, got {self.schedule!r}.") from None
        if given.ndim != 1 or not given.size:
            raise ArgumentError(
                f"A schedule needs a list of at least one temperature, got an array of shape {given.shape}."
            )
        bad = np.flatnonzero(~np.isfinite(given) | (given < 0.0))
        if bad.size:
            raise ArgumentError(
                f"Temperatures must be finite and not negative, but sweep {bad[0]} has {given[bad[0]]}."
            )
        if self.sweeps is not None and self.sweeps != given.size:
            raise ArgumentError(
                f"The schedule lists {given.size} temperatures, but sweeps is {self.sweeps!r}; leave it out."
            )
        return given

    def natural_sweeps(self, n_sites: int) -> int:
        """Return the number of temperatures."""
        return self._named() if isinstance(self.schedule, str) else int(self._listed().size)

    def parameters(self, graph: Graph) -> AnnealedParameters:
        """Return the inverse temperatures."""
        with np.errstate(divide="ignore"):
            return AnnealedParameters(1.0 / self.temperatures_for(graph), graph.n_sites)

    def memory(self, graph: Graph, stream: Words64) -> Cooling | RunningCooling:
        """Allocate scratch space and the clock."""
        work, clock = np.zeros(max(int(graph.cards.max(initial=1)), 2)), np.zeros(2, np.int64)
        if isinstance(graph.arrays, IsingGraph):
            return RunningCooling(work, clock, np.zeros(graph.n_sites), np.zeros(1, np.int64))
        return Cooling(work, clock)

    def forget(self, memory: Any) -> None:
        """Make the next step compute all log-odds again."""
        if isinstance(memory, RunningCooling):
            memory.left[0] = 0


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < math.inf:
        raise ArgumentError(f"{name} of a schedule must be a positive number, got {value!r}.")
    return float(value)


@inlined
def now(parameters: AnnealedParameters, memory: Cooling | RunningCooling) -> float:
    """Return the current inverse temperature."""
    k = min(memory.clock[0], parameters.inverse.size - 1)
    return parameters.inverse[k]  # type: ignore[no-any-return]


@inlined
def tick(parameters: AnnealedParameters, memory: Cooling | RunningCooling) -> None:
    """Count a step."""
    memory.clock[1] += 1
    if memory.clock[1] == parameters.sites:
        memory.clock[0] += 1
        memory.clock[1] = 0


@inlined
def cool(w: Floats, size: Integer, inverse: float) -> float:
    """Turn log-weights into weights at an inverse temperature, with the largest one equal to 1; return their sum."""
    best = 0
    for a in range(size):
        if w[a] > w[best]:
            best = a
    top, total = w[best], 0.0
    if top > -np.inf:
        for a in range(size):
            if inverse < np.inf:
                w[a] = math.exp(inverse * (w[a] - top))
            else:
                w[a] = 1.0 if a == best else 0.0
            total += w[a]
    return total


@implement(step, AnnealedParameters)
def _step_categorical(
    params: AnnealedParameters, arrays: Any, memory: Cooling, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    rng, u = uniform(rng)
    size = log_weights(arrays, x, i, memory.work)
    total = cool(memory.work, size, now(params, memory))
    if total > 0.0:
        x[i] = pick(memory.work, size, u * total)
    tick(params, memory)
    return rng


@inlined
def _is_up_at(inverse: float, odds: float, u: float) -> bool:
    """Return whether a site takes state 1 at an inverse temperature; at infinity, it takes the more probable state."""
    return is_up(inverse * odds, u) if inverse < np.inf else odds > 0.0


@implement(step, AnnealedParameters, IsingGraph)
@implement(step, AnnealedParameters, LatticeGraph)
def _step_binary(
    params: AnnealedParameters, arrays: Any, memory: Cooling, x: Ints8, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    rng, u = uniform(rng)
    odds = log_odds(arrays, x, i)
    x[i] = _is_up_at(now(params, memory), odds, u)
    tick(params, memory)
    return rng


@implement(step, AnnealedParameters, IsingGraph, RunningCooling)
def _step_running(
    params: Any, arrays: Any, memory: RunningCooling, x: Ints8, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    if memory.left[0] == 0:
        _sum_up(arrays, memory, x)
    rng, u = uniform(rng)
    odds: Any = memory.odds[i]
    up = _is_up_at(now(params, memory), odds, u)
    if up != (x[i] != 0):
        x[i] = up
        memory.left[0] -= 1
        change = 1.0 if up else -1.0
        for k in range(np.uintp(arrays.start[i]), np.uintp(arrays.start[i + _ONE])):
            memory.odds[np.uintp(arrays.neighbour[k])] += change * entry_at(arrays.coupling, k)
    tick(params, memory)
    return rng


@called
def _sum_up(arrays: IsingGraph, memory: RunningCooling, x: Ints8) -> None:
    """Compute all log-odds again, before rounding errors add up."""
    memory.left[0] = _CHANGES_PER_SITE * x.size
    for site in range(x.size):
        memory.odds[site] = log_odds(arrays, x, np.uintp(site))


@implement(transition, AnnealedParameters)
def _transition(
    parameters: AnnealedParameters, arrays: Any, memory: Cooling, x: Array, i: Integer, row: Floats
) -> Integer:
    size = log_weights(arrays, x, i, row)
    total = cool(row, size, now(parameters, memory))
    for a in range(size):
        row[a] /= total
    return size
