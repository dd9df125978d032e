"""``gibbsite.certify``, which bounds the bias of a scan before any sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked, describe, is_number
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.influence.blocks import BlockDecay, BlockOrder, collapse
from gibbsite.inference.influence.bound import read_question
from gibbsite.inference.influence.matrix import Influence
from gibbsite.inference.influence.numbers import has_numbers
from gibbsite.inference.influence.variation import DrawnDecay, OrderDecay, SiteDecay, SweepDecay
from gibbsite.scans.base import Scan
from gibbsite.scans.systematic import FixedOrder, Systematic

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model

_POINTS = 200  # of a curve
_LONGEST = 10**18  # steps are counted in 64 bits
_MOST_STEPS, _MOST_SWEEPS = 2 * 10**8, 10**5  # of a search without a limit


@dataclass(frozen=True, eq=False)
class Certificate:
    """An upper bound on the bias of a Gibbs sampler after a number of steps, from any start.

    For every function f that changes by at most ``weights[i]`` when site i changes, ``abs(E f(after the steps) - E
    f(model)) <= variation``. With weight 1 on some sites and 0 elsewhere, that covers all probabilities of events
    about these sites: the variation bounds their total variation.

    Attributes
    ----------
    variation : float
        The bound.
    steps : int
        The number of steps.
    per_sweep : int
        Steps of a sweep.
    scan : str
        Name of the scan.
    weights : array (sites,)
        Weights of the sites in the bound.
    accuracy : float or None
        The accuracy asked for.
    reached, stalled : bool
        Whether the accuracy was reached (True if none was asked for), and whether the bound had stopped falling.
    curve_steps, curve : arrays
        Numbers of steps, and the bound after each.
    influence : Influence
        The bounds on influence that were used.
    numbers : bool
        Whether the sites are numbers. The bound is then on the Wasserstein distance, for starts at the given distance,
        and ``weights`` are multiplied by it.
    """

    variation: float
    steps: int
    per_sweep: int
    scan: str
    weights: Floats
    accuracy: float | None
    reached: bool
    stalled: bool
    curve_steps: Ints
    curve: Floats
    influence: Influence
    numbers: bool = False

    @property
    def sweeps(self) -> float:
        """The number of steps in sweeps."""
        return self.steps / max(self.per_sweep, 1)

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no smaller than without any step."""
        return not self.variation < float(self.weights.sum())

    @property
    def statement(self) -> str:
        """The certificate as text."""
        targets = int(np.count_nonzero(self.weights))
        about = "all sites" if targets == self.weights.size else f"{targets} site{'s' * (targets != 1)}"
        when = f"after {self.steps} steps ({self.sweeps:.4g} sweeps) of {self.scan}"
        if self.vacuous:
            size = f": {self.variation:.4g} for {about}" if np.isfinite(self.variation) else ""
            return f"The bound is vacuous {when}{size}. {self.influence.statement}"
        text = f"The bias {when} is at most {self.variation:.4g} for {about}, from any start."
        if self.numbers:
            text = (
                f"The Wasserstein distance {when} is at most {self.variation:.4g} for {about}, from starts at a "
                f"distance of {float(self.weights.sum()):.4g}."
            )
        if not self.reached:
            why = "it does not fall any further" if self.stalled else "more steps were not allowed"
            text += f" {self.accuracy:g} was not reached: {why}."
        if self.variation >= 1.0 and targets > 1 and not self.numbers:
            text += " It is 1 or more, so it bounds sums over sites, but not single events."
        if self.influence.total >= 1.0:
            text += f" {self.influence.statement}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "variation": _number(self.variation),
            "steps": self.steps,
            "sweeps": self.sweeps,
            "scan": self.scan,
            "targets": int(np.count_nonzero(self.weights)),
            "accuracy": self.accuracy,
            "reached": self.reached,
            "vacuous": self.vacuous,
            "norms": {name: _number(norm) for name, norm in self.influence.norms._asdict().items()},
            "total_influence_below_one": self.influence.total < 1.0,
            "curve": [[int(t), _number(v)] for t, v in zip(self.curve_steps, self.curve.tolist(), strict=True)],
            "statement": self.statement,
        }

    def __repr__(self) -> str:
        return f"Certificate({self.statement})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card

        return card("Certificate", [self.statement], good=self.reached and not self.vacuous)


def _number(value: float) -> float | None:
    """Return None for infinity, which JSON lacks."""
    return float(value) if np.isfinite(value) else None


