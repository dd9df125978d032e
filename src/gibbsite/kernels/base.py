"""The kernel contract: parameters, declarations, and one compiled step.

A kernel is a frozen dataclass that stores parameters and declares what it is. Its algorithm is one
function, registered with ``@implement(step, Parameters)``, that moves one site:

    rng = step(parameters, graph, memory, x, i, rng, cond, keep)

It changes ``x[i]``, draws any number of random numbers from ``rng`` (and returns the advanced generator), reads and
writes ``memory`` (the named tuple of arrays that the kernel has allocated), and, where ``keep`` is set, writes the
conditional of the site to ``cond``: log-odds on two-state kinds, otherwise probabilities.
The library does everything else: scans, chains, recording, checkpoints and proofs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32, Positions, Words64
from gibbsite._common.wording import part
from gibbsite._numba.jit import Integer, generic, implement
from gibbsite._numba.random.generators import Words
from gibbsite.errors import IncompatibleError, TooLargeError
from gibbsite.graphs.graph import KINDS, Graph, count_bytes
from gibbsite.graphs.support.reach import leads_to
from gibbsite.kernels.protocols import Blocked, Connecting, Costly
from gibbsite.kernels.registry import default_kernel

if TYPE_CHECKING:
    from gibbsite.scans.base import Scan


class Nothing(NamedTuple):
    """The parameters or the memory of a kernel that has none."""

    unused: int = 0


class Buffer(NamedTuple):
    """Kernel memory that is only a scratch array, one entry per state of a site."""

    work: Floats


class KernelWarning(NamedTuple):
    """A warning about the results of a kernel that is known before the run.

    ``grave`` is True if a number of the result, or one that users would compute from it, is biased even in long runs.
    """

    text: str
    grave: bool = False


@dataclass(frozen=True)
class Kernel(ABC):
    """A Markov kernel: its parameters and declarations. Its compiled :func:`step` updates one site.

    Kernels that need more than this class declares implement protocols of :mod:`gibbsite.kernels.protocols`.

    Attributes
    ----------
    kinds : frozenset of str
        Graph kinds the kernel runs on.
    exact : bool
        The target distribution is stationary.
    conditional : bool
        The step writes conditional probabilities, so marginals can be Rao-Blackwellised.
    estimates : bool
        Draws estimate probabilities. Draws of a kernel that searches for the best state do not: its runs
        keep that state and refuse to record probabilities or draws.
    joint : bool
        A step moves all sites together and ignores the site that it is given: a sweep is one step.
    reads_all : bool
        A sweep reads every factor, so the log-potential of a state costs no more than a sweep.
    reversible : bool
        Each single-site step satisfies detailed balance.
    error_source : str
        What standard errors are estimated from. "draws": the draws of a chain are random, and their
        autocorrelation can be estimated. "chains": the draws of a chain are spread more evenly than random ones, so
        only the spread of the means of independent chains shows the error. "none": chains are not independent, or
        share an error that their spread does not show.
    """

    kinds: ClassVar[frozenset[str]] = frozenset(KINDS)
    exact: ClassVar[bool] = True
    conditional: ClassVar[bool] = True
    estimates: ClassVar[bool] = True
    joint: ClassVar[bool] = False
    reads_all: ClassVar[bool] = True
    reversible: ClassVar[bool] = True
    error_source: ClassVar[str] = "draws"

    def check(self, graph: Graph) -> None:
        """Refuse a graph this kernel cannot run on."""
        if graph.kind not in self.kinds:
            name = type(self).__name__
            raise IncompatibleError(
                f"{part(name, name)} cannot run on a {graph.kind} graph; it accepts "
                f"{', '.join(sorted(self.kinds))}. Use {part(type(default_kernel(graph)).__name__)}."
            )

    def accepts(self, graph: Graph) -> bool:
        """Whether :meth:`check` accepts a graph."""
        try:
            self.check(graph)
        except (IncompatibleError, TooLargeError):
            return False
        return True

    @abstractmethod
    def parameters(self, graph: Graph) -> NamedTuple:
        """Return the parameters for compiled code; refuse invalid ones."""

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate the memory of one chain besides its state; the default is a scratch array.

        Checkpoints contain it, unless the named tuple has a property ``rebuildable`` that is true: such a memory has
        no influence on the numbers, and a resumed chain begins with a new one.
        """
        return Buffer(np.zeros(int(graph.cards.max(initial=1))))

    def memory_bytes(self, graph: Graph) -> int:
        """Return the number of bytes that :meth:`memory` allocates; override this where allocation is slow."""
        return count_bytes(self.memory(graph, np.ones(4, np.uint64)), own=True)

    def warnings(self, model: Any, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return warnings about properties of the result that its numbers do not show."""
        return ()

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return the figures that chains have collected in their memories, by name, for ``Result.report``."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans and reports."""
        return {"name": type(self).__name__, **vars(self)}


def is_quick(kernel: Kernel, graph: Graph) -> bool:
    """Whether a kernel is set up quickly on a graph."""
    return kernel.quick(graph) if isinstance(kernel, Costly) else True


def units_of(kernel: Kernel, graph: Graph) -> int | None:
    """Return the number of units that a sweep visits if they are not single sites: the blocks, or 1 for all sites."""
    return kernel.units(graph) if isinstance(kernel, Blocked) else 1 if kernel.joint else None


def sites_of(kernel: Kernel, graph: Graph, unit: int) -> Positions:
    """Return the sites that a visit of a unit may change."""
    if isinstance(kernel, Blocked):
        return kernel.sites_of(graph, unit)
    return np.arange(graph.n_sites) if kernel.joint else np.array([unit])


def connects(kernel: Kernel, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
    """Whether a search finds moves of a kernel that lead from one state to another; False proves nothing."""
    if isinstance(kernel, Connecting):
        return kernel.connects(graph, here, there, rng)
    return leads_to(graph, here, there, rng)


@generic
def step(
    parameters: Any, arrays: Any, memory: Any, x: Array, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    """Move site i once; return the advanced generator."""
    raise NotImplementedError


#: Largest number of threads that share the work of one chain.
MOST_MEMBERS = 16


class Team(NamedTuple):
    """A thread in a team that shares the work of one chain: its index, the size of the team, and a barrier."""

    member: int
    size: int
    gate: Ints


def alone() -> Team:
    """Return the team of a chain that runs on one thread."""
    return Team(0, 1, np.zeros(1, np.int64))


class Span(NamedTuple):
    """Positions ``where`` to ``stop`` of period number ``turn`` of a schedule, visited by a member of a team."""

    order: Ints32  # the current order of a random schedule
    where: Integer
    stop: Integer
    turn: Integer
    team: Team


@generic
def visit(
    parameters: Any, arrays: Any, schedule: Any, memory: Any, x: Array, span: Span, rng: Words, cond: Any, keep: bool
) -> Words:
    """Visit the positions of a span of a schedule; return the advanced generator.

    Sites move one by one unless a batched update for kernel and graph is registered
    (:mod:`gibbsite.kernels.batched`).
    """
    raise NotImplementedError


@generic
def sums_up(arrays: Any) -> bool:
    """Whether an update adds conditionals to the recorded sums itself, instead of leaving them in ``cond``."""
    raise NotImplementedError


@implement(sums_up)
def _leaves_them(arrays: Any) -> bool:
    return False


@generic
def transition(parameters: Any, arrays: Any, memory: Any, x: Array, i: Integer, row: Floats) -> Integer:
    """Fill ``row`` with the probabilities of the next value of unit i; return the number of states.

    A unit is a site or a block (:func:`.protocols.sites_of`): the values of a block are numbered with its last site
    fastest. Optional: kernels that supply it are proved by exact transition matrices.
    """
    raise NotImplementedError
