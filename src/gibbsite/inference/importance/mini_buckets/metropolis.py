"""Independence Metropolis moves that propose whole states from mini-buckets.

A proposal does not depend on the present state, so that the Metropolis-Hastings rule needs the weights alone: a state
of weight w' follows one of weight w with probability min(1, w' / w). The chain stays longer at states of large weight,
instead of counting them more. Its stationary distribution is the model however heavy the tail of the weights is, and
chains that are stuck at states of large weight disagree visibly.

Proposals are drawn a block at a time (:mod:`.descent`), and used one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Words64
from gibbsite._common.wording import argument
from gibbsite._numba.exponential import exp_below
from gibbsite._numba.jit import Integer, called, implement
from gibbsite._numba.random.generators import Words, uniform
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.graph import KINDS, Graph, seal
from gibbsite.inference.exact.plan import outline
from gibbsite.inference.importance.base import BLOCK, SourceSettings
from gibbsite.inference.importance.mini_buckets.buckets import largest_table, plan_buckets
from gibbsite.inference.importance.mini_buckets.descent import DrawTables, Lanes, draw_lanes, make_lanes, write_codes
from gibbsite.inference.importance.mini_buckets.proposal import BucketSource, weigh_buckets
from gibbsite.kernels.base import Kernel, step, transition
from gibbsite.kernels.registry import register

_USUAL = 1 << 16  # default limit on the entries of a table, unless a table of the model has more
_KEPT = 8  # number of sources that are kept for later
_NEXT, _PROPOSED, _ACCEPTED = range(3)  # counters: proposals used of the current block, all proposals, accepted ones


class MetropolisParameters(NamedTuple):
    """Numbers of states of the sites, the tables to draw from, and whether all weights are equal."""

    card: Ints
    source: DrawTables
    equal: bool


class MetropolisMemory(NamedTuple):
    """A block of proposals, the state whose log-weight is known, and space to compute one.

    ``place``, ``score`` and ``known`` are for :func:`weigh_state`: states by place in the order, and log-weights of
    the states of a site with and without messages.
    """

    lanes: Lanes
    here: Ints32
    weight: Floats
    place: Ints
    score: Floats
    known: Floats
    counts: Ints

    def limits(self, cards: Array) -> dict[str, tuple[Any, Any]]:
        """Return the ranges of the entries of arrays read from a file."""
        most = np.array([BLOCK, 1 << 62, 1 << 62])
        return {"here": (-1, cards - 1), "counts": (0, most), "place": (0, int(cards.max(initial=1)) - 1)}


_LAWS: dict[tuple[str, int | None], BucketSource] = {}


@register(proof=[{"entries": 9}, {"entries": 1 << 10}])
@dataclass(frozen=True)
class MiniBucketMetropolis(Kernel):
    """Independence Metropolis with proposals from weighted mini-buckets.

    Parameters
    ----------
    entries : int, optional
        Most entries of a table; by default 65,536, or as many as the largest table of the model has. If no table is
        larger, every proposal is accepted, and draws are independent.

    Notes
    -----
    A sweep is one proposal for all sites. ``result.report["accepted"]`` is the share of accepted proposals, which grows
    with the tables.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.5, field=0.1)
    >>> kernel = gs.importance.MiniBucketMetropolis(entries=8)
    >>> result = gs.sample(model, kernel, sweeps=20_000, rng=1, progress=False)
    >>> abs(result.marginals["0"][1] - gs.solve_exact(model).marginals["0"][1]) < 0.02
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    joint: ClassVar[bool] = True
    conditional: ClassVar[bool] = False
    entries: int | None = None

    def __post_init__(self) -> None:
        if self.entries is not None:
            check_integer("entries", self.entries, 2)

    def check(self, graph: Graph) -> None:
        """Refuse models with a table of more entries than allowed."""
        super().check(graph)
        if self.entries is not None:
            model: Any = graph.require_model()
            least = largest_table(outline(model))
            if least > self.entries:
                raise IncompatibleError(
                    f"{argument('entries', self.entries)} is less than the largest table of the model has: "
                    f"{least:,} entries; give at least as many."
                )

    def law(self, graph: Graph) -> BucketSource:
        """Return the distribution that proposals are drawn from; it is made once and kept."""
        key = (graph.digest, self.entries)
        found = _LAWS.get(key)
        if found is None:
            while len(_LAWS) >= _KEPT:
                _LAWS.pop(next(iter(_LAWS)))
            found = _LAWS[key] = self._make_law(graph)
        return found

    def _make_law(self, graph: Graph) -> BucketSource:
        model: Any = graph.require_model()
        found = outline(model)
        entries = max(_USUAL, largest_table(found)) if self.entries is None else int(self.entries)
        setting = SourceSettings(0, np.ones(model.n_sites, bool), math.inf, None, lambda: 0.0, 1, lambda: False)
        made = weigh_buckets(model, found, plan_buckets(found, entries), setting, 0)
        assert made is not None  # because it cannot be interrupted
        return made

    def parameters(self, graph: Graph) -> MetropolisParameters:
        """Return the tables to draw from."""
        law = self.law(graph)
        return seal(MetropolisParameters(graph.cards.astype(np.int64), law.tables, law.exact))

    def memory(self, graph: Graph, stream: Words64) -> MetropolisMemory:
        """Allocate space for a block of proposals."""
        buckets = self.law(graph).plan.buckets
        most = int(buckets.card.max(initial=1))
        counts = np.zeros(3, np.int64)
        counts[_NEXT] = BLOCK  # the block of proposals is exhausted
        return MetropolisMemory(
            make_lanes(buckets, graph.n_sites),
            np.full(graph.n_sites, -1, np.int32),
            np.zeros(1),
            np.zeros(buckets.card.size, np.int64),
            np.zeros(most),
            np.zeros(most),
            counts,
        )

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        buckets = self.law(graph).plan.buckets
        most, places = int(buckets.card.max(initial=1)), buckets.card.size
        lanes = BLOCK * (4 * (places + graph.n_sites) + 8 * (2 * most + 4))
        return lanes + 4 * graph.n_sites + 8 * (places + 2 * most + 4)

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return the number of mini-buckets beyond the first of each bucket, and the bound of log Z."""
        law = self.law(graph)
        return {"splits": law.plan.splits, "entries": law.plan.entries, "log_bound": law.log_bound}

    def independent(self, graph: Graph) -> bool:
        """Whether no bucket was split, so that all weights are equal."""
        return self.law(graph).exact

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Every possible state can be proposed."""
        return True

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the share of proposals that were accepted, those of the warmup included."""
        proposed = sum(int(memory.counts[_PROPOSED]) for memory in memories)
        return {"accepted": sum(int(memory.counts[_ACCEPTED]) for memory in memories) / max(proposed, 1)}


@called
def weigh_state(parameters: MetropolisParameters, memory: MetropolisMemory, x: Array) -> tuple[float, float]:
    """Return the log-weight of a state (minus infinity if it is impossible) and its log-probability as a proposal."""
    tables, buckets, pool, answers = parameters.source
    place, score, known = memory.place, memory.score, memory.known
    for i in range(x.size):
        p, code = answers.place[i], answers.first[i]
        if p < 0:
            if x[i] != code:
                return -np.inf, -np.inf
        else:
            place[p] = -1
            for k in range(buckets.card[p]):
                if answers.code[code + k] == x[i]:
                    place[p] = k
            if place[p] < 0:
                return -np.inf, -np.inf
    potential, chance = 0.0, 0.0
    for p in range(buckets.card.size - 1, -1, -1):
        card, own = buckets.card[p], place[p]
        for k in range(card):
            score[k] = 0.0
        first, last = buckets.draw_start[p], buckets.draw_start[p + 1]
        inner = first + buckets.potentials[p]
        for at in range(first, last):
            if at == inner:
                known[own] = score[own]
            t = buckets.drawn[at]
            entry = tables.at[t]
            for a in range(tables.start[t] + 1, tables.start[t + 1]):
                entry += place[tables.site[a]] * tables.stride[a]
            stride = tables.stride[tables.start[t]]
            for k in range(card):
                score[k] += pool[entry + k * stride]
        if inner == last:
            known[own] = score[own]
        if score[own] == -np.inf:
            return -np.inf, -np.inf
        top, total = -np.inf, 0.0
        for k in range(card):
            top = max(top, score[k])
        for k in range(card):
            total += exp_below(score[k] - top)
        potential += known[own]
        chance += score[own] - top - math.log(total)
    return potential - chance, chance


@implement(step, MetropolisParameters)
def _step(
    parameters: MetropolisParameters,
    arrays: Any,
    memory: MetropolisMemory,
    x: Array,
    i: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
) -> Words:
    lanes, here, counts = memory.lanes, memory.here, memory.counts
    moved = False
    for k in range(x.size):
        moved = moved or here[k] != x[k]
    if moved:  # the state was set from outside
        memory.weight[0], _ = weigh_state(parameters, memory, x)
        for k in range(x.size):
            here[k] = x[k]
    if counts[_NEXT] == BLOCK:
        rng = draw_lanes(parameters.source, lanes, rng)
        write_codes(parameters.source.answers, lanes)
        counts[_NEXT] = 0
    b = counts[_NEXT]
    counts[_NEXT] += 1
    counts[_PROPOSED] += 1
    rng, u = uniform(rng)
    gain = lanes.log_weight[b] - memory.weight[0]
    if parameters.equal or not gain < 0.0 or u < math.exp(gain):
        counts[_ACCEPTED] += 1
        memory.weight[0] = lanes.log_weight[b]
        for k in range(x.size):
            here[k] = x[k] = lanes.codes[k, b]
    return rng


@implement(transition, MetropolisParameters)
def _transition(
    parameters: MetropolisParameters, arrays: Any, memory: MetropolisMemory, x: Array, i: Integer, row: Floats
) -> Integer:
    """Write the probability of moving to every state, and of staying at the present one."""
    n = x.size
    before = memory.here
    count, present = np.int64(1), np.int64(0)
    for k in range(n):
        before[k] = x[k]
        size = parameters.card[k]
        count *= size
        present = present * size + np.int64(x[k])
    weight, _ = weigh_state(parameters, memory, x)
    stays = 1.0
    for number in range(count):
        rest = np.int64(number)
        for k in range(n - 1, -1, -1):
            size = parameters.card[k]
            x[k] = rest % size
            rest //= size
        other, chance = weigh_state(parameters, memory, x)
        row[number] = math.exp(chance)
        if not parameters.equal and other < weight:
            row[number] *= math.exp(other - weight)
        if number != present:
            stays -= row[number]
    row[present] = stays
    for k in range(n):
        x[k] = before[k]
    memory.weight[0] = weight
    return count
