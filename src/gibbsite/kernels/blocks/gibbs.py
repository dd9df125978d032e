"""Blocked Gibbs sampling: the sites of a block are drawn jointly from their exact conditional distribution.

Sites that depend strongly on each other, or are tied by zeros, move together, and so do the sites of whole
trees (Hamze and de Freitas 2004). The sites outside a block act on it like evidence; the block is drawn by
forward filtering and backward sampling over its clique tables (:mod:`.filtering`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arguments import is_iterable
from gibbsite._common.arrays import Floats, Ints, Positions, Words64
from gibbsite._common.cache import Recent
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import interpreted
from gibbsite.errors import ArgumentError, TooLargeError
from gibbsite.graphs.graph import KINDS, Graph, as_tables, seal
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.support.reach import leads_to
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.blocks.cover import Limit, cover_sites, tie_sites, tied_groups
from gibbsite.kernels.blocks.filtering import make_workspace
from gibbsite.kernels.blocks.plan import BlockMemory, BlockParameters, BlockPlan, do_meet
from gibbsite.kernels.blocks.strip_filter import StripMemory, StripParameters
from gibbsite.kernels.blocks.strips import StripPlan, find_strips
from gibbsite.kernels.blocks.tables import Interactions, find_interactions, lay_out_blocks, order_block
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

#: Algorithms that find blocks.
FOUND = ("auto", "trees", "width", "zeros")
# Most entries of the largest table of a block of all sites, and of all its tables: a pass takes a second.
_WHOLE, _WHOLE_TOTAL = 2.0**22, 2.0**25
# Number of tries in the search for an elimination order of all sites.
_TRIES = 1000
# Most entries of a table of other blocks, by default.
_ENTRIES = 2.0**12
# The same for strips of a lattice: four columns are the most efficient at the critical point of the Ising model.
_STRIP = 2.0**5
# Number of covers if blocks are limited by their width: sites that one cover cuts move freely in another.
_COVERS = 8
# Most entries of the tables of given blocks; that is 4 GiB for a chain.
_MOST = 2.0**29
# Least strength of factors that tie their sites together.
_NEAR_ZERO = 0.95
# Two chains are run until they meet, within these limits: table entries and sweeps.
_MEETING_ENTRIES, _MEETING_SWEEPS = 2e7, 100
# In larger models it takes long to find blocks.
_FEW_SITES = 20_000
# Seconds per table entry, with marginals.
_SECONDS_PER_ENTRY = 1e-8
_PLANS = Recent["BlockPlan | StripPlan"]()


@register(
    methods={"blocks": ("MAR", "MAP")},
    proof=[{"entries": 8, "covers": 1}, {"blocks": "trees"}],
    recommend={"BlockGibbs": {}, "BlockGibbs, trees": {"blocks": "trees"}},
)
@dataclass(frozen=True)
class BlockGibbs(Kernel):
    """Blocked Gibbs sampling.

    Parameters
    ----------
    blocks : {"auto", "trees", "width", "zeros"} or sequence of sequences of sites
        Blocks as lists of names or positions, which may overlap, or the method of finding them. "trees": forests
        that cover all sites; on two-state lattices, all even lines and all odd lines. "width": blocks as large as
        possible while no clique table has more than ``entries`` entries. "zeros": sites that are tied by zeros or very
        small entries share blocks of this width, and other sites are blocks of their own. "auto": one block of all
        sites if that is possible; otherwise strips of a few lines on two-state lattices, alternate strips together,
        and "width" on other models, where sites with strong ties are kept together.
    entries : int, optional
        Largest number of entries of a clique table. By default 2**22 for a block of all sites, 2**5 for strips of
        lattices, 2**12 for others. It has no effect on blocks that are given as lists.
    covers : int, optional
        Number of covers, which are sets of blocks that contain all sites. With more than one, covers are drawn at
        random, and a sweep visits the blocks of all of them. By default 8 if blocks are limited by their width and the
        model has at most 20,000 sites, otherwise 1.
    seed : int
        Seed of the random covers.
    complete : bool
        Whether to refuse blocks that do not contain all sites. If False, the remaining sites keep their start, which
        is meant for short runs.

    See Also
    --------
    Gibbs : One site at a time.
    CutsetGibbs : Draw a few sites and sum the others out.

    Notes
    -----
    A step draws a block; scans order blocks as they order sites. Marginals are those of whole blocks given
    the rest, so a block of all sites gives exact answers after one sweep.

    References
    ----------
    Jensen, Kong and Kjaerulff (1995), Blocking Gibbs sampling in very large probabilistic expert systems.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=2.0)
    >>> result = gs.sample(model, gs.BlockGibbs("auto"), sweeps=20, rng=1, progress=False)
    >>> round(result.marginals["0"][1], 6)
    0.5
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    blocks: Any = "auto"
    entries: int | None = None
    covers: int | None = None
    seed: int = 0
    complete: bool = True

    def plan(self, graph: Graph) -> BlockPlan | StripPlan:
        """Return the blocks of a graph and their tables; the result is cached."""
        key = (graph.digest, _key(self.blocks), self.entries, self.covers, self.seed, self.complete)
        try:
            hash(key)
        except TypeError:  # an argument cannot be hashed
            raise ArgumentError(
                f"{argument('blocks')} must be lists of sites, and {argument('entries')}, "
                f"{argument('covers')} and {argument('seed')} whole numbers."
            ) from None
        return _PLANS.find(key, lambda: self._make_plan(graph))

    def _make_plan(self, graph: Graph) -> BlockPlan | StripPlan:
        """Find the blocks and their orders of elimination, and lay out their tables."""
        strips = self._find_strips(graph)
        if strips is not None and (self.blocks == "trees" or strips.whole_log2 > self._whole_log2):
            return strips
        arrays: TableGraph = as_tables(graph).arrays
        near = find_interactions(arrays)
        with interpreted(math.inf):
            if isinstance(self.blocks, str):
                whole = self._find_whole(arrays, near) if self.blocks == "auto" else None
                if whole is None and strips is not None:
                    return strips
                known, log2 = whole or self._find(arrays, near)
                blocks = [np.sort(block) for block in known]
                orders = [
                    order_block(near, arrays.card, block, found, log2)
                    for block, found in zip(blocks, known, strict=True)
                ]
            else:
                blocks = self._read(graph)
                orders = [order_block(near, arrays.card, block) for block in blocks]
        for number, order in enumerate(orders):
            if order.total > _MOST:
                raise TooLargeError(
                    f"block {number} has {blocks[number].size} sites, and its clique tables would have "
                    f"2^{math.log2(order.total):.0f} entries in all, which is above the limit of "
                    f"2^{math.log2(_MOST):.0f}; give smaller blocks, or let them be found by "
                    f"{argument('blocks', 'width')} with {argument('entries', 2**14)}."
                )
        listed = [block[order.sites] for block, order in zip(blocks, orders, strict=True)]
        tables, pool = lay_out_blocks(arrays, listed)
        return BlockPlan(blocks, orders, seal(tables), pool, arrays)

    def _find_strips(self, graph: Graph) -> StripPlan | None:
        """Return alternate strips of a lattice, one column wide where blocks must be trees."""
        if not isinstance(self.blocks, str) or self.blocks not in ("auto", "trees"):
            return None
        entries, _ = self._limits(graph.n_sites)
        if (self.covers or 1) > 1 or self.seed:
            return None
        return find_strips(graph, 1 if self.blocks == "trees" else int(math.log2(entries or _STRIP)) - 1)

    @property
    def _whole_log2(self) -> float:
        """log2 of the largest allowed number of entries of a table, for a block of all sites."""
        return math.log2(self.entries or _WHOLE)

    def _find_whole(self, arrays: TableGraph, near: Interactions) -> tuple[list[Ints], float] | None:
        """Return one block of all sites, in an order of elimination, if its tables are not too large."""
        self._limits(arrays.card.size)
        everything = np.arange(arrays.card.size)
        order = order_block(near, arrays.card, everything, tries=_TRIES)
        if order.log2_largest <= self._whole_log2 and order.total <= _WHOLE_TOTAL:
            return [everything[order.sites]], order.log2_largest
        return None

    def _find(self, arrays: TableGraph, near: Interactions) -> tuple[list[Ints], float]:
        """Return blocks that cover all sites, each in an order of elimination, and log2 of the limit of tables."""
        if self.blocks not in FOUND:
            raise ArgumentError(unknown("Blocks", self.blocks, FOUND))
        entries, covers = self._limits(arrays.card.size)
        ties = tie_sites(arrays)
        if self.blocks == "trees":
            limit = Limit(math.inf, sites=2)
        else:
            limit = Limit(math.log2(entries or _ENTRIES))
        found: list[Ints] = []
        for cover in range(covers):
            seed = self.seed + cover if covers > 1 or self.seed else None
            if self.blocks == "zeros":
                found += _cover_groups(near, arrays, limit, ties, seed)
            else:
                found += cover_sites(near, arrays.card, limit, ties, seed)
        return found, limit.log2

    def _limits(self, n_sites: int) -> tuple[float | None, int]:
        """Return the limit of entries and the number of covers, checked."""
        for name, value in (("covers", self.covers), ("entries", self.entries)):
            if value is not None and (not isinstance(value, int | np.integer) or value < 1):
                raise ArgumentError(f"{argument(name)} must be a number of at least 1, got {value!r}.")
        if self.entries is not None and self.entries < 4:
            raise ArgumentError(
                f"{argument('entries')} must be at least 4, the table of two sites, got {self.entries!r}."
            )
        if self.covers is None:
            limited = self.blocks in ("auto", "width") and n_sites <= _FEW_SITES
            return self.entries, _COVERS if limited else 1
        return self.entries, int(self.covers)

    def _read(self, graph: Graph) -> list[Ints]:
        """Return the blocks that were given, checked."""
        if not isinstance(self.blocks, Iterable):
            raise ArgumentError(
                f"{argument('blocks')} must be lists of sites or one of {', '.join(FOUND)}, got {self.blocks!r}."
            )
        model: FactorGraph = graph.model  # type: ignore[assignment]
        seen = np.zeros(graph.n_sites, bool)
        blocks = []
        for number, block in enumerate(self.blocks):
            if isinstance(block, str) or not isinstance(block, Iterable):
                raise ArgumentError(f"block {number} must be a list of sites, got {block!r}.")
            named = list(block)
            observed = [site for site in named if isinstance(site, str) and site in model.evidence]
            if observed:
                raise ArgumentError(
                    f"block {number} names {observed[0]!r}, which is observed and does not move; leave it out."
                )
            sites = np.array([model.index(site) for site in named], np.int64)
            if not sites.size or np.unique(sites).size < sites.size:
                raise ArgumentError(f"block {number} is empty or names a site twice: {named!r}.")
            seen[sites] = True
            blocks.append(sites)
        if self.complete and not seen.all():
            missing = [model.domains.names[i] for i in np.flatnonzero(~seen)[:3]]
            raise ArgumentError(
                f"{int((~seen).sum())} sites are in no block, {', '.join(map(repr, missing))} among them, "
                "and would never move; add them, as blocks of one site if need be."
            )
        return blocks

    def settle(self, graph: Graph) -> Kernel:
        """Return the kernel with the blocks found for a model; strips of lattices do not depend on its weights."""
        plan = self.plan(graph)
        if isinstance(plan, StripPlan):
            return self
        return replace(self, blocks=tuple(tuple(map(int, plan.sites_of(k))) for k in range(plan.n_blocks)))

    def units(self, graph: Graph) -> int | None:
        """Return the number of blocks."""
        return self.plan(graph).n_blocks

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return the sites of a block, in the order in which its states are numbered."""
        return self.plan(graph).sites_of(unit)

    def parameters(self, graph: Graph) -> BlockParameters | StripParameters:
        """Return the blocks for compiled code."""
        return self.plan(graph).parameters(graph)

    def memory(self, graph: Graph, stream: Words64) -> BlockMemory | StripMemory:
        """Allocate buffers for the largest block."""
        return self.plan(graph).memory(graph)

    def members(self, graph: Graph) -> int:
        """Return how many threads can share a block: several if strips of a lattice are drawn together."""
        return self.plan(graph).members

    def quick(self, graph: Graph) -> bool:
        """Return whether blocks are found quickly, which holds for small models and for lattices."""
        return graph.n_sites <= _FEW_SITES or self._find_strips(graph) is not None

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return the number of blocks, their sizes, widths and the predicted time of a sweep."""
        plan = self.plan(graph)
        sizes = [block.size for block in plan.blocks]
        return {
            "blocks": len(sizes),
            "smallest": min(sizes),
            "largest": max(sizes),
            "log2_largest_table": round(plan.log2_largest, 2),
            "entries": float(plan.total),
            "seconds_per_sweep": float(f"{_SECONDS_PER_ENTRY * plan.total:.2g}"),
        }

    def candidates(self, graph: Graph) -> tuple[Kernel, ...]:
        """Return trees and blocks of several widths, unless one block of all sites is possible.

        Wider blocks cut fewer sites, but a sweep takes longer; which effect prevails depends on the model.
        """
        if self.blocks != "auto" or self.independent(graph):
            return (self,)
        widths = [2**8, 2**12, 2**16] if self.entries is None else [max(self.entries // 16, 4), self.entries]
        wide = [replace(self, blocks="width", entries=entries) for entries in dict.fromkeys(widths)]
        trees = replace(self, blocks="trees", entries=None)
        if isinstance(self.plan(graph), StripPlan):
            return (self, trees, *wide) if graph.n_sites <= _FEW_SITES else (self, trees)
        return (trees, *wide)

    def independent(self, graph: Graph) -> bool:
        """Whether one block contains all sites."""
        plan = self.plan(graph)
        return plan.n_blocks == 1 and plan.blocks[0].size == graph.n_sites

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Run chains from both states with the same random numbers until they meet.

        Each move of a block can be reversed, so states from which chains meet are connected.
        """
        plan = self.plan(graph)
        if isinstance(plan, StripPlan):
            return leads_to(graph, here, there, rng)  # no state of a lattice is impossible
        sweeps = int(np.clip(_MEETING_ENTRIES / plan.total, 2, _MEETING_SWEEPS))
        x, y = (np.array(state, graph.state_dtype) for state in (here, there))
        work, words = make_workspace(plan.tables, plan.model, plan.pool), rng.integers(1, 2**63, 4)
        found = do_meet(plan.parameters(graph), work, x, y, words.astype(np.uint64), sweeps)
        return bool(found)


def _key(blocks: Any) -> Any:
    """Return blocks as a hashable key."""
    if isinstance(blocks, str) or not is_iterable(blocks):
        return blocks
    return tuple(tuple(block) if isinstance(block, Iterable) else block for block in blocks)


def _cover_groups(near: Interactions, arrays: TableGraph, limit: Limit, ties: Floats, seed: int | None) -> list[Ints]:
    """Cover each group of sites that are tied by zeros with separate blocks."""
    group = tied_groups(arrays, _NEAR_ZERO)
    found: list[Ints] = []
    for sites in np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1]):
        inside = np.zeros(arrays.card.size, bool)
        inside[sites] = True
        found += cover_sites(near, arrays.card, limit, ties, seed, inside)
    return found
