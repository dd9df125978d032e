"""What a kernel is: parameters, declarations, and one compiled step.

A kernel is a frozen dataclass that stores parameters and declares what it is. Its algorithm is one
function, registered with ``@implement(step, Parameters)``, that moves one site:

    rng = step(parameters, graph, memory, x, i, rng, cond, keep)

It changes ``x[i]``, draws as many random numbers as it likes from ``rng`` (and returns the advanced
generator), uses ``memory`` (a named tuple of arrays it asked for) as it pleases, and, where ``keep`` is set,
writes the conditional of the site to ``cond``: log-odds on two-state kinds, otherwise probabilities.
Everything else (scans, chains, recording, checkpoints, proofs) is done for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Positions, Words64
from gibbsite._common.wording import part
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.generators import Words
from gibbsite.errors import IncompatibleError
from gibbsite.graphs.compile import KINDS
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.support.reach import leads_to
from gibbsite.kernels.registry import default_kernel

if TYPE_CHECKING:
    from gibbsite.kernels.ensemble import Ensemble
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan


class Nothing(NamedTuple):
    """Kernel memory or parameters of a kernel that needs none."""

    unused: int = 0


class Buffer(NamedTuple):
    """Kernel memory that is only a scratch array, one entry per state of a site."""

    work: Floats


class RunOutline(NamedTuple):
    """How a run will go, as far as kernels may care.

    Attributes
    ----------
    scan : str
        Name of the scan.
    period : int or None
        Visits after which the scan starts again; None: never, its order is random.
    sites, thin : int
        Visits of a sweep, and sweeps from one recorded draw to the next.
    visits : int or None
        Visits after the warmup; None: as many as the kernel likes.
    """

    scan: str
    period: int | None
    sites: int
    thin: int
    visits: int | None


class Remark(NamedTuple):
    """What is known beforehand about the results of a kernel, in a sentence or two.

    ``grave``: a number of the result, or one that users would compute from it, is biased however long the
    run.
    """

    text: str
    grave: bool = False


class Trial(NamedTuple):
    """What a pilot run of a kernel has left: memories of its chains, and marginals of all cells."""

    memories: list[Any]
    marginals: Floats


class Pilot(Protocol):
    """Short runs before a run, by which a kernel finds out what it needs (:mod:`gibbsite.sampling.pilot`)."""

    @property
    def graph(self) -> Graph:
        """The model that will be sampled."""

    @property
    def late(self) -> bool:
        """Whether the time of a search is more than used up: the next run should be the last one."""

    def run(self, kernel: Kernel, share: float) -> Trial:
        """Run chains for a share of the pilot's time, from where the last ones of this pilot ended."""


