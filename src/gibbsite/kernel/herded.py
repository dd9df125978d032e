"""Herded Gibbs: every conditional is followed by counting instead of by chance.

Gibbs sampling draws a site from its conditional given its neighbours. Herded Gibbs [1]_ keeps a weight for
every site and configuration of its neighbours (its key) and lets the weight choose
(:mod:`gibbsite.kernel.herding`), so that among the visits with the same key each value is taken as often as
its conditional says, up to a bounded number. On complete graphs the average over T sweeps is then within a
constant times 1 / T of the law.

On sparse graphs the neighbours are not all there is, and the choices under two keys can be correlated: errors
fall like 1 / T down to a floor that is often small, but not zero. ``keys="full"`` has no floor.

References
----------
.. [1] Bornn, L., Chen, Y., de Freitas, N., Eskelin, M., Fang, J. and Welling, M. (2013). Herded Gibbs
   sampling. ICLR.
.. [2] Yamashita et al. (2019). Statistics and Computing: weights shared by probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gibbsite._jit import Integer, generic, implement, inlined
from gibbsite._random import Words, chain_key, single_word, uniform
from gibbsite.errors import ModelError, TooLargeError
from gibbsite.graph.arrangement import Arranged
from gibbsite.graph.by_color import arrange_columns
from gibbsite.graph.color import markov_graph
from gibbsite.graph.counted import arrange_counted, counts_suffice
from gibbsite.graph.kinds import IsingGraph, LatticeGraph
from gibbsite.graph.lower import Graph
from gibbsite.kernel._ledger import Hashed, Table, expect, find, make_hashed, make_table
from gibbsite.kernel._local import log_odds, weights
from gibbsite.kernel.base import Kernel, Remark, step
from gibbsite.kernel.herded_remarks import holds_all, remark_floor, remark_in_step, remark_theorem
from gibbsite.kernel.herding import herd_argmax, herd_bounded, herd_entry, herd_tijdeman
from gibbsite.kernel.rules import pick

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph, Model
    from gibbsite.scan.base import Scan

Floats = NDArray[np.float64]
State = NDArray[np.signedinteger[Any]]

KEYS = ("blanket", "full", "shared", "binned", "randomised-binned", "site")
RULES = ("argmax", "threshold", "tijdeman", "bounded")
STARTS = ("random", "centred")
STORAGE = ("auto", "dense", "hash")
_ARGMAX, _THRESHOLD, _TIJDEMAN, _BOUNDED = range(4)
# How a key is found: from other sites' states, from the conditional, from its bin, from a bin by chance.
_CODED, _SHARED, _BINNED, _RANDOM = range(4)

_U, _ONE, _U64 = np.uintp, np.uintp(1), np.uint64
_GOLDEN = _U64(0x9E3779B97F4A7C15)
_SCALE, _TO_UNIT = 2.0**32, 2.0**-32
_HIGH, _LOW = _U64(32), _U64(0xFFFFFFFF)
_ALIKE_ODDS, _ALIKE = 2.0**30, 2.0**40  # conditionals that differ by less than the inverse are the same
_AHEAD = _U(8)  # sites
_NUMBERS = 2.0**62
_GIGABYTE = 2**30
_MOST_BITS = 12  # neighbours whose states make a table worth reading color by color


class HerdedParameters(NamedTuple):
    """Parameters as compiled code sees them; a negative ``start`` is a random one."""

    rule: int
    keys: int
    remember: int
    bins: int
    band: float
    start: float
    span: float


class HerdedMemory(NamedTuple):
    """The weights of a chain, and how their keys are numbered.

    The key of site i is ``place[i]`` plus the sum of ``stride[k] * x[member[k]]``, k from ``start[i]`` to
    ``start[i + 1]``, plus the number of its conditional where that is what tells keys apart.
    """

    work: Floats
    start: NDArray[np.uint32]
    member: NDArray[np.uint32]
    stride: NDArray[np.uint64]
    place: NDArray[np.uint64]
    ledger: Table | Hashed
    seed: NDArray[np.uint32]


@dataclass(frozen=True)
class HerdedGibbs(Kernel):
    """Deterministic Gibbs sampling with counting weights.

    Convergence to the joint law is proved for ``keys="full"`` and for complete graphs (`herding_bound`);
    elsewhere it is not guaranteed; results say which (``Result.remarks``). Draws are more even than random
    ones, so standard errors come from the spread of chains that differ by chance, in their first weights or
    in their draws: a single chain has none, nor have chains with a fixed ``start`` and no other chance. They
    are blind to a floor, which all chains share.

    Parameters
    ----------
    keys : {"blanket", "full", "shared", "binned", "randomised-binned", "site"}
        What weights are told apart by: the configuration of the neighbours; of all other sites (small models;
        the case with a theorem); the conditional, so that configurations with equal ones share a weight; the
        bin a conditional is in; one of the two nearest bins by chance, which removes the bias of binning;
        nothing but the site.
    rule : {"argmax", "threshold", "tijdeman", "bounded"}
        How weights choose. For two states the first three are the same; ``threshold`` refuses more.
        ``bounded`` draws at random unless counts leave a band around their expectation.
    start : {"random", "centred"} or float
        The first weights: random, such that the first visit takes the most probable state, or (two states) a
        number in [0, 1).
    storage : {"auto", "dense", "hash"}
        A place for every key, or for the keys met.
    bins : int
        Number of bins.
    band : float
        Half-width of the band of ``rule="bounded"``.
    memory_limit : int
        Most bytes for the weights of a chain.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.2, field=0.1)
    >>> exact = gs.solve_exact(model).marginals["4"][1]
    >>> result = gs.sample(model, gs.HerdedGibbs(), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["4"][1] - exact) < 0.005
    True
    """

    keys: str = "blanket"
    rule: str = "argmax"
    start: str | float = "random"
    storage: str = "auto"
    bins: int = 32
    band: float = 1.0
    memory_limit: int = _GIGABYTE

    exact: ClassVar[bool] = False

    @property
    def reversible(self) -> bool:
        """There is no chance to reverse."""
        return False

    def remarks(self, model: FactorGraph, graph: Graph, scan: Scan) -> tuple[Remark, ...]:
        """Say what is proved of a run, or that nothing is, and which sites move in step."""
        told = self.keys == "full" or (self.keys == "blanket" and holds_all(*self._others(graph)))
        found: tuple[Remark, ...] = ()
        if graph.n_sites > 1 and not told:
            logs = float(np.log2(graph.cards).sum())  # of the number of states
            keys = np.exp2(min(logs, 1000.0)) * float((1.0 / graph.cards).sum())
            found += (remark_floor(self.keys, 8.0 * self._width(graph) * keys <= self.memory_limit),)
        if told and self.rule != "bounded":
            found += remark_theorem(model, scan)
        if scan.once and self.keys != "full" and self.rule != "bounded":
            found += remark_in_step(model, graph, self.bins if self.keys == "randomised-binned" else None)
        return found

    @property
    def errors(self) -> str:
        """Chains are replicates if their first weights are random, or some of their choices."""
        chance = self.start == "random" or self.rule == "bounded" or self.keys == "randomised-binned"
        return "chains" if chance else "none"

    def shareable(self, graph: Graph) -> bool:
        """Weights of different sites are apart in a table; more than two states need room to work."""
        return (
            graph.binary and self._dense(graph) and self.rule != "bounded" and "randomised" not in self.keys
        )

    def arrange(self, model: FactorGraph, graph: Graph) -> Arranged | None:
        """Lay a model out by color where keys are numbers or states of few neighbours, in a table."""
        if not self.shareable(graph):
            return None
        if self._counts(graph):
            return arrange_counted(graph)
        most = int(_degrees(self._others(graph)[0]).max(initial=0))
        return arrange_columns(model, graph, most) if self.keys == "blanket" and most <= _MOST_BITS else None

    def arranged_memory(self, arranged: Any, stream: NDArray[np.uint64], team: int) -> NamedTuple:
        """Allocate the weights of a chain."""

        def first(*shape: int) -> NDArray[np.uint32]:
            if self.start == "random":
                words = np.random.Philox(key=stream[:2]).random_raw(-(-math.prod(shape) // 2))
                return words.view(np.uint32)[: math.prod(shape)].reshape(shape)
            start = 0.5 if self.start == "centred" else float(self.start)
            return np.full(shape, np.uint32(start * _SCALE))

        memory: NamedTuple = arranged_weights(arranged, first, team)
        return memory

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Refuse to go on when a hash table is full."""
        ledger = getattr(memory, "ledger", None)
        if isinstance(ledger, Hashed) and ledger.fill[2]:
            sizes = self._sizes(graph)
            raise TooLargeError(
                f"Herding weights for {ledger.fill[1]} keys have used up the limit of "
                f"{self.memory_limit:.1e} bytes; site {int(np.argmax(sizes))} alone can have "
                f"{sizes.max():.1e}. Raise memory_limit, or use keys='binned' or keys='site'."
            )

    def parameters(self, graph: Graph) -> HerdedParameters:
        """Refuse what makes no sense; return the rest as numbers."""
        for name, value, known in (
            ("keys", self.keys, KEYS),
            ("rule", self.rule, RULES),
            ("storage", self.storage, STORAGE),
        ):
            if value not in known:
                raise ModelError(
                    f"HerdedGibbs {name} {value!r} is unknown; choose one of {', '.join(known)}."
                )
        if self.rule == "threshold" and (graph.cards > 2).any():
            site = int(np.argmax(graph.cards > 2))
            raise ModelError(
                f"The rule 'threshold' chooses between two states, but site {site} has {graph.cards[site]}; "
                "use rule='argmax' or rule='tijdeman'."
            )
        if isinstance(self.start, str):
            if self.start not in STARTS:
                raise ModelError(
                    f"HerdedGibbs start {self.start!r} is unknown; choose one of {', '.join(STARTS)}."
                )
            start = -1.0 if self.start == "random" else 0.5
        else:
            start = float(self.start)
            if not 0.0 <= start < 1.0:
                raise ModelError(f"Herding weights start in [0, 1), got {self.start!r}.")
            if (graph.cards > 2).any():
                raise ModelError(
                    "A start weight can be given for two states only; use 'random' or 'centred'."
                )
        if not (isinstance(self.bins, int) and self.bins >= 1):
            raise ModelError(f"bins must be a positive whole number, got {self.bins!r}.")
        if not self.band >= 0.0 or math.isinf(self.band):
            raise ModelError(f"band must be a number of at least 0, got {self.band!r}.")
        self._dense(graph)
        found = {"shared": _SHARED, "binned": _BINNED, "randomised-binned": _RANDOM}.get(self.keys, _CODED)
        if found == _SHARED and self._counts(graph):
            found = _CODED
        return HerdedParameters(
            rule=RULES.index(self.rule),
            keys=found,
            remember=int(found == _CODED and self.keys != "site"),
            bins=self.bins,
            band=float(self.band),
            start=start,
            span=2.0 * (self.band + 2.0) if self.rule == "bounded" else 1.0,
        )

    def memory(self, graph: Graph, stream: NDArray[np.uint64]) -> HerdedMemory:
        """Allocate the weights of a chain."""
        start, member = self._others(graph)
        site = np.repeat(np.arange(graph.n_sites), _degrees(start))
        sizes = self._sizes(graph)
        if sizes.sum() < _NUMBERS:
            place = (np.cumsum(sizes) - sizes).astype(np.uint64)
            stride = np.ones(member.size, np.uint64)
            if not self._counts(graph):
                depth, unit = np.arange(member.size) - start[site], np.ones(graph.n_sites, np.uint64)
                for d in range(int(depth.max(initial=-1)) + 1):
                    k = np.flatnonzero(depth == d)
                    stride[k] = unit[site[k]]
                    unit[site[k]] *= graph.cards[member[k]].astype(np.uint64)
        else:  # more keys than numbers: random ones tell those apart that are met
            place = np.random.SeedSequence(1).generate_state(graph.n_sites, np.uint64).astype(np.uint64)
            stride = np.random.SeedSequence(2).generate_state(member.size, np.uint64).astype(np.uint64)
        dense, width = self._dense(graph), self._width(graph)
        kind = np.uint64 if graph.binary else np.float64
        return HerdedMemory(
            work=np.zeros(int(graph.cards.max(initial=2))),
            start=start,
            member=member,
            stride=stride,
            place=place,
            ledger=make_table(width, int(sizes.sum()), kind)
            if dense
            else make_hashed(width, self.memory_limit, kind),
            seed=chain_key(stream),
        )

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes of a chain; a hash table grows to so many at most."""
        rows = 12 * int(self._others(graph)[1].size) + 12 * graph.n_sites
        need = 8.0 * self._width(graph) * float(self._sizes(graph).sum())
        return rows + int(min(need, float(self.memory_limit)))

    def _others(self, graph: Graph) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the sites whose states are part of the key of each site, in compressed rows.

        They depend on scopes alone, so they are kept with the graph's structure.
        """
        n = graph.n_sites
        if self.keys == "full":
            every = np.arange(n, dtype=np.uint32)
            member = np.concatenate([np.delete(every, i) for i in range(n)]) if n else every
            return (np.arange(n + 1) * max(n - 1, 0)).astype(np.uint32), member
        if self.keys != "blanket" and not self._counts(graph):
            return np.zeros(n + 1, np.uint32), np.zeros(0, np.uint32)
        if "blankets of herding" not in graph.structure:
            start, neighbour = markov_graph(graph)
            graph.structure["blankets of herding"] = start.astype(np.uint32), neighbour.astype(np.uint32)
        found: tuple[NDArray[np.uint32], NDArray[np.uint32]] = graph.structure["blankets of herding"]
        return found

    def _counts(self, graph: Graph) -> bool:
        """Tell whether equal conditionals are those with equally many neighbours in state 1."""
        if self.keys != "shared":
            return False
        g = graph.arrays
        if isinstance(g, LatticeGraph):
            return counts_suffice(g)
        if isinstance(g, IsingGraph):
            if not g.coupling.size:
                return True
            owner = np.repeat(np.arange(graph.n_sites), _degrees(g.start))
            first = g.coupling[g.start[:-1].astype(np.int64)[owner].clip(0, g.coupling.size - 1)]
            simple = np.unique(owner * graph.n_sites + g.neighbour.astype(np.int64)).size == owner.size
            return bool(simple and (g.coupling == first).all())
        return False

    def _sizes(self, graph: Graph) -> Floats:
        """Return how many keys each site can have."""
        n = graph.n_sites
        if self._counts(graph) and isinstance(graph.arrays, LatticeGraph):  # what borders lack is not saved
            return np.full(n, 2.0 * sum(size > 1 for size in graph.arrays[0:3]) + 1.0)
        cards = graph.cards.astype(np.float64)
        start, member = self._others(graph)
        degree = _degrees(start)
        if self.keys == "site":
            return np.ones(n)
        if self._counts(graph):
            return degree.astype(np.float64) + 1.0
        if self.keys in ("blanket", "full"):
            logs = np.bincount(np.repeat(np.arange(n), degree), np.log2(cards[member]), n)
            return np.asarray(np.rint(np.exp2(np.minimum(logs, 1000.0))), np.float64)
        if self.keys == "shared":
            return np.full(n, 2.0**63)
        many = np.where(cards <= 2, self.bins + 1.0, (self.bins + 1.0) ** np.minimum(cards, 100.0))
        return many.astype(np.float64)

    def _width(self, graph: Graph) -> int:
        """Return how many numbers a key has: one for two states, otherwise a mark and a weight per state."""
        return 1 if graph.binary else int(graph.cards.max(initial=1)) + 1

    def _dense(self, graph: Graph) -> bool:
        """Choose the storage; refuse tables that do not fit."""
        if self.storage == "hash":
            return False
        need = 8.0 * self._sizes(graph) * self._width(graph)
        fits = bool(need.sum() <= self.memory_limit)
        if self.storage == "dense" and not fits:
            worst = int(np.argmax(need))
            others = int(_degrees(self._others(graph)[0])[worst])
            raise TooLargeError(
                f"A table of all keys would take {need.sum():.1e} bytes and the limit is "
                f"{self.memory_limit:.1e}; site {worst} alone, with {others} others to tell apart, "
                f"takes {need[worst]:.1e}. "
                "Use storage='hash', or keys='binned'."
            )
        return fits


