"""Mean field: the product distribution that maximises a lower bound of the log-partition function.

For a product distribution q, E_q[log-potential] + entropy(q) is at most log Z (Gibbs, Bogoliubov, Feynman), and the
difference is the Kullback-Leibler divergence from q to the model. Given all other sites the bound is largest at q_i
proportional to exp(E_q[log-potential | x_i]). For spins this is the iteration of magnetisations mu <- tanh(J sum mu +
h), damped as (1 - D) mu + D tanh(...) [1]_.

In place, every step increases a function that is concave in q_i, so the bound never falls, damped or not. In parallel
it may fall, and the iteration may oscillate; damping helps.

References
----------
.. [1] Murphy, K. P. (2012). Machine Learning: A Probabilistic Perspective, section 21.3. MIT Press.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer, check_iteration, check_seconds, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import announcing, interpreted
from gibbsite.errors import ArgumentError, ConvergenceWarning
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.graphs.support.possible import alive_states
from gibbsite.graphs.support.start import find_start
from gibbsite.inference.mean_field._sweep import KINDS, ExpectationWorkspace, bound, make_workspace, sweep
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.compare import same_layout
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.table import SiteTable, observed_cells
from gibbsite.results.wording import in_words, verdict_word
from gibbsite.sampling.climb import climb
from gibbsite.sampling.plan import as_data, package_version, read_entropy
from gibbsite.sampling.progress import Progress, Status, catch_interrupt, choose_progress

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


class Approximation(Answer):
    """Marginals that were computed instead of sampled, and the verdict on them.

    Attributes
    ----------
    cells : float array
        One probability per state of each site; if ``binary``, one per site, that of state 1.
    """

    model: FactorGraph
    cells: Floats
    binary: bool
    exact: bool

    @cached_property
    def mcse(self) -> SiteTable | None:
        """Standard errors: NaN, because nothing was drawn."""
        nothing = np.full(self.cells.shape, np.nan)
        return None if self.marginals is None else self._site_table(nothing, self.binary, 0.0)

    def _diagnose(self, kind: str, reasons: list[str], figures: dict[str, Any], text: str) -> Diagnostics:
        """Return the verdict: settled, with an error that is not known, unless the answer is exact."""
        converged = False if reasons else True if self.exact else None
        return Diagnostics(kind, converged, tuple(reasons), figures, f"{verdict_word(converged)}: {text}")


@dataclass(frozen=True, eq=False, repr=False)
class MeanFieldResult(Approximation):
    """A product distribution close to a model: approximate marginals, and a lower bound of the log-partition function.

    The error of the marginals is not known. There are no standard errors, because nothing was drawn.

    Attributes
    ----------
    bounds : float array (sweeps,)
        Lower bound of the log-partition function after each sweep.
    changes : float array (sweeps,)
        Largest change of a probability in each sweep, before damping.
    tolerance : float
        Changes up to this size count as converged.

    Examples
    --------
    >>> import gibbsite as gs
    >>> gs.mean_field(gs.ising_grid((3, 3), coupling=0.1, field=0.2))
    MeanFieldResult(9 sites; approximate marginals, log_z >= 6.48108, settled in sweep 7)
    """

    model: FactorGraph
    cells: Floats
    binary: bool
    bounds: Floats
    changes: Floats
    tolerance: float
    plan: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    seconds: float = float("nan")
    task: str = "MAR"

    exact = False

    @cached_property
    def marginals(self) -> SiteTable:
        """Approximate probabilities of the states of all sites, observed ones included."""
        return self._site_table(self.cells, self.binary, 1.0)

    def joint(self, *sites: str | int) -> Floats:
        """Return the approximate joint probabilities of a set of sites: products of marginals.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.mean_field(gs.FactorGraph({"a": 2, "b": 2}, [("a", [1, 3])])).joint("a", "b").tolist()
        [[0.125, 0.125], [0.375, 0.375]]
        """
        table = np.ones(())
        for site in find_free(sites, self.model.domains, self.model.evidence):
            table = np.multiply.outer(table, np.array(list(self.marginals[site].values())))
        return add_observed(table, sites, self.model.evidence, self.model.evidence_labels)

    @property
    def log_z(self) -> float:
        """Lower bound of the natural logarithm of the partition function, evidence included.

        Minus infinity if the approximation gives a positive probability to something impossible.
        """
        return float(self.bounds[-1])

    @property
    def sweeps(self) -> int:
        """Sweeps made."""
        return int(self.bounds.size)

    @property
    def change(self) -> float:
        """Largest change of the last sweep, before damping."""
        return float(self.changes[-1])

    @property
    def settled(self) -> bool:
        """Whether the iteration has converged."""
        return self.change <= self.tolerance

    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """The lower bound, and no upper one."""
        return self.log_z, float("inf")

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """How far to trust the approximation."""
        reasons = []
        if not self.settled:
            reasons.append(
                f"probabilities still change by up to {self.change:.2g} in sweep {self.sweeps:,}, more than "
                f"{self.tolerance:g}; allow more iterations, use damping, or update in place."
            )
        if self.log_z == -np.inf:
            reasons.append(
                "the approximation gives a positive probability to something impossible, so there is no bound; use "
                "start='support'."
            )
        figures = {"change": self.change, "sweeps": self.sweeps, "tolerance": self.tolerance}
        text = (
            f"largest change {in_words(self.change, '.2g')} in sweep {self.sweeps:,}; marginals are approximate, "
            f"their error is not known; {self._bound('log Z')}"
        )
        return self._diagnose("lower bound" if self.task == "PR" else "approximation", reasons, figures, text)

    def _bound(self, name: str) -> str:
        return f"{name} >= {self.log_z:.6g}" if np.isfinite(self.log_z) else f"no bound of {name}"

    def __repr__(self) -> str:
        return (
            f"MeanFieldResult({self.model.n_sites:,} sites; approximate marginals, {self._bound('log_z')}, "
            f"{self.diagnostics.word} in sweep {self.sweeps:,})"
        )


# Small models run without the compiler. In plain Python a sweep takes about a microsecond per byte of the
# graph and _STEPS_PER_CELL more per cell; there are rarely more than _USUAL_SWEEPS sweeps.
_STEPS_PER_CELL, _USUAL_SWEEPS = 20, 300


@checked
def mean_field(
    model: FactorGraph,
    *,
    parallel: bool = False,
    damping: float = 1.0,
    start: Any = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
    seconds: float | None = None,
    rng: Any = None,
    progress: Any = None,
) -> MeanFieldResult:
    """Approximate a model by a distribution under which all sites are independent.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    parallel : bool
        Update all sites from the distributions of the last sweep (Jacobi), instead of one after the other from the
        latest ones.
    damping : float
        The step D in (0, 1]: q <- (1 - D) q + D new; 1 is undamped.
    start : optional
        "uniform"; "unary": one parallel step from uniform; "random": drawn uniformly from all product distributions;
        "support": all probability on one state, a local maximum of the model; or probabilities: an array (sites,
        states), for two-state sites also (sites,), or a result with marginals. None: uniform, followed by "support" if
        that iteration ends with positive probability of impossible states.
    max_iterations : int
        Largest number of sweeps.
    tolerance : float
        The iteration has converged when no probability would change by more.
    seconds : float, optional
        Time limit.
    rng : int, Generator or SeedSequence, optional
        Seed of random starts.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    MeanFieldResult
        ``marginals``, approximate; ``log_z``, a lower bound; ``bounds`` and ``changes`` of every sweep.

    Warns
    -----
    ConvergenceWarning
        If the iteration has not converged.

    See Also
    --------
    belief_propagation : Approximate marginals, often better ones.
    solve_exact : Exact marginals.

    Notes
    -----
    There can be many fixed points, and the start decides which one is reached; the one with the larger ``log_z`` is
    closer to the model. A symmetric model started at the uniform distribution stays there.

    States excluded by zeros of the model get probability zero. While all states of a site are excluded by possible
    states of its neighbours, those excluded with the least probability share the site.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((10, 10), coupling=0.1, field=0.3)
    >>> field = gs.mean_field(model)
    >>> exact = gs.solve_exact(model)
    >>> field.settled, 0 < exact.log_z - field.log_z < 2
    (True, True)
    >>> gs.compare(field, exact).max_abs < 0.02
    True
    """
    how = _read_settings(model, parallel, damping, max_iterations, tolerance, seconds)
    entropy = read_entropy(rng)
    draw = np.random.default_rng(entropy)
    show = choose_progress(progress)
    try:
        with announcing(show.say, "mean field"):
            graph = compile_graph(model, among=KINDS)
            steps = min(how.max_iterations, _USUAL_SWEEPS) * (graph.nbytes + _STEPS_PER_CELL * graph.n_cells)
            with interpreted(steps):
                arrays = _exclude_impossible(graph, model)
                for one in ("uniform", "support") if start is None else (start,):
                    law = start_law(model, graph, arrays, one, draw, make_workspace(graph))
                    plan = {**_describe(graph, how), "start": str(as_data(one)), "entropy": entropy}
                    result = _iterate(model, graph, arrays, law, how, plan, show)
                    if result.log_z > -math.inf or result.interrupted:
                        break
    finally:
        show.close()
    if result.reasons:
        reasons = " ".join(result.reasons)
        warn_user(f"Mean field has not converged: {reasons}", ConvergenceWarning)
    return result


class _Settings(NamedTuple):
    """The settings that determine the numbers, and the time limit."""

    parallel: bool
    damping: float
    max_iterations: int
    tolerance: float
    seconds: float


def _read_settings(
    model: Any, parallel: Any, damping: Any, max_iterations: Any, tolerance: Any, seconds: Any
) -> _Settings:
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise ArgumentError(f"mean_field needs a model, got {type(model).__name__}.")
    step, least = check_iteration(damping, tolerance)
    most = check_integer("max_iterations", max_iterations, 1)
    return _Settings(bool(parallel), step, most, least, check_seconds(seconds))


def _describe(graph: Graph, how: _Settings) -> dict[str, Any]:
    """Return all settings that determine the numbers, except for the start."""
    settings = {name: value for name, value in how._asdict().items() if name != "seconds"}
    return {"gibbsite": package_version(), "method": "mean-field", "model": graph.digest, **settings}


def _exclude_impossible(graph: Graph, model: FactorGraph) -> Any:
    """Return the arrays of a graph without the states that propagation of its zeros excludes."""
    if graph.binary:
        return graph.arrays
    arrays: Any = graph.arrays
    logs = np.where(alive_states(graph, model), arrays.log_unary, -np.inf)
    logs.setflags(write=False)  # read-only like all arrays of a graph, so that no further code is compiled
    return arrays._replace(log_unary=logs)


def _iterate(
    model: FactorGraph, graph: Graph, arrays: Any, law: Floats, how: _Settings, plan: dict[str, Any], show: Progress
) -> MeanFieldResult:
    """Sweep until the iteration has converged, the sweeps or the time are used up, or Ctrl-C is pressed."""
    workspace = make_workspace(graph)
    fresh = np.empty_like(law) if how.parallel else law
    bounds: list[float] = []
    changes: list[float] = []
    # compile or load both, so that this does not count as time of the iteration
    sweep(arrays, 0, law, fresh, how.damping, workspace)
    bound(arrays, law, workspace)
    begun = time.monotonic()
    with catch_interrupt(show.say) as interrupt:
        while True:
            changes.append(sweep(arrays, graph.n_sites, law, fresh, how.damping, workspace))
            law, fresh = fresh, law
            bounds.append(bound(arrays, law, workspace) + graph.log_offset)
            elapsed = time.monotonic() - begun
            show.show(Status("mean field", len(bounds), how.max_iterations, elapsed, how.seconds, 1))
            if changes[-1] <= how.tolerance or len(bounds) == how.max_iterations:
                break
            if interrupt.up or elapsed >= how.seconds:
                break
    return MeanFieldResult(
        model=model,
        cells=law,
        binary=graph.binary,
        bounds=np.array(bounds),
        changes=np.array(changes),
        tolerance=how.tolerance,
        plan=plan,
        interrupted=interrupt.up,
        seconds=time.monotonic() - begun,
    )


STARTS = ("uniform", "unary", "random", "support")


def start_law(
    model: FactorGraph, graph: Graph, arrays: Any, start: Any, rng: np.random.Generator, workspace: ExpectationWorkspace
) -> Floats:
    """Return the cells of the product distribution that ``start`` asks for (see :func:`gibbsite.mean_field`)."""
    possible = np.ones(int(graph.cards.sum(dtype=np.int64)))
    if not graph.binary:
        possible[np.isneginf(arrays.log_unary)] = 0.0
    if not isinstance(start, str):
        return _cells(graph, _read_given(model, start))
    if start == "uniform":
        return _cells(graph, possible)
    if start == "unary":
        uniform = _cells(graph, possible)
        law = np.empty_like(uniform)
        sweep(arrays, graph.n_sites, uniform, law, 1.0, workspace)
        return law
    if start == "random":
        return _cells(graph, possible * rng.exponential(size=possible.size))
    if start == "support":
        codes = climb(model, find_start(model, graph, rng))
        point = np.zeros(possible.size)
        point[np.cumsum(graph.cards) - graph.cards + codes] = 1.0
        return _cells(graph, point)
    raise ArgumentError(unknown("start", start, STARTS, ", or give probabilities"))


def _cells(graph: Graph, weights: Floats) -> Floats:
    """Normalise weights of all states, site after site, to the cells of a product distribution."""
    if not graph.n_sites:
        return np.zeros(0)
    first = np.cumsum(graph.cards) - graph.cards
    law: Floats = weights / np.repeat(np.add.reduceat(weights, first), graph.cards)
    return law[1::2].copy() if graph.binary else law


def _read_given(model: FactorGraph, start: Any) -> Floats:
    """Return given probabilities as weights of all states, site after site."""
    table = start if isinstance(start, SiteTable) else getattr(start, "marginals", None)
    if isinstance(table, SiteTable):
        seen = observed_cells(model.evidence, model.evidence_labels, 1.0)
        if not same_layout(table, SiteTable(model.domains, table.cells, observed=seen)):
            raise ArgumentError("start has other sites, states or evidence than the model; give marginals of it.")
        start = table.to_array()
    try:
        given: Floats = np.asarray(start, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{argument('start')} must hold probabilities, got {describe(start)}.") from None
    cards = np.asarray(model.cards)
    shape = (cards.size, int(cards.max(initial=1)))
    if given.shape == (cards.size,) and (cards == 2).all():
        given = np.stack([1.0 - given, given], axis=1)
    if given.shape != shape:
        also = f" or {(cards.size,)}" if (cards == 2).all() else ""
        raise ArgumentError(f"{argument('start')} must have the shape {shape}{also}, got {given.shape}.")
    used = np.arange(shape[1]) < cards[:, None]
    bad = np.flatnonzero((~np.isfinite(given) | (given < 0.0) | ((given > 0.0) & ~used)).any(axis=1))
    if bad.size:
        site, row = model.sites[int(bad[0])], given[int(bad[0])].tolist()
        raise ArgumentError(
            f"{argument('start')} must hold probabilities, zero beyond the last state, but site {site!r} has {row}."
        )
    empty = np.flatnonzero(given.sum(axis=1) <= 0.0)
    if empty.size:
        raise ArgumentError(f"start gives no probability to any state of site {model.sites[int(empty[0])]!r}.")
    return given[used]
