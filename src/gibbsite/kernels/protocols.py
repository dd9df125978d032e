"""Protocols of kernels that do more than move sites.

Most kernels have none of these methods. Callers test ``isinstance(kernel, Adaptive)``, or call a function of
:mod:`gibbsite.kernels.base` that also handles kernels without the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsite._common.arrays import Array, Floats, Positions
from gibbsite.graphs.graph import Graph

if TYPE_CHECKING:
    from gibbsite.kernels.base import Kernel
    from gibbsite.kernels.ensemble import Ensemble
    from gibbsite.models import Model


# ---- before a run


class RunOutline(NamedTuple):
    """The outline of a run, on which some kernels depend."""

    scan: str  # name of the scan
    period: int | None  # visits after which the scan repeats itself; None for random scans
    # sites, thin: visits of a sweep, and sweeps from one recorded draw to the next
    sites: int
    thin: int
    visits: int | None  # visits after the warmup; None: the kernel may choose


class Trial(NamedTuple):
    """The outcome of a pilot run: the memories of its chains, and the marginals of all cells."""

    memories: list[Any]
    marginals: Floats


class Pilot(Protocol):
    """Short runs before a run, which tune a kernel (:mod:`gibbsite.sampling.pilot`)."""

    @property
    def graph(self) -> Graph:
        """The model that will be sampled."""

    @property
    def late(self) -> bool:
        """Whether the time for pilot runs is used up, so that the next run should be the last."""

    def run(self, kernel: Kernel, share: float) -> Trial:
        """Run chains for a share of the time for pilot runs, from the last states of the run before."""


@runtime_checkable
class Tunable(Protocol):
    """A kernel with parameters that pilot runs choose and that do not change during the run."""

    @property
    def tunes(self) -> bool:
        """Whether a parameter is still to be chosen by :meth:`tune`."""

    def tune(self, pilot: Pilot) -> Kernel:
        """Return the kernel with all parameters chosen."""

    def tuned(self) -> dict[str, Array]:
        """Return the parameters that :meth:`tune` has chosen, for checkpoints."""

    def retuned(self, found: dict[str, Array]) -> Kernel:
        """Return the kernel with parameters that :meth:`tuned` returned."""


@runtime_checkable
class Finite(Protocol):
    """A kernel whose run is complete after a number of sweeps."""

    def natural_sweeps(self, n_sites: int) -> int | None:
        """Return the number of sweeps of a complete run, which is the default; None for any number."""


@runtime_checkable
class Resolvable(Protocol):
    """A kernel that depends on the length of the run or on the order of visits."""

    def resolve(self, outline: RunOutline) -> Kernel:
        """Return the kernel with all parameters decided; refuse a run that it cannot make."""


@runtime_checkable
class Costly(Protocol):
    """A kernel that may take minutes to set up on large models."""

    def quick(self, graph: Graph) -> bool:
        """Whether set-up is cheap; otherwise commands that compare or describe kernels omit it."""


@runtime_checkable
class Summarised(Protocol):
    """A kernel about which ``gibbsite info`` shows figures."""

    def summary(self, graph: Graph) -> dict[str, float]:
        """Return figures about the kernel on a model, by name."""


@runtime_checkable
class Selecting(Protocol):
    """A kernel with several variants to choose from."""

    def candidates(self, graph: Graph) -> tuple[Kernel, ...]:
        """Return the variants from which :func:`gibbsite.infer` chooses the best one after short runs."""


# ---- what a sweep visits


@runtime_checkable
class Blocked(Protocol):
    """A kernel whose sweeps visit blocks of sites."""

    def units(self, graph: Graph) -> int | None:
        """Return the number of blocks, or None if sites are visited."""

    def sites_of(self, graph: Graph, unit: int) -> Positions:
        """Return the sites that a visit of a unit may change."""


# ---- memory of a chain


@runtime_checkable
class Adaptive(Protocol):
    """A kernel that learns about its target during the warmup."""

    def freeze(self, memory: Any) -> None:
        """End adaptation; called before the first draw."""


@runtime_checkable
class Stateful(Protocol):
    """A kernel whose memory depends on the current state of the chain, such as running sums."""

    def forget(self, memory: Any) -> None:
        """Discard what the memory contains about the state; called when the state is set from outside."""


@runtime_checkable
class Fallible(Protocol):
    """A kernel whose steps can fail.

    If ``fallible`` is true, chains are then restored to their states before the failed block of steps.
    """

    fallible: Any

    def inspect(self, model: Model, graph: Graph, memory: Any) -> None:
        """Raise an error if the memory shows that a step failed; called after every block of steps."""


# ---- threads and processes


@runtime_checkable
class Shared(Protocol):
    """A kernel with an implementation of :func:`gibbsite.kernels.base.visit` that several threads share."""

    def members(self, graph: Graph) -> int:
        """Return how many threads can share a step."""


@runtime_checkable
class Shareable(Protocol):
    """A kernel whose steps at independent sites may run on several threads at once.

    Such steps use no random numbers, or keyed ones, and no memory that steps of other sites use.
    """

    def shareable(self, graph: Graph) -> bool:
        """Whether that holds on a graph."""


@runtime_checkable
class Replicated(Protocol):
    """A kernel whose chains consist of replicas that exchange states, and so cross between modes."""

    def ensemble(self, graph: Graph) -> Ensemble | None:
        """Return the distribution of a chain to several processes; None if they cannot share it."""

    def kept(self, memories: Sequence[Any]) -> dict[str, Array]:
        """Return the arrays that chains have recorded in their memories, by name, for ``Result.kept``."""

    def crossing_warnings(self, memories: Sequence[Any]) -> tuple[str, ...] | None:
        """Return reasons to doubt that chains cross between modes; None if they do not.

        Chains that cross without such a reason need no dispersed-start check.
        """


# ---- properties of the draws


@runtime_checkable
class Independent(Protocol):
    """A kernel that makes independent draws on some graphs."""

    def independent(self, graph: Graph) -> bool:
        """Whether a sweep ends in a draw from the model that does not depend on its start.

        Such a run cannot miss a mode: it needs no dispersed-start check, and few draws.
        """


@runtime_checkable
class Biased(Protocol):
    """A kernel that is not exact, but whose bias is known."""

    def bias(self, graph: Graph, place: Any, sds: Any, memories: Sequence[Any]) -> Any:
        """Return the bias (:class:`.density.bias.Bias`), given means and standard deviations of a run."""


@runtime_checkable
class Connecting(Protocol):
    """A kernel that changes many sites at once, so that single-site moves do not determine what it can reach."""

    def connects(self, graph: Graph, here: Any, there: Any, rng: np.random.Generator) -> bool:
        """Whether a search finds moves that lead from one state to another; False proves nothing."""