@dataclass(frozen=True)
class Kernel(ABC):
    """How one site moves.

    Attributes
    ----------
    kinds : frozenset of str
        Graph kinds the kernel runs on.
    deterministic : bool
        No random numbers are used.
    exact : bool
        The target law is stationary.
    conditional : bool
        The step writes conditional probabilities, so marginals can be Rao-Blackwellised.
    estimates : bool
        Draws tell probabilities. Those of a kernel that looks for the best state need not: its runs keep
        that state, and refuse to record probabilities or draws.
    joint : bool
        A step moves all sites together, whatever site it is given: a sweep is one step.
    reads_all : bool
        A sweep reads every factor, so that the log-potential of a state costs no more than a sweep.
    crosses : bool
        Chains cross between modes themselves, and :meth:`doubts` tells how well.
    replicated : bool
        A chain consists of replicas, which :meth:`ensemble` may share out to several processes.
    fallible : bool
        :meth:`inspect` may find that steps went wrong; the chains then go back to where they were before.
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    deterministic: ClassVar[bool] = False
    exact: ClassVar[bool] = True
    conditional: ClassVar[bool] = True
    estimates: ClassVar[bool] = True
    joint: ClassVar[bool] = False
    reads_all: ClassVar[bool] = True
    crosses: ClassVar[bool] = False
    replicated: ClassVar[bool] = False
    fallible: ClassVar[bool] = False

    def units(self, graph: Graph) -> int | None:
        """Return how many things a sweep visits, where they are not the sites: blocks, or all at once."""
        return 1 if self.joint else None

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return the sites that a visit of a unit may change: the site itself, or those of a block."""
        return np.arange(graph.n_sites) if self.joint else np.array([unit])

    @property
    def reversible(self) -> bool:
        """Whether each single-site step satisfies detailed balance."""
        return True

    @property
    def error_source(self) -> str:
        """Return what standard errors can be taken from.

        "draws": draws of a chain are dependent, but random, and the length of their memory shows in them.
        "chains": draws of a chain are more even than random ones and say nothing about its error; chains are
        independent replicates, and the spread of their means does. "none": chains are not independent either,
        or have an error in common, which their spread does not show.
        """
        return "none" if self.deterministic else "draws"

    def natural_sweeps(self, n_sites: int) -> int | None:
        """Sweeps that make a complete run, and its length unless another is asked for; None: any number."""
        return None

    def resolve(self, outline: RunOutline) -> Kernel:
        """Return the kernel with everything decided that was left open; refuse a run that makes no sense."""
        return self

    def tune(self, pilot: Pilot) -> Kernel:
        """Return the kernel with everything that short runs before the run tell; it does not change later."""
        return self

    @property
    def tunes(self) -> bool:
        """Whether :meth:`tune` has anything to find out."""
        return False

    def tuned(self) -> dict[str, Array]:
        """Return what :meth:`tune` has found, for checkpoints."""
        return {}

    def retuned(self, found: dict[str, Array]) -> Kernel:
        """Return the kernel with what :meth:`tune` had found, from a checkpoint."""
        return self

    def settle(self, graph: Graph) -> Kernel:
        """Return the kernel with everything decided that it reads off the weights of a model.

        Who runs it on models of the same structure and other weights (:mod:`.tempered`) asks this first.
        """
        return self

    def remarks(self, model: Any, graph: Graph, scan: Scan) -> tuple[Remark, ...]:
        """Say what users of a result should know that its numbers do not show; asked once per run."""
        return ()

    def bias(self, graph: Graph, place: Any, sds: Any, memories: Sequence[Any]) -> Any:
        """Return the bias of a kernel that is not exact (:class:`.density.bias.Bias`); None: it is not known.

        ``place`` and ``sds`` are means and standard deviations of a run.
        """
        return None

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return what chains have counted in their memories, as figures by name, for ``Result.report``."""
        return {}

    def kept(self, memories: Sequence[Any]) -> dict[str, Array]:
        """Return what chains have recorded in their memories, as arrays by name, for ``Result.kept``."""
        return {}

    def doubts(self, memories: Sequence[Any]) -> tuple[str, ...] | None:
        """Return what speaks against chains that cross between modes, one sentence each; None: they do not.

        Where they do, and nothing speaks against them, a run needs no second look from other starts.
        """
        return None

    @abstractmethod
    def parameters(self, graph: Graph) -> NamedTuple:
        """Return the parameters as compiled code sees them; refuse what makes no sense."""

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate what one chain carries besides its state; the default is a scratch array.

        A checkpoint holds it, unless the named tuple has a property ``rebuildable`` that is true: then it has
        no influence on the numbers, and a resumed chain begins with a new one.
        """
        return Buffer(np.zeros(int(graph.cards.max(initial=1))))

    def rung_memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate the memory of one of several replicas that exchange their states (:mod:`.tempered`).

        It must say nothing about the state; where :meth:`memory` may, another one is allocated.
        """
        return self.memory(graph, stream)

    def memory_bytes(self, graph: Graph) -> int:
        """Predict the bytes :meth:`memory` will allocate."""
        return 8 * int(graph.cards.max(initial=1))

    def shareable(self, graph: Graph) -> bool:
        """Whether steps of independent sites may be made by several threads at once.

        They must use no random numbers, and nothing of the memory that steps of other sites use.
        """
        return False

    def members(self, graph: Graph) -> int:
        """Return how many threads can share a step, by an implementation of :func:`visit`."""
        return 1

    def ensemble(self, graph: Graph) -> Ensemble | None:
        """Return how several processes can share a chain of replicas; None where they cannot."""
        return None

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:  # noqa: B027
        """Refuse to go on if the memory shows that something is wrong; asked after every block of steps."""

    def freeze(self, memory: Any) -> None:  # noqa: B027
        """End whatever a chain learns about its target in the warmup; called before the first draw."""

    def forget(self, memory: Any) -> None:  # noqa: B027
        """Drop what a chain's memory says about its state, because the state was set from outside.

        Whoever changes a state other than by steps calls this; by default a memory says nothing about it.
        """

    def quick(self, graph: Graph) -> bool:
        """Tell whether it is prepared in no time.

        Kernels that look for blocks may take minutes on large models; who merely compares kernels, or tells
        about them, leaves them out then.
        """
        return True

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return what ``gibbsite info`` tells about this kernel on a model, by name; nothing by default."""
        return {}

    def candidates(self, graph: Graph) -> tuple[Kernel, ...]:
        """Return the kernels that this one may stand for on a graph.

        Where there are several, :func:`gibbsite.infer` gives each a short turn and takes the best.
        """
        return (self,)

    def independent(self, graph: Graph) -> bool:
        """Tell whether a sweep ends in an independent draw from the model, wherever it began.

        Nothing can have been missed then: such a run needs no second look, and few draws.
        """
        return False

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Tell whether moves of this kernel were found that lead from one state to another.

        True is a proof, False is not. The default asks for moves of single sites.
        """
        return leads_to(graph, here, there, rng)

    def check(self, graph: Graph) -> None:
        """Refuse a graph this kernel cannot run on."""
        if graph.kind not in self.kinds:
            name = type(self).__name__
            raise IncompatibleError(
                f"{part(name, name)} cannot run on a {graph.kind} graph; it accepts "
                f"{', '.join(sorted(self.kinds))}. Use {part(type(default_kernel(graph)).__name__)}."
            )

    def accepts(self, graph: Graph) -> bool:
        """Tell whether :meth:`check` has nothing against a graph."""
        try:
            self.check(graph)
        except IncompatibleError:
            return False
        return True

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans and reports."""
        return {"name": type(self).__name__, **vars(self)}