@checked
def certify(
    model: Model,
    *,
    scan: Any = None,
    steps: int | None = None,
    sweeps: int | None = None,
    target: Any = None,
    weights: Any = None,
    accuracy: float | None = None,
    influence: Any = None,
    distance: Any = None,
) -> Certificate:
    """Bound the bias of a Gibbs sampler before it runs.

    Parameters
    ----------
    model : FactorGraph, Gaussian, or another model of numbers
        Evidence is folded in. Models of numbers other than normal ones need ``influence``.
    scan : Scan, sequence of sites or BlockOrder, optional
        The order of visits; ``Systematic()`` by default. Steps of a ``BlockOrder`` are blocks.
    steps, sweeps : int, optional
        Length of the run; by default once through a given sequence. With ``accuracy``, the longest allowed.
    target : site or sequence of sites, optional
        Bound the total variation of these sites alone; all sites by default.
    weights : mapping or sequence of float, optional
        Weights of sites instead of 1 (weighted total variation).
    accuracy : float, optional
        Find the smallest number of steps whose bound is at most this.
    influence : Influence, array or sparse matrix, optional
        Bounds on influence; computed from the model by default.
    distance : float or array (sites,), optional
        For numbers: a bound on the expected distance of the start of each site from a draw of the model; by default
        that of the mean of a normal distribution. See :func:`gibbsite.influence.start_distance`.

    Returns
    -------
    Certificate

    See Also
    --------
    dogs : Optimise a scan for variables of interest.
    couple : Bounds from pairs of chains that meet.

    Notes
    -----
    The bound is the Dobrushin variation (Mitliagkas and Mackey 2017, theorem 8). It holds for the heat bath,
    ``gs.Gibbs()`` with its default rule, started from any state. Shuffled scans are bounded for all orders at once, by
    whole sweeps.

    For numbers the bound is on the Wasserstein distance: with weights d, on the difference of the expectations of all
    functions f with ``abs(f(x) - f(y)) <= sum(d * abs(x - y))``. It holds for exact draws of single sites from their
    conditional distributions, such as those of ``gs.kernels.GaussianGibbs()``.

    References
    ----------
    Mitliagkas and Mackey (2017), Improving Gibbs sampler scan quality with DoGS.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((10, 10), coupling=0.1)
    >>> gs.certify(model, target="0", accuracy=0.01).steps
    201
    >>> gs.certify(model, scan=gs.RandomScan(), target="0", accuracy=0.01).steps
    610
    """
    asked, chosen = read_question(model, target, weights, influence, distance), read_scan(scan)
    weight, bounds, numbers = asked.weights, asked.given, has_numbers(model)
    decay = make_decay(model, chosen, weight, asked.influence)
    per_sweep = decay.order.size if isinstance(decay, BlockDecay) else model.n_sites
    limit = read_length(chosen, per_sweep, steps, sweeps, accuracy)
    name = type(chosen).__name__
    if accuracy is not None:
        if not (is_number(accuracy) and 0.0 < accuracy < np.inf):
            raise ArgumentError(f"{argument('accuracy')} must be a positive number, got {describe(accuracy)}.")
        found = decay.search(float(accuracy), limit)
        times, values = _thinned(*found.curve)
        ends = (float(accuracy), found.reached, found.stalled)
        return Certificate(found.value, found.steps, per_sweep, name, weight, *ends, times, values, bounds, numbers)
    # a sum over a million weights takes as long as many steps, so large models get one point per sweep
    fine = 20 if model.n_sites <= 10_000 else 1
    points = int(min(limit, _POINTS, max(20, fine * limit / max(per_sweep, 1))))
    times = np.unique(np.linspace(0, limit, points + 1).round().astype(np.int64))
    values = decay.values(times)
    return Certificate(
        float(values[-1]), limit, per_sweep, name, weight, None, True, False, times, values, bounds, numbers
    )


def _thinned(steps: Ints, values: Floats) -> tuple[Ints, Floats]:
    if steps.size <= _POINTS:
        return steps, values
    keep = np.unique(np.linspace(0, steps.size - 1, _POINTS).round().astype(np.int64))
    return steps[keep], values[keep]


def read_scan(scan: Any) -> Scan:
    """Return a scan from an argument: a scan, a list of sites, or None for the systematic one."""
    if scan is None:
        return Systematic()
    if isinstance(scan, Scan):
        return scan
    if isinstance(scan, str):
        raise ArgumentError(
            f"{argument('scan')} must be a scan such as gs.Systematic(), or a list of sites, got {scan!r}."
        )
    return FixedOrder(scan)


def read_length(scan: Scan, per_sweep: int, steps: int | None, sweeps: int | None, accuracy: float | None) -> int:
    """Return the number of steps asked for; with an accuracy, the largest number allowed."""
    for name, given in (("steps", steps), ("sweeps", sweeps)):
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if given is not None and not (whole and given >= 0):
            raise ArgumentError(f"{argument(name)} must be a whole number of at least 0, got {describe(given)}.")
        if given is not None and given * (per_sweep if name == "sweeps" else 1) > _LONGEST:
            raise ArgumentError(f"{argument(name)} must make at most {_LONGEST:,} steps, got {describe(given)}.")
    if steps is not None and sweeps is not None:
        raise ArgumentError("Give steps or sweeps, not both.")
    if steps is not None:
        return int(steps)
    if sweeps is not None:
        return int(sweeps) * per_sweep
    if accuracy is not None:
        return max(per_sweep, min(_MOST_SWEEPS * per_sweep, _MOST_STEPS))
    if isinstance(scan, FixedOrder | BlockOrder) and scan.order is not None:
        return len(scan.order)
    raise ArgumentError("Give a length: steps=, sweeps=, or accuracy= for the number of steps that suffice.")


def make_decay(model: Model, scan: Scan, weights: Floats, influence: Influence) -> SiteDecay:
    """Return the variation of a scan as a function of the number of steps."""
    if isinstance(scan, BlockOrder):
        blocks, order = scan.read(needs_states(model))
        return BlockDecay(collapse(influence, blocks), influence, weights, order)
    graph = compile_graph(model)
    if scan.independent:
        return DrawnDecay(influence, weights, scan.chances(graph, model))
    if not scan.random:
        return OrderDecay(influence, weights, scan.visits(graph, model))
    if scan.once:
        if has_numbers(model) and influence.norms.row_sum > 1.0:
            raise IncompatibleError(
                "No bound is known for shuffled sweeps from these distances, in whose units the total influence on a "
                f"site is {influence.norms.row_sum:.3g}; take a fixed order, or distances in which it is at most 1."
            )
        return SweepDecay(influence, weights)
    raise IncompatibleError(f"No bound is known for the scan {type(scan).__name__}; give a list of sites.")


def needs_states(model: Model, what: str = "bounds of blocks") -> FactorGraph:
    """Return a discrete model, and refuse others for what is known of discrete models alone."""
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise IncompatibleError(
            f"There are {what} only for models whose sites have states (gs.FactorGraph), got {type(model).__name__}."
        )
    return model