def _degrees(start: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the lengths of compressed rows."""
    found: NDArray[np.int64] = np.diff(start.astype(np.int64)).astype(np.int64)
    return found


@inlined
def _code(memory: HerdedMemory, x: State, i: Integer) -> np.uint64:
    """Return the key that the states of other sites select."""
    code: Any = memory.place[i]
    for k in range(_U(memory.start[i]), _U(memory.start[i + _ONE])):
        code += memory.stride[k] * _U64(x[_U(memory.member[k])])
    return code  # type: ignore[no-any-return]


@inlined
def _first(kernel: HerdedParameters, memory: HerdedMemory, key: Any, a: Integer) -> float:
    """Return the first weight of a key, in [0, 1): a function of the key, not of when it is met."""
    if kernel.start >= 0.0:
        return kernel.start
    return single_word(memory.seed[0], memory.seed[1], a, key & _U64(2**62 - 1)) * _TO_UNIT


@generic
def arranged_weights(graph: Any, first: Callable[..., NDArray[np.uint32]], team: int) -> Any:
    """Allocate the memory of a chain that moves many sites at once; ``first`` gives weights of any shape."""
    raise NotImplementedError


@implement(step, HerdedParameters, IsingGraph)
@implement(step, HerdedParameters, LatticeGraph)
def _step_binary(
    kernel: HerdedParameters,
    graph: IsingGraph | LatticeGraph,
    memory: HerdedMemory,
    x: NDArray[np.int8],
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    # A key that has not been met has no probability in the lower half of its entry, and none is ever zero.
    ledger = memory.ledger.weight
    ahead = i + _AHEAD
    if ahead + _ONE < _U(memory.place.size):
        expect(memory.ledger, memory.place[ahead], memory.place[ahead + _ONE])
    key = _code(memory, x, i)
    at, entry, odds = _U(0), _U64(0), 0.0
    if kernel.keys == _CODED:
        at = _U(find(memory.ledger, key))
        entry = ledger[at]
    known = kernel.remember and entry != _U64(0)
    if keep or not known:
        odds = log_odds(graph, x, i)
        if keep:
            cond[i] = odds
    if not known:
        tail = math.exp(-abs(odds))
        p = 1.0 / (1.0 + tail) if odds >= 0.0 else tail / (1.0 + tail)
        if kernel.keys != _CODED:
            level = p * kernel.bins
            if kernel.keys == _SHARED:
                level = np.rint(min(max(odds, -700.0), 700.0) * _ALIKE_ODDS)
            elif kernel.keys == _RANDOM:
                rng, u = uniform(rng)
                level = math.floor(level + u)
                p = level / kernel.bins
            key += _U64(np.int64(level))
            at = _U(find(memory.ledger, key))
            entry = ledger[at]
        if entry == _U64(0):
            entry = _U64(_first(kernel, memory, key, 0) * _SCALE) << _HIGH
        share = _U64(min(max(np.rint(p / kernel.span * _SCALE), 1.0), _SCALE - 1.0))
        entry = (entry & ~_LOW) | share
    if kernel.rule == _BOUNDED:
        rng, up = _draw_within(kernel, entry, rng)
        entry += ((entry & _LOW) << _HIGH) - up * (_U64(_SCALE / kernel.span) << _HIGH)
    else:
        entry, up = herd_entry(entry)
    ledger[at] = entry
    x[i] = up
    return rng


@inlined
def _draw_within(kernel: HerdedParameters, entry: Any, rng: Words) -> tuple[Words, np.uint64]:
    """Draw by chance unless the weight, kept in parts of ``span``, is outside the band."""
    weight = ((entry >> _HIGH) * _TO_UNIT - 0.5) * kernel.span
    rng, u = uniform(rng)
    up = u < (entry & _LOW) * _TO_UNIT * kernel.span
    if abs(weight) > kernel.band:
        up = weight > 0.0
    return rng, _U64(up)


@implement(step, HerdedParameters)
def _step_categorical(
    kernel: HerdedParameters,
    graph: Any,
    memory: HerdedMemory,
    x: NDArray[np.int16],
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    p, weight = memory.work, memory.ledger.weight
    size, total = weights(graph, x, i, p)
    if total <= 0.0:  # nothing is possible here: the site stays as it is
        return rng
    cell = _U(graph.offset[i])
    for a in range(_U(size)):
        p[a] /= total
        if keep:
            cond[cell + a] = p[a]
    key = _code(memory, x, i)
    if kernel.keys != _CODED:
        rng, code = _number(kernel, p, size, rng)
        key += code
    at = _U(find(memory.ledger, key))
    if weight[at] == 0.0:
        weight[at] = 1.0
        mean = 0.0
        for a in range(_U(size)):
            weight[at + _ONE + a] = _first(kernel, memory, key, a)
            mean += weight[at + _ONE + a] / size
        for a in range(_U(size)):
            weight[at + _ONE + a] -= mean
    if kernel.rule == _BOUNDED:
        rng, u = uniform(rng)
        x[i] = herd_bounded(weight, at + _ONE, p, size, kernel.band, pick(p, size, u))
    elif kernel.rule == _TIJDEMAN:
        x[i] = herd_tijdeman(weight, at + _ONE, p, size)
    else:
        x[i] = herd_argmax(weight, at + _ONE, p, size)
    return rng


@inlined
def _number(kernel: HerdedParameters, p: Floats, size: Integer, rng: Words) -> tuple[Words, np.uint64]:
    """Return the number of a conditional, or of its bins; bins by chance replace the conditional.

    With one random number u, the share of state a becomes floor(C_a + u) - floor(C_(a-1) + u) bins, C being
    the cumulated probabilities times the number of bins: right on average, and all bins together.
    """
    code, u, passed, before, last = _U64(0), 0.0, 0.0, 0.0, _U(0)
    if kernel.keys == _RANDOM:
        rng, u = uniform(rng)
        for a in range(_U(size)):
            last = _U(a) if p[a] > 0.0 else last
    for a in range(_U(size)):
        if kernel.keys == _SHARED:
            code = code * _GOLDEN + _U64(np.int64(np.rint(p[a] * _ALIKE)))
            continue
        level = math.floor(p[a] * kernel.bins)
        if kernel.keys == _RANDOM:
            passed += p[a] * kernel.bins
            if a >= last:  # the last sum is the number of bins, whatever rounding made of it
                passed = 1.0 * kernel.bins
            now = 1.0 * math.floor(passed + u)
            level = now - before
            before = now
            p[a] = level / kernel.bins
        code = code * _U64(kernel.bins + 1) + _U64(np.int64(level))
    return rng, code
