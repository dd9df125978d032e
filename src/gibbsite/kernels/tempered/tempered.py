"""Replica exchange: copies of a model at several temperatures, which an exact kernel moves, and which swap states.

If a model has several modes, a chain at the temperature of the model stays in one of them. Rungs lead from a product
distribution, from which every sweep draws a new state, to the model, and swaps carry states between both ends
(Geyer 1991; Hukushima and Nemoto 1996). Swaps are those of :mod:`.exchange`; the inverse temperatures of the
rungs are chosen by :mod:`.ladder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gibbsite._common.arrays import Array, Floats, Positions, Words64
from gibbsite._common.cache import Recent
from gibbsite._common.wording import part, unknown
from gibbsite._numba.packed import pack_values
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.rows import row_starts
from gibbsite.kernels.base import MOST_MEMBERS, Buffer, Kernel, Nothing, is_quick, sites_of, units_of
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.protocols import Independent
from gibbsite.kernels.registry import register
from gibbsite.kernels.tempered.exchange import (
    BATCHES,
    COUNTED,
    LENGTH,
    ROWS,
    SAMPLES,
    STRIDE,
    SUMMED,
    TAKEN,
    TRIPS,
    TemperedMemory,
    Workspace,
    forget_counts,
)
from gibbsite.kernels.tempered.ladder import Ladder, check_ladder, first_betas, read_betas
from gibbsite.kernels.tempered.rungs import Rungs, TemperedParameters, even_reference, level_of, make_rungs, rung_memory
from gibbsite.kernels.tempered.side_by_side import (
    SideParameters,
    fits_side_by_side,
    lanes_for,
    side_parameters,
    side_work,
)

if TYPE_CHECKING:
    from gibbsite.kernels.ensemble import Ensemble
    from gibbsite.kernels.protocols import Pilot

#: Choices of the product distribution at inverse temperature 0, and of the rungs whose marginals are kept.
REFERENCES, KEEP = ("fitted", "even"), ("target", "all")
# Least number of round trips of every chain, and least rate of swaps of every pair, for states to cross between modes.
_FEWEST_TRIPS, _LOWEST_RATE = 10, 0.05
# In larger models it takes long to find a ladder.
_FEW_SITES = 20_000
# The graphs of the last ladders.
_RUNGS = Recent[Rungs](4)


@register(methods={"tempered": ("MAR", "MAP", "PR")}, proof=[{"ladder": (0.0, 0.4, 1.0)}], recommend={"Tempered": {}})
@dataclass(frozen=True)
class Tempered(Kernel):
    """Replica exchange around another kernel.

    Parameters
    ----------
    kernel : Kernel
        The kernel that moves each replica: :class:`Gibbs`, :class:`BlockGibbs`, or any other exact kernel whose
        memory does not depend on its state; for models whose pairs favour agreement, also :class:`SwendsenWang`
        and :class:`Wolff`.
    ladder : "auto" or sequence of float
        Inverse temperatures of the rungs, rising from 0 (the reference) to 1 (the model). "auto" finds them
        before the run such that all swaps are equally likely; their number depends on the communication barrier.
        They do not change during the run.
    reference : {"fitted", "even"}
        The product distribution at inverse temperature 0. "fitted": the marginals estimated in the search for a ladder,
        mixed with equal probabilities. "even": equal probabilities, which given ladders always use.
    keep : {"target", "all"}
        The rungs whose marginals are recorded; those of other rungs are ``result.at(beta).marginals``.

    See Also
    --------
    kernels.PairedTempered : Replicas that also exchange clusters.
    AnnealedGibbs : Search for the most probable state.

    Notes
    -----
    A sweep consists of one sweep of every rung, and swaps. Results describe the target, which is the last rung;
    ``result.tempering`` describes the others, and ``result.log_z`` is the log-partition function. Zeros of factors of
    several sites are softened at the other rungs, and are zeros at the target.

    References
    ----------
    Hukushima and Nemoto (1996), Exchange Monte Carlo method and application to spin glass simulations.

    Syed et al. (2022), Non-reversible parallel tempering.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=1.0, field=0.02)
    >>> result = gs.sample(model, gs.Tempered(gs.Gibbs()), sweeps=4000, rng=1, progress=False)
    >>> abs(result.log_z - gs.solve_exact(model).log_z) < 4 * result.log_z_error
    True
    """

    reversible: ClassVar[bool] = False  # because swaps alternate between even and odd pairs
    kernel: Kernel = field(default_factory=Gibbs)
    ladder: Any = "auto"
    reference: str = "even"
    keep: str = "target"
    found: Ladder | None = field(default=None, repr=False, compare=False)

    @property
    def conditional(self) -> bool:  # type: ignore[override]
        """Whether the kernel of the replicas writes conditionals."""
        return self.kernel.conditional

    # ---- before a run

    def check(self, graph: Graph) -> None:
        """Refuse kernels that do not allow swaps, and graphs that the kernel does not accept."""
        inner = self.kernel
        if not isinstance(inner, Kernel):
            raise ArgumentError(f"Tempered needs a kernel such as gs.Gibbs(), got {inner!r}.")
        name, instead = type(inner).__name__, "use gs.Gibbs() or gs.BlockGibbs() inside"
        if not inner.estimates or isinstance(inner, Tempered):
            raise IncompatibleError(f"Tempered cannot use {name}, which has temperatures; {instead}.")
        if inner.error_source != "draws":
            raise IncompatibleError(
                f"Tempered cannot use {part(name, name)}: its memory belongs to one chain, and swaps of "
                f"states would corrupt it; {instead}."
            )
        if not inner.reads_all:
            raise IncompatibleError(
                f"Tempered cannot use {part(name, name)}: it reads minibatches of the factors, but a "
                f"swap needs all factors, which takes longer than its sweeps; {instead}."
            )
        if not inner.exact:
            raise IncompatibleError(f"Tempered needs an exact kernel, and {part(name, name)} is biased; {instead}.")
        inner.check(graph)
        if not graph.n_sites:
            raise IncompatibleError("Tempered has nothing to move: there are no free sites; use gs.Gibbs().")
        if not graph.discrete:
            raise IncompatibleError(
                f"Tempered needs sites with states, but this is a {graph.kind} graph; use another kernel."
            )
        graph.require_model()
        memory = rung_memory(inner, graph, np.ones(4, np.uint64))
        replaceable = getattr(memory, "rebuildable", False) or getattr(memory, "stateless", False)
        if not isinstance(memory, Buffer | Nothing) and not replaceable:
            raise IncompatibleError(
                f"Tempered cannot use {part(name, name)}: its memory depends on its state, "
                f"which swaps would make wrong; {instead}."
            )
        self._betas()
        if self.reference not in REFERENCES:
            raise ArgumentError(unknown("reference", self.reference, REFERENCES))
        if self.keep not in KEEP:
            raise ArgumentError(unknown("keep", self.keep, KEEP))

    def _betas(self) -> Floats:
        """Return the inverse temperatures that were given, or those to try first."""
        if isinstance(self.ladder, str) and self.ladder == "auto":
            return first_betas()
        return read_betas(self.ladder)

    def start_ladder(self, graph: Graph) -> Ladder:
        """Return the ladder in use."""
        if self.found is not None:
            return self.found
        betas = self._betas()
        return Ladder(betas, even_reference(graph), np.zeros(betas.size - 1))

    def _rungs(self, graph: Graph) -> tuple[Ladder, Rungs]:
        """Return the ladder in use, and its graphs, which are cached."""
        ladder = self.start_ladder(graph)
        words = (ladder.betas.tobytes(), ladder.log_reference.tobytes())
        key = (graph.digest, graph.units, repr(self.kernel), *words)
        return ladder, _RUNGS.find(key, lambda: make_rungs(graph, self.kernel, ladder))

    @property
    def tunes(self) -> bool:
        """Whether the ladder has still to be found."""
        return self.found is None

    def tune(self, pilot: Pilot) -> Kernel:
        """Find the ladder, unless it is given, with its reference and the differences of log Z."""
        from gibbsite.kernels.tempered.ladder import find_ladder

        return replace(self, found=find_ladder(self, pilot))

    def tuned(self) -> dict[str, Array]:
        """Return the ladder that was found."""
        if self.found is None:
            return {}
        return {name: np.asarray(value) for name, value in vars(self.found).items()}

    def retuned(self, found: dict[str, Array]) -> Kernel:
        """Return the kernel with a ladder that was found before."""
        ladder = Ladder(**found)
        check_ladder(ladder)
        return replace(self, found=ladder)

    # ---- set-up of a run

    def units(self, graph: Graph) -> int | None:
        """Return the units of the kernel of the replicas."""
        return units_of(self.kernel, graph)

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return the sites of a unit of the kernel of the replicas."""
        return sites_of(self.kernel, graph, unit)

    def parameters(self, graph: Graph) -> TemperedParameters | SideParameters:
        """Return the graphs of all rungs, or the model and its reference for replicas side by side."""
        if fits_side_by_side(graph, self.kernel):
            return side_parameters(graph, self.start_ladder(graph))
        ladder, rungs = self._rungs(graph)
        gap, cut = np.diff(ladder.betas), np.array(ladder.cut)
        return TemperedParameters(
            rungs.graphs,
            rungs.inner,
            rungs.like,
            rungs.beyond,
            rungs.constant,
            rungs.hard,
            gap,
            cut,
            cell=row_starts(graph.cards),
            reference=np.exp(ladder.log_reference if ladder.betas[0] == 0.0 else np.zeros(0)),
        )

    def memory(self, graph: Graph, stream: Words64) -> TemperedMemory:
        """Allocate states, generators and counts of all rungs."""
        ladder, rungs = self._rungs(graph)
        many = ladder.betas.size
        seeds = np.random.SeedSequence([int(word) for word in stream]).generate_state(4 * many, np.uint64)
        counts = np.zeros(10, np.int64)
        counts[[LENGTH, STRIDE]] = 1
        rows: int = many - 1
        work: Any
        if fits_side_by_side(graph, self.kernel):
            rows, work = lanes_for(many), side_work(many, graph.n_sites, stream)
        else:
            inner = rungs.kernel
            memories = [rung_memory(inner, graph, stream) for _ in range(many)]
            work = Workspace(pack_values(memories), memories[-1])
        return TemperedMemory(
            states=np.zeros(rows * graph.n_sites, graph.state_dtype),
            words=seeds.reshape(many, 4).astype(np.uint64),
            place=np.arange(many),
            label=np.arange(many),
            last=np.zeros(many, np.int64),
            counts=counts,
            gain=np.zeros(many),
            accepted=np.zeros(many - 1),
            open_batch=np.zeros(2 * (many - 1)),
            batches=np.zeros((ROWS, 2 * (many - 1))),
            samples=np.zeros((SAMPLES, many)),
            sums=np.zeros((many, int(graph.cards.sum())) if self.keep == "all" else (0, 0)),
            betas=ladder.betas.copy(),
            level=np.array([np.nan if rungs.hard else level_of(ladder.log_reference, graph)]),
            cut=ladder.cut.copy(),
            work=work,
        )

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        many = self.start_ladder(graph).betas.size
        each = graph.n_sites * np.dtype(graph.state_dtype).itemsize + self.kernel.memory_bytes(graph)
        return int(many * (each + 8 * (2 * ROWS + SAMPLES + 16)))

    def members(self, graph: Graph) -> int:
        """Return the number of threads that can share a sweep: one per rung, or one if replicas are side by side."""
        if fits_side_by_side(graph, self.kernel):
            return 1
        return min(MOST_MEMBERS, self.start_ladder(graph).betas.size)

    def ensemble(self, graph: Graph) -> Ensemble | None:
        """Return the distribution of rungs to processes, or of groups of lanes if replicas are side by side."""
        from gibbsite.kernels.tempered.sharing import SharedLanes, SharedRungs

        shared = SharedLanes if fits_side_by_side(graph, self.kernel) else SharedRungs
        return shared(self.start_ladder(graph).betas.size)

    def forget(self, memory: TemperedMemory) -> None:
        """Make the next sweep compute U again."""
        memory.counts[SUMMED] = 0

    def freeze(self, memory: TemperedMemory) -> None:
        """Begin counting."""
        forget_counts(memory)

    def independent(self, graph: Graph) -> bool:
        """Whether the kernel of the replicas draws all sites at once."""
        return isinstance(self.kernel, Independent) and self.kernel.independent(graph)

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Return True: every state is connected with every other one through the reference."""
        return True

    def quick(self, graph: Graph) -> bool:
        """Return whether the model is small enough to find a ladder quickly."""
        return graph.n_sites <= _FEW_SITES and is_quick(self.kernel, graph)

    def candidates(self, graph: Graph) -> tuple[Kernel, ...]:
        """Return the variant with two replicas on each rung if it is likely to be better, otherwise this kernel.

        The variant is considered only if no argument was given, and is better on frustrated two-state models with few
        neighbours.
        """
        from gibbsite.kernels.tempered.paired import PairedTempered, pairing_pays

        left_open = isinstance(self.ladder, str) and self == Tempered()
        return (PairedTempered() if left_open and pairing_pays(graph) else self,)

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return the number of rungs of the ladder that was found."""
        return {} if self.found is None else {"rungs": float(self.found.betas.size)}

    # ---- after a run

    def report(self, memories: Sequence[TemperedMemory]) -> dict[str, float]:
        """Return rungs, barrier, round trips and the lowest rate of swaps."""
        counted = sum(int(memory.counts[COUNTED]) for memory in memories)
        if not counted:
            return {}
        rates = np.sum([memory.accepted for memory in memories], axis=0) / counted
        return {
            "rungs": float(rates.size + 1),
            "barrier": float(np.sum(1.0 - rates)),
            "round_trips": float(sum(int(memory.counts[TRIPS]) for memory in memories)),
            "lowest_swap_rate": float(np.min(rates)),
        }

    def crossing_warnings(self, memories: Sequence[TemperedMemory]) -> tuple[str, ...] | None:
        """Require round trips in every chain, and swaps at every rung.

        A ladder that does not begin at the reference does not produce independent states.
        """
        counted = sum(int(memory.counts[COUNTED]) for memory in memories)
        if memories[0].betas[0] > 0.0 or not counted:
            return None
        said = []
        trips = [int(memory.counts[TRIPS]) for memory in memories]
        if min(trips) < _FEWEST_TRIPS:
            said.append(
                f"too few round trips between the reference and the model: {min(trips)} in one chain, fewer "
                f"than {_FEWEST_TRIPS}; run longer."
            )
        rates = np.sum([memory.accepted for memory in memories], axis=0) / counted
        worst = int(np.argmin(rates))
        if rates[worst] < _LOWEST_RATE:
            low, high = memories[0].betas[worst : worst + 2]
            said.append(
                f"states hardly pass between the inverse temperatures {low:.3g} and {high:.3g}: "
                f"{rates[worst]:.2g} of the swaps are accepted, fewer than {_LOWEST_RATE:g}; add rungs there."
            )
        return tuple(said)

    def kept(self, memories: Sequence[TemperedMemory]) -> dict[str, Array]:
        """Return the records of chains for all rungs."""
        counts = np.stack([memory.counts for memory in memories])
        batches, taken = int(counts[:, BATCHES].min()), int(counts[:, TAKEN].min())
        return {
            "betas": memories[0].betas,
            "cut": memories[0].cut,
            "trips": counts[:, TRIPS],
            "sweeps": counts[:, COUNTED],
            "accepted": np.stack([memory.accepted for memory in memories]),
            "averages": np.stack([memory.batches[:batches] for memory in memories]),
            "gains": np.stack([memory.samples[:taken] for memory in memories]),
            "sums": np.stack([memory.sums for memory in memories]),
            "level": np.array([memories[0].level[0]]),
        }

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans and reports, without the ladder that was found."""
        ladder = self.ladder if isinstance(self.ladder, str) else np.asarray(self.ladder, float)
        inner = self.kernel.describe()
        about = {"name": "Tempered", "kernel": inner, "ladder": ladder, "reference": self.reference}
        return {**about, "keep": self.keep}
