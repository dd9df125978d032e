"""``gibbsite.dogs``, which optimises a scan for a target and stores it with its guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from gibbsite._common.archive import Archive, write_archive
from gibbsite._common.arguments import checked, describe, is_number
from gibbsite._common.arrays import Array, Floats, Ints32
from gibbsite._common.boundary import Wanted, between, check_header
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.influence.blocks import BlockOrder, collapse, descend_blocks
from gibbsite.inference.influence.bound import read_question, read_target
from gibbsite.inference.influence.certificate import Certificate, certify, needs_states, read_scan
from gibbsite.inference.influence.descent import Descent, descend, descend_drawn, make_workspace
from gibbsite.inference.influence.matrix import Influence
from gibbsite.scans.base import Ordered, Scan
from gibbsite.scans.systematic import FixedOrder, Sites

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import Model


@dataclass(frozen=True, eq=False, repr=False)
class DogsScan(FixedOrder):
    """A scan chosen by DoGS, with its guarantee.

    It is a :class:`FixedOrder`. The guarantee is about a chain after one pass through the sequence, from any start;
    further passes do not make it worse.

    Attributes
    ----------
    order : array of int
        The sites, step by step.
    variation, input_variation : float
        Bound on the bias after one pass, and the bound of the initial scan of equal length.
    n_sites : int
        Number of sites of the model.
    targets, target_weights : arrays
        The sites to which the bound applies, and their weights.
    model : str
        Digest of the model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((5, 5), coupling=0.2)
    >>> scan = gs.dogs(model, target="12", accuracy=0.05)
    >>> scan.variation <= 0.05, int(scan.order[-1])
    (True, 12)
    >>> warmer = gs.ising_grid((5, 5), coupling=0.1)
    >>> scan.certify(warmer).variation < scan.variation
    True
    """

    variation: float
    input_variation: float
    n_sites: int
    targets: Ints32
    target_weights: Floats
    model: str

    def schedule(self, graph: Graph, model: Model | None = None) -> Ordered:
        """Return the visits; the model must have the same number of sites as the original one."""
        if graph.n_sites != self.n_sites:
            raise ArgumentError(f"This scan is for {self.n_sites} sites, but the model has {graph.n_sites}.")
        return super().schedule(graph, model)

    @checked
    def certify(self, model: Model, influence: Any = None, distance: Any = None) -> Certificate:
        """Return the guarantee for another model of the same structure, from other bounds, or for other starts."""
        if model.n_sites != self.n_sites:
            raise ArgumentError(f"This scan is for {self.n_sites} sites, but the model has {model.n_sites}.")
        about: dict[str, Any] = {"target": self.targets.tolist(), "weights": self.target_weights}
        return certify(model, scan=self, influence=influence, distance=distance, **about)

    @checked
    def save(self, path: str | Path) -> None:
        """Save the scan to an ``.npz`` file, which :func:`gibbsite.load` reads.

        Examples
        --------
        >>> import gibbsite as gs, tempfile
        >>> scan = gs.dogs(gs.ising_grid((3, 3), coupling=0.1), target=0, steps=5)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scan.save(f"{folder}/scan.npz")
        ...     again = gs.load(f"{folder}/scan.npz")
        >>> again.order.tolist() == scan.order.tolist()
        True
        """
        write_archive(Path(path), *self._pack())

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        about = {"kind": "gibbsite scan", "format": 2, "n_sites": int(self.n_sites), "model": self.model}
        names = ("order", "targets", "target_weights", "variation", "input_variation")
        return about, {name: np.asarray(getattr(self, name)) for name in names}

    def __repr__(self) -> str:
        bound = f"bias at most {self.variation:.4g}" if np.isfinite(self.variation) else "no bound"
        return (
            f"DogsScan({len(self.order)} steps on {np.unique(self.order).size} of {self.n_sites} sites, "
            f"{bound} for {self.targets.size} targets)"
        )

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        visits = np.bincount(self.order, minlength=self.n_sites)
        rows = [
            ("steps", f"{len(self.order):,}"),
            ("sites visited", f"{np.count_nonzero(visits):,} of {self.n_sites:,}"),
            ("most visits of a site", f"{visits.max(initial=0):,}"),
            ("targets", f"{self.targets.size:,}"),
            ("bias at most", _bound_text(self.variation)),
            ("bias of the initial scan at most", _bound_text(self.input_variation)),
        ]
        return card("DogsScan", table=grid(("", ""), rows))


def read_stored(about: dict[str, Any], archive: Archive) -> DogsScan:
    """Return the scan that a header and its arrays describe."""
    check_header(about, {"n_sites": between(1, 2**31 - 1), "model": str}, archive.fail)
    n, number = about["n_sites"], Wanted(np.float64, (), 0, finite=False)
    sites = Wanted((np.int32, np.int64), ("steps",), 0, n - 1)
    arrays = archive.admit(
        {
            "order": sites,
            "variation": number,
            "input_variation": number,
            "targets": replace(sites, shape=("targets",)),
            "target_weights": Wanted(np.float64, ("targets",)),
        }
    )
    if not arrays["order"].size:
        raise archive.fail("it has no steps")
    return DogsScan(
        order=arrays["order"].astype(np.int32),
        variation=float(arrays["variation"]),
        input_variation=float(arrays["input_variation"]),
        n_sites=n,
        targets=arrays["targets"].astype(np.int32),
        target_weights=arrays["target_weights"],
        model=about["model"],
    )


SEARCHES = ("bisection", "doubling", "none")
_LONGEST = 2**24  # steps of a search without a limit
_MOST_STEPS = 2**31 - 1


def _bound_text(bound: float) -> str:
    return f"{bound:.4g}" if np.isfinite(bound) else "not known"


class Improved(NamedTuple):
    """A scan, its variation, and the variation of the initial scan."""

    order: Ints32
    variation: float
    before: float


@overload
def dogs(  # type: ignore[overload-overlap]  # the result is an order of blocks only if the initial scan is one
    model: Model,
    *,
    target: Any = ...,
    weights: Any = ...,
    accuracy: float | None = ...,
    steps: int | None = ...,
    initial: BlockOrder,
    iterations: int = ...,
    search: str = ...,
    influence: Any = ...,
    distance: Any = ...,
) -> BlockOrder: ...


@overload
def dogs(
    model: Model,
    *,
    target: Any = ...,
    weights: Any = ...,
    accuracy: float | None = ...,
    steps: int | None = ...,
    initial: Scan | Sites | None = ...,
    iterations: int = ...,
    search: str = ...,
    influence: Any = ...,
    distance: Any = ...,
) -> DogsScan: ...


@checked
def dogs(
    model: Model,
    *,
    target: Any = None,
    weights: Any = None,
    accuracy: float | None = None,
    steps: int | None = None,
    initial: Scan | Sites | None = None,
    iterations: int = 1,
    search: str = "bisection",
    influence: Any = None,
    distance: Any = None,
) -> DogsScan | BlockOrder:
    """Optimise a scan for a target: Dobrushin-optimised Gibbs sampling.

    Parameters
    ----------
    model : FactorGraph, Gaussian, or another model of numbers
        As for :func:`certify`.
    target : site or sequence of sites, optional
        The sites of interest; all sites by default.
    weights : mapping or sequence of float, optional
        Weights of sites instead of 1.
    accuracy : float, optional
        The largest bias allowed; the shortest scan found that guarantees it is returned.
    steps : int, optional
        Length of the scan; with ``accuracy`` the longest allowed. Two sweeps by default, with ``accuracy`` a hundred.
    initial : Scan, sequence of sites or BlockOrder, optional
        The scan to improve, as many steps of it as needed; ``Systematic()`` by default. A ``RandomScan`` is turned into
        a fixed one, at the cost of a pass over the whole model per step. Steps of a ``BlockOrder`` are blocks, and so
        are those of the result.
    iterations : int
        Largest number of times that the result is improved again.
    search : {"bisection", "doubling", "none"}
        How to find the length when an accuracy is given: "bisection" doubles until it is reached and then halves the
        interval, "doubling" only doubles, "none" takes ``steps`` and stops improving once the accuracy is reached.
    influence : Influence, array or sparse matrix, optional
        Bounds on influence; computed from the model by default.
    distance : float or array (sites,), optional
        For numbers: the expected distance of starts, as for :func:`certify`.

    Returns
    -------
    DogsScan, or BlockOrder if the initial one is
        Never worse than the initial scan of that length.

    Raises
    ------
    ModelError
        If no scan of the allowed length reaches the accuracy; the message has the best reached.

    See Also
    --------
    certify : Bound the bias of a scan.
    influence.bound_influence : The matrix that both use.

    Notes
    -----
    Coordinate descent on the Dobrushin variation, one pass from the last step to the first (Mitliagkas and Mackey 2017,
    algorithm 2, corrected), O(degree log sites) per step. The guarantee is about the heat bath.

    References
    ----------
    Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((100, 100), coupling=0.15)
    >>> scan = gs.dogs(model, target="5050", accuracy=0.01)
    >>> len(scan.order) < 200, scan.variation <= 0.01
    (True, True)
    >>> result = gs.sample(model, scan=scan, sweeps=gs.Steps(10_000), rng=1, progress=False)
    """
    weight = read_target(model, target, weights)
    given_steps = _whole("steps", steps)
    passes = _whole("iterations", iterations) or 1
    if not isinstance(search, str):
        raise ArgumentError(f"{argument('search')} must be one of {', '.join(SEARCHES)}, got {describe(search)}.")
    if search not in SEARCHES:
        raise ArgumentError(unknown("search", search, SEARCHES))
    if accuracy is not None and not (is_number(accuracy) and accuracy > 0):
        raise ArgumentError(f"{argument('accuracy')} must be a positive number, got {describe(accuracy)}.")
    asked = read_question(model, target, weights, influence, distance)
    n = model.n_sites
    goal = float(accuracy) if accuracy is not None and search == "none" else -np.inf
    scan = read_scan(initial)
    improve = _improver(model, scan, asked.influence, asked.weights, passes, goal)
    if accuracy is None or search == "none":
        longest = given_steps if given_steps is not None else max(2 * n, 1)
        found = improve(longest)
    else:
        longest = given_steps if given_steps is not None else min(max(100 * n, 10_000), _LONGEST)
        found = _shortest(improve, float(accuracy), longest, search == "bisection")
    if accuracy is not None and not found.variation <= accuracy:
        best = "no scan lowers the bound below its value before any step"
        if found.variation < float(asked.weights.sum()):
            best = f"the best reached is {found.variation:.4g} with {len(found.order)} steps"
        raise ModelError(
            f"No scan of at most {longest} steps was found with a bound of {float(accuracy):g}; {best}. "
            f"Allow more steps or less accuracy. {asked.given.statement}"
        )
    if isinstance(scan, BlockOrder):
        return BlockOrder(scan.blocks, found.order, found.variation, found.before)
    targets = np.flatnonzero(weight).astype(np.int32)
    return DogsScan(
        order=found.order,
        variation=found.variation,
        input_variation=found.before,
        n_sites=n,
        targets=targets,
        target_weights=weight[targets],
        model=model.digest,
    )


def _whole(name: str, given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < 1:
        raise ArgumentError(f"{argument(name)} must be a whole number of at least 1, got {describe(given)}.")
    if given > _MOST_STEPS:
        raise ArgumentError(f"{argument(name)} must be at most {_MOST_STEPS:,}, got {describe(given)}.")
    return int(given)


def _improver(
    model: Model, scan: Scan, influence: Influence, weights: Floats, iterations: int, goal: float
) -> Callable[[int], Improved]:
    """Return the function that improves the first steps of a scan."""
    if isinstance(scan, BlockOrder):
        blocks, given = scan.read(needs_states(model))
        rows = collapse(influence, blocks)
        return lambda steps: _repeat(
            lambda order: descend_blocks(rows, influence, weights, order, goal), np.resize(given, steps), iterations
        )
    graph = compile_graph(model)
    workspace = make_workspace(influence, weights)

    def better(order: Ints32) -> tuple[Ints32, Descent]:
        return descend(influence, workspace, order, goal)

    if scan.independent:
        chances = scan.chances(graph, model)

        def from_drawn(steps: int) -> Improved:
            order, gain = descend_drawn(influence, weights, chances, steps)
            return _repeat(better, order, iterations - 1, Improved(order, gain.after, gain.before))

        return from_drawn
    if scan.random:
        raise IncompatibleError(f"{type(scan).__name__} cannot be the initial scan; give a fixed one or RandomScan.")
    period = scan.visits(graph, model)
    return lambda steps: _repeat(better, np.resize(period, steps), iterations)


def _repeat(
    better: Callable[[Ints32], tuple[Ints32, Descent]], order: Ints32, passes: int, best: Improved | None = None
) -> Improved:
    """Improve a scan until nothing is gained; never return a worse one, despite rounding."""
    for _ in range(passes):
        new, gain = better(order)
        if best is None:
            best = Improved(order, gain.before, gain.before)
        if not gain.after < best.variation:
            break
        order, best = new, Improved(new, gain.after, best.before)
    assert best is not None
    return best


def _shortest(improve: Callable[[int], Improved], accuracy: float, longest: int, bisect: bool) -> Improved:
    """Double the length until the accuracy is reached, then bisect; return the best if it never is."""
    length, too_short = min(2, longest), 0
    best = found = improve(length)
    while accuracy < found.variation < np.inf and length < longest:  # infinite for longer ones, too
        too_short, length = length, min(2 * length, longest)
        found = improve(length)
        if found.variation < best.variation:
            best = found
    if not found.variation <= accuracy:
        return best
    while bisect and length - too_short > 1:
        middle = (too_short + length) // 2
        tried = improve(middle)
        if tried.variation <= accuracy:
            found, length = tried, middle
        else:
            too_short = middle
    return found
