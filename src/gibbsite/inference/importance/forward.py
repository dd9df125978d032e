"""``gibbsite.importance.Forward``, which draws Bayesian networks from parents to children, weighted by evidence."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Bools, Floats, Integers, Ints, Words32
from gibbsite._common.wording import unknown
from gibbsite._numba.random.generators import chain_key, stream
from gibbsite.errors import ArgumentError, SupportError
from gibbsite.graphs.elimination.order import find_order, interaction_graph
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.rows import row_starts
from gibbsite.graphs.support.possible import alive_states, evidence_text, has_zeros
from gibbsite.inference.importance.base import ImportanceProposal, SourceSettings, WeightedSource, register
from gibbsite.inference.importance.guidance import guide, hear_evidence, learn
from gibbsite.inference.importance.mini_buckets.buckets import split_bucket
from gibbsite.inference.importance.network import BayesNetwork, find_network
from gibbsite.inference.importance.tables import NetworkLayout, draw_blocks, lay_out, make_scratch, proposal_tables
from gibbsite.inference.importance.tally import Tally, make_tally

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


PROPOSALS = ("auto", "prior", "evidence", "adaptive")
# Share of the remaining budget for a mixture without the learned proposal, so that two mixtures can be compared.
_FIRST_SHARE = 0.1
# Passes of messages, and the share of the conditional table that the proposal of a site keeps.
_PASSES, _LEAST = 20, 1e-3
_LEARNING_SHARE = 0.15  # share of the budget for learning
_LEAST_SHARE = 0.1  # least share of a proposal in a mixture: weights are at most 1 / share times those of each alone
_WORTH_IT = 0.25  # efficiency relative to the best above which a proposal with a good bound is favoured


@register(method="forward", tasks=("MAR", "PR"))
@dataclass(frozen=True)
class Forward(ImportanceProposal):
    """Draw the sites of a Bayesian network in order, each given its parents.

    Without evidence, or with evidence on sites without parents alone, draws are independent draws from the model
    itself. Otherwise draws are weighted by the ratio of the model to the proposal.

    Parameters
    ----------
    proposal : {"auto", "prior", "evidence", "adaptive"}
        "prior" draws each site from its conditional distribution, and weights draws by the likelihood of the evidence
        (likelihood weighting). "evidence" multiplies the conditional distributions by messages of belief propagation
        from later evidence. "adaptive" learns tables from weighted draws of both, then freezes them. "auto" mixes all
        three, in shares by their efficiency.
    entries : int
        Largest table for the upper bound of the weights, which limits the probability of states that draws may have
        missed.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.example("alarm").observe({"HRBP": "HIGH", "EXPCO2": "LOW"})
    >>> found = gs.sample_weighted(model, gs.importance.Forward(), draws=200_000, rng=1, progress=False)
    >>> gs.compare(found, gs.solve_exact(model)).max_abs < 0.01
    True
    """

    proposal: str = "auto"
    entries: int = 1 << 14

    def __post_init__(self) -> None:
        if self.proposal not in PROPOSALS:
            raise ArgumentError(unknown("proposal", self.proposal, PROPOSALS))
        check_integer("entries", self.entries, 2)

    def sources(self, model: FactorGraph, setting: SourceSettings) -> Iterator[tuple[float, WeightedSource]]:
        """Yield the mixtures of proposals, the last one for the rest of the budget."""
        alive = _find_alive(model)
        ready = _Prepared(find_network(model).keep(setting.query), model, setting, alive, self.entries)
        prior = ready.prior()
        if not ready.network.likelihoods or self.proposal == "prior":
            yield 1.0, ForwardSource("likelihood weighting", ready, [prior], [1.0])
            return
        evidence = ready.guided()
        if self.proposal == "evidence":
            yield 1.0, ForwardSource("evidence", ready, [evidence], [1.0])
            return
        learnt, worth = ready.learn([prior, evidence])
        if self.proposal == "adaptive":
            yield 1.0, ForwardSource("adaptive", ready, [learnt], [1.0])
            return
        first = ForwardSource("prior and evidence", ready, [prior, evidence], _shares(worth[:2]))
        used = min(setting.elapsed() / setting.seconds, 1.0)
        yield used + _FIRST_SHARE * (1.0 - used), first
        shares = _favour(_shares(worth), worth, first.bounds)
        yield 1.0, ForwardSource("mixture", ready, [prior, evidence, learnt], shares)


def _shares(worth: Floats) -> list[float]:
    """Return shares in a mixture, in proportion to effective sizes per draw, with a lower limit."""
    share = np.maximum(worth / worth.sum() if worth.sum() > 0.0 else np.ones(worth.size), _LEAST_SHARE)
    return [float(one) for one in share / share.sum()]


def _favour(shares: list[float], worth: Floats, bounds: list[float]) -> list[float]:
    """Give half of a mixture to the proposal with the smallest bound, if it is efficient enough.

    The bound of the mixture is then at most twice that bound, so that a run can be judged converged earlier.
    """
    best = bounds.index(min(bounds))
    if worth[best] < _WORTH_IT * worth.max() or shares[best] >= 0.5:
        return shares
    rest = 0.5 / (1.0 - shares[best])
    return [0.5 if k == best else share * rest for k, share in enumerate(shares)]


def _find_alive(model: FactorGraph) -> Bools | None:
    """Return the states that propagation of zeros leaves, None without zeros; refuse impossible evidence."""
    graph = compile_graph(model, among=("pairwise", "table"))
    return np.asarray(alive_states(graph, model)) if has_zeros(graph) else None


class ForwardSource(WeightedSource):
    """A network with the tables of one or several proposals, mixed in given shares."""

    def __init__(self, name: str, ready: _Prepared, proposals: list[Floats], shares: list[float]) -> None:
        self.name, self.ready, self.shares = name, ready, shares
        self.tables = proposal_tables(ready.structure, ready.laws, np.stack(proposals), shares)
        self.exact = not self.tables.weighs.any() and not ready.network.likelihoods
        self.key = ready.next_key()
        lanes = np.diff(self.tables.lane) / self.tables.lane[-1]
        self.bounds = list(map(ready.bound, proposals, self.tables.log_proposal))
        self.log_bound = float(min(np.array(self.bounds) - np.log(lanes)))
        self._local = threading.local()

    def make_tally(self, cards: Integers) -> Tally:
        """Return an empty tally for the queried sites."""
        return make_tally(cards, self.ready.rows)

    def draw(self, tally: Tally, group: int, first: int, blocks: int, step: int) -> None:
        """Draw blocks and add them to a group."""
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = make_scratch(self.ready.structure)
        draw_blocks(self.ready.structure, self.tables, self.key, first, blocks, step, scratch, tally, group)

    def describe(self) -> dict[str, Any]:
        """Return a description as plain data."""
        return {"name": self.name, "shares": self.shares}


class _Prepared:
    """A network laid out for draws, and the proposals prepared for it."""

    def __init__(
        self, network: BayesNetwork, model: FactorGraph, setting: SourceSettings, alive: Bools | None, entries: int
    ) -> None:
        self.network, self.model, self.setting, self.entries = network, model, setting, entries
        self.structure, self.laws = lay_out(network, model.cards, model.log_offset)
        self.place = {site: t for t, site in enumerate(network.order)}
        self.rows = np.array([self.place[int(site)] for site in np.flatnonzero(setting.query)], np.int64)
        self.keys = 0
        self.bounds: dict[int, tuple[Floats, float]] = {}  # by the id of the proposal, which is kept alive
        self.dead = np.zeros(self.laws.size, np.bool_)
        if alive is not None:
            self.dead = _dead_entries(alive, network, model, self.structure)

    def next_key(self) -> Words32:
        """Return the key of the random numbers of one more source."""
        self.keys += 1
        return chain_key(stream(self.setting.entropy, self.keys))

    def prior(self) -> Floats:
        """Return the conditional distributions of the network without states that zeros exclude."""
        return np.where(self.dead, 0.0, np.exp(self.laws))

    def guided(self) -> Floats:
        """Return the conditional distributions weighted by messages from the evidence."""
        proposal = np.zeros_like(self.laws)
        heard = hear_evidence(self.network, self.structure, _PASSES)
        guide(self.structure, self.laws, heard, _LEAST, proposal)
        return np.where(self.dead, 0.0, proposal)

    def learn(self, proposals: list[Floats]) -> tuple[Floats, Floats]:
        """Return a proposal learned from draws of others, and the efficiency of each."""
        setting = self.setting
        draws = math.inf if setting.draws is None else _LEARNING_SHARE * setting.draws
        until = setting.elapsed() + _LEARNING_SHARE * setting.seconds
        return learn(
            self.structure,
            self.laws,
            proposals,
            self.next_key(),
            draws,
            lambda: setting.stopped() or setting.elapsed() > until,
        )

    def bound(self, proposal: Floats, log_proposal: Floats) -> float:
        """Return an upper bound of the log-weights of a proposal; refuse evidence that it proves impossible."""
        if id(proposal) not in self.bounds:
            self.bounds[id(proposal)] = proposal, self._bound(log_proposal)
        return self.bounds[id(proposal)][1]

    def _bound(self, log_proposal: Floats) -> float:
        terms = []
        with np.errstate(invalid="ignore"):
            ratio = np.where(log_proposal > -np.inf, self.laws - log_proposal, -np.inf)
        for t, law in enumerate(self.network.laws):
            part = ratio[self.structure.table[t] : self.structure.table[t + 1]]
            if part.any():
                terms.append((tuple(self.place[i] for i in law.sites), part.reshape(law.logs.shape)))
        terms += [(tuple(self.place[i] for i in one.sites), one.logs) for one in self.network.likelihoods]
        found = bound_sum(terms, self.structure.card, self.entries)
        if found == -np.inf:
            raise SupportError(
                f"No state of this model has positive probability{evidence_text(self.model)}; change the evidence."
            )
        return found + self.structure.constant


def _dead_entries(alive: Bools, network: BayesNetwork, model: FactorGraph, structure: NetworkLayout) -> Bools:
    """Return which entries of the tables belong to states that zeros exclude."""
    first = np.cumsum(model.cards, dtype=np.int64) - model.cards
    dead = np.zeros(int(structure.table[-1]), np.bool_)
    for t, site in enumerate(network.order):
        card = int(structure.card[t])
        states = ~alive[first[site] : first[site] + card]
        if states.any():
            dead[structure.table[t] : structure.table[t + 1]].reshape(-1, card)[:, states] = True
    return dead


Table = tuple[tuple[int, ...], Floats]


def bound_sum(tables: Sequence[Table], cards: Ints, entries: int) -> float:
    """Return an upper bound of a sum of tables over all states; the maximum itself if nothing is split.

    Sites are maximised out one after another. Tables of a site that would together have more than ``entries`` entries
    are split into mini-buckets and maximised separately, which can only increase the result (Dechter and Rish 2003).
    """
    constant = sum(float(table) for sites, table in tables if not sites)
    left = [one for one in tables if one[0]]
    if not left:
        return constant
    member = np.array([site for sites, _ in left for site in sites], np.int64)
    start = row_starts(np.array([len(sites) for sites, _ in left]))
    order = find_order(*interaction_graph(start, member, cards.size), np.maximum(cards, 2), tries=10).sites
    rank = np.empty(cards.size, np.int64)
    rank[order] = np.arange(cards.size)
    card: list[int] = cards[order].tolist()
    buckets: list[list[Table]] = [[] for _ in card]
    for sites, table in left:
        axes = np.argsort(rank[list(sites)])
        places = tuple(rank[list(sites)][axes].tolist())
        buckets[places[0]].append((places, table.transpose(axes)))
    for bucket in buckets:
        for product, members in split_bucket([places for places, _ in bucket], card, entries):
            total = np.zeros((1,) * len(product))
            for places, table in (bucket[k] for k in members):
                total = total + table.reshape([card[place] if place in places else 1 for place in product])
            if len(product) > 1:
                buckets[product[1]].append((product[1:], total.max(axis=0)))
            else:
                constant += float(total.max(axis=0))
        bucket.clear()
    return constant