@generic
def step(
    parameters: Any, arrays: Any, memory: Any, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Move site i once; return the advanced generator."""
    raise NotImplementedError


#: Most threads that share the work of one chain: memories have room for so many.
MOST_MEMBERS = 16


class Team(NamedTuple):
    """Threads that share the work of one chain: this one's number, how many there are, where they meet."""

    member: int
    size: int
    gate: Ints


def alone() -> Team:
    """Return the team of a chain that runs on one thread."""
    return Team(0, 1, np.zeros(1, np.int64))


@generic
def visit(
    parameters: Any,
    arrays: Any,
    schedule: Any,
    memory: Any,
    x: Array,
    order: Ints32,
    where: Integer,
    stop: Integer,
    turn: Integer,
    rng: Words,
    cond: Floats,
    keep: bool,
    team: Team,
) -> Words:
    """Visit the positions from ``where`` to ``stop`` of period number ``turn`` of a schedule.

    Site by site (:mod:`gibbsite.sampling.chain`) unless there is an implementation for kernel and graph that moves
    many sites at once (:mod:`gibbsite.kernels.batched`).
    """
    raise NotImplementedError


@generic
def sums_up(arrays: Any) -> bool:
    """Whether a walk adds conditionals to the recorded sums itself, instead of leaving them in ``cond``."""
    raise NotImplementedError


@implement(sums_up)
def _leaves_them(arrays: Any) -> bool:
    return False


@generic
def transition(parameters: Any, arrays: Any, memory: Any, x: Array, i: Integer, row: Floats) -> Integer:
    """Fill ``row`` with the probabilities of the next value of unit i; return the number of states.

    A unit is a site or a block (``Kernel.sites_of``): the values of a block are numbered with its last site
    fastest.
    Optional: kernels that supply it are proved by exact transition matrices.
    """
    raise NotImplementedError
