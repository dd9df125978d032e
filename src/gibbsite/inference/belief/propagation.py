"""Belief propagation: update messages between factors and sites until they agree, and read off the answers.

A message summarises what a factor implies about one of its sites, given all its other sites. On a tree messages
converge after one sweep, and beliefs are exact marginals. With cycles they may converge to beliefs that are often good,
or not at all; the fixed points are those of Bethe's free energy [1]_. Fractional messages count each factor with a
power [2]_; with powers from forests the free energy is concave, its maximum is unique, and it is an upper bound of the
log-partition function [3]_. With maxima instead of sums, messages search for a most probable state.

References
----------
.. [1] Yedidia, J. S., Freeman, W. T. and Weiss, Y. (2005). Constructing free-energy approximations and generalized
   belief propagation algorithms. IEEE Transactions on Information Theory 51.
.. [2] Wiegerinck, W. and Heskes, T. (2003). Fractional belief propagation. NIPS 15.
.. [3] Wainwright, M. J., Jaakkola, T. S. and Willsky, A. S. (2005). A new class of upper bounds on the log partition
   function. IEEE Transactions on Information Theory 51.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_integer, check_iteration, check_seconds, checked, is_number
from gibbsite._common.arrays import Ints
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import announcing, interpreted
from gibbsite.errors import ArgumentError, ConvergenceWarning, SupportError
from gibbsite.graphs.graph import Graph, compile_graph
from gibbsite.inference.belief.lattice import OddsLattice, lay_out_lattice, summarise_lattice, sweep_lattice
from gibbsite.inference.belief.layout import MessageGraph, grow_forests, lay_out, raise_to, sealed
from gibbsite.inference.belief.messages import LEAST, LogMessages, Messages, PlainMessages, gather_beliefs, new_messages
from gibbsite.inference.belief.readout import LatticeBeliefs, TableBeliefs, read_off
from gibbsite.inference.belief.result import BeliefResult
from gibbsite.inference.belief.schedule import ALL, NOTED, SOME, Residuals, move, new_residuals, order_messages
from gibbsite.models.networks.expansion import expand, has_causes, tabulate
from gibbsite.sampling.plan import package_version
from gibbsite.sampling.progress import Progress, Status, catch_interrupt, choose_progress

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

KINDS = ("sum", "max", "tree-reweighted", "fractional")
SCHEDULES = ("residual", "sweep")
# Small models run without the compiler: steps of plain Python per entry of a table, and the usual number of sweeps.
_STEPS_PER_ENTRY, _USUAL_SWEEPS = 5.0, 30
_ROUNDING = 16  # passes after which beliefs are recomputed
_KEPT = 1e6  # layouts of models are cached if a sweep reads at most this number of entries
_CAREFUL = 0.1  # estimated changes must be below this share of the tolerance, because they may be too small
_AT_ONCE = 20_000  # updates between checks of the clock


@checked
def belief_propagation(
    model: FactorGraph,
    *,
    kind: str = "sum",
    schedule: str = "residual",
    damping: float = 1.0,
    weight: float | None = None,
    max_iterations: int = 1000,
    tolerance: float = 1e-8,
    seconds: float | None = None,
    progress: Any = None,
) -> BeliefResult:
    """Approximate marginals and the log-partition function by messages; exact where factors form a tree.

    Parameters
    ----------
    model : FactorGraph
        The model, with evidence folded in.
    kind : {"sum", "max", "tree-reweighted", "fractional"}
        "sum": sum-product; ``log_z`` is Bethe's. "max": max-product, for a probable state. "tree-reweighted": smoother
        beliefs, and a guaranteed upper bound of the log-partition function, converged or not. "fractional": every
        factor counts with the power ``weight``.
    schedule : {"residual", "sweep"}
        "sweep" updates all messages, from the leaves of a spanning tree to its root and back, repeatedly. "residual"
        does the same, but after the first sweep it skips messages that are expected to change little, until a final
        pass checks all of them.
    damping : float
        The step D in (0, 1]: message <- (1 - D) message + D new; 1 is undamped. Damping does not change the fixed
        points, but reaches some that are missed otherwise.
    weight : float, optional
        Power of all factors for "fractional", 0.5 by default; 1 is "sum".
    max_iterations : int
        Largest number of messages for each edge.
    tolerance : float
        Messages have converged when none would change by more; their maximum is one.
    seconds : float, optional
        Time limit.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    BeliefResult
        ``marginals``, approximate; ``log_z``; for "max" ``assignment`` and ``log_potential``; ``settled``,
        ``messages`` and ``residual``; ``exact`` where there is no cycle.

    Raises
    ------
    SupportError
        If the zeros of the model contradict each other.

    Warns
    -----
    ConvergenceWarning
        If the messages have not converged, or the decoded state is impossible.

    See Also
    --------
    mean_field : Approximate marginals and a lower bound of log Z.
    solve_exact : Exact marginals.

    Notes
    -----
    Factors over the same sites are multiplied first. Zeros of the model are propagated first, and states that they
    exclude have probability zero.

    References
    ----------
    Wainwright, Jaakkola and Willsky (2005), A new class of upper bounds on the log partition function.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((10, 10), coupling=0.1, field=0.3)
    >>> beliefs, exact = gs.belief_propagation(model), gs.solve_exact(model)
    >>> gs.compare(beliefs, exact).max_abs < 1e-3, abs(beliefs.log_z - exact.log_z) < 0.01
    (True, True)
    >>> gs.belief_propagation(model, kind="tree-reweighted").log_z > exact.log_z
    True
    >>> pair = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[1, 2], [4, 3]])])
    >>> gs.belief_propagation(pair, kind="max").assignment
    {'a': 1, 'b': 0}
    """
    how = _read_settings(model, kind, schedule, damping, weight, max_iterations, tolerance, seconds)
    show = choose_progress(progress)
    try:
        with announcing(show.say, "belief propagation"):
            given = model
            if has_causes(model):  # sums over hidden sites; the best state would be another one
                model = tabulate(model) if how.kind == "max" else expand(model)
            kept = model.cache.get(_LaidOut)
            if kept is None or (kept.kind == "lattice" and how.schedule == "sweep"):
                graph = compile_graph(model)
                odds = _as_odds(graph, how)
                if odds is not None:
                    result = _on_lattice(model, graph, odds, how, show)
                else:
                    result = _on_tables(model, _lay_out_once(model, graph), how, show)
            else:
                result = _on_tables(model, kept, how, show)
            if given is not model:
                result = replace(result, model=given, cells=result.cells[: int(given.cards.sum())])
    finally:
        show.close()
    if result.reasons:
        reasons = " ".join(result.reasons)
        warn_user(f"Belief propagation has not converged: {reasons}", ConvergenceWarning)
    return result


class _Settings(NamedTuple):
    """The settings that determine the numbers, and the time limit."""

    kind: str
    schedule: str
    damping: float
    weight: float
    max_iterations: int
    tolerance: float
    seconds: float


def _read_settings(
    model: Any, kind: Any, schedule: Any, damping: Any, weight: Any, max_iterations: Any, tolerance: Any, seconds: Any
) -> _Settings:
    from gibbsite.models import FactorGraph

    if not isinstance(model, FactorGraph):
        raise ArgumentError(
            f"belief_propagation needs a model of states (gs.FactorGraph, gs.ising and so on), got "
            f"{type(model).__name__}."
        )
    if kind not in KINDS:
        raise ArgumentError(unknown("kind", kind, KINDS))
    if schedule not in SCHEDULES:
        raise ArgumentError(unknown("schedule", schedule, SCHEDULES))
    if weight is not None and kind != "fractional":
        raise ArgumentError(f"{argument('weight')} is for {argument('kind', 'fractional')}; leave it out.")
    weight = (0.5 if kind == "fractional" else 1.0) if weight is None else weight
    if not is_number(weight) or not 0.0 < weight < math.inf:
        raise ArgumentError(f"{argument('weight')} must be a positive number, got {weight!r}.")
    step, least = check_iteration(damping, tolerance)
    most = check_integer("max_iterations", max_iterations, 1)
    return _Settings(kind, schedule, step, float(weight), most, least, check_seconds(seconds))


def _describe(digest: str, how: _Settings) -> dict[str, Any]:
    """Return all settings that determine the numbers."""
    settings = {name: value for name, value in how._asdict().items() if name != "seconds"}
    return {"gibbsite": package_version(), "method": "bp", "model": digest, **settings}


@dataclass
class _Run:
    """Messages during the iteration, as weights until these underflow, and then as logarithms."""

    graph: MessageGraph
    ring: PlainMessages | LogMessages
    state: Messages
    residuals: Residuals
    order: Ints
    how: _Settings
    messages: int = 0

    def advance(self, mode: int, count: int = 0) -> tuple[int, float]:
        """Update messages; return the number of updates and the largest change."""
        order, how = self.order, self.how
        while True:
            least = _CAREFUL * how.tolerance
            done, largest, bad = move(
                self.ring, self.graph, self.state, self.residuals, order, mode, count, least, how.damping
            )
            self.messages += int(done)
            if bad < 0:
                return int(done), float(largest)
            if isinstance(self.ring, LogMessages):
                raise _Contradiction(int(self.graph.site[bad]))
            self.take_logs()  # and try again

    def take_logs(self) -> None:
        """Continue with logarithms."""
        with np.errstate(divide="ignore"):
            state = self.state._replace(message=np.log(self.state.message), belief=np.log(self.state.belief))
        self.state, self.ring = state, LogMessages(self.ring.largest)


class _Contradiction(Exception):
    """No state of a site is possible."""

    def __init__(self, site: int) -> None:
        super().__init__(site)
        self.site = site


class _LaidOut(NamedTuple):
    """A model as messages, and the kind and digest of the graph that it was compiled to."""

    kind: str
    digest: str
    graph: MessageGraph
    constant: float
    order: Ints
    sites: Ints
    forest: bool
    entries: float


def _lay_out_once(model: FactorGraph, graph: Graph) -> _LaidOut:
    """Lay a model out, and cache small layouts."""
    messages, constant = lay_out(graph, model)
    messages, entries = sealed(messages), _count_entries(messages)
    with interpreted(_STEPS_PER_ENTRY * entries):
        order, sites, forest = order_messages(messages)
    found = _LaidOut(graph.kind, graph.digest, messages, constant, order, sites, forest, entries)
    if entries <= _KEPT:
        model.cache.put(found)
    return found


def describe_messages(model: FactorGraph) -> tuple[int, float, bool]:
    """Return the number of messages, the table entries that a sweep reads, and whether one sweep is exact."""
    model = expand(model)
    known = model.cache.get(_LaidOut) or _lay_out_once(model, compile_graph(model))
    return known.graph.n_edges, known.entries, known.forest


def _on_tables(model: FactorGraph, laid_out: _LaidOut, how: _Settings, show: Progress) -> BeliefResult:
    """Propagate on tables of any size."""
    graph, forest = laid_out.graph, laid_out.forest
    with interpreted(_STEPS_PER_ENTRY * laid_out.entries * min(how.max_iterations, _USUAL_SWEEPS)):
        shares = None
        if how.kind == "tree-reweighted":
            power, shares = grow_forests(graph)
            graph = sealed(raise_to(graph, power))
        elif how.weight != 1.0:
            graph = sealed(raise_to(graph, np.full(graph.n_factors, how.weight)))
        plain = bool((graph.power == 1.0).all())
        once = forest and how.damping == 1.0 and plain
        run = _start(graph, laid_out.order, how)
        move(run.ring, graph, run.state, run.residuals, run.order[:0], ALL, 0, 0.0, how.damping)  # compile or load
        begun = time.monotonic()
        try:
            with catch_interrupt(show.say) as interrupt:
                residual = _settle(run, once, begun, show, interrupt)
        except _Contradiction as found:
            raise SupportError(
                f"No state of site {model.sites[found.site]!r} is possible: the factors and evidence around "
                "it contradict each other; check the evidence."
            ) from None
        if isinstance(run.ring, PlainMessages):
            run.take_logs()
        answer = read_off(graph, run.state, shares, laid_out.sites if how.kind == "max" else None)
    return BeliefResult(
        model=model,
        cells=answer.cells,
        binary=False,
        kind=how.kind,
        schedule=how.schedule,
        log_z=answer.log_z + laid_out.constant,
        messages=run.messages,
        edges=graph.n_edges,
        residual=residual,
        tolerance=how.tolerance,
        exact=forest and plain and residual <= how.tolerance,
        codes=answer.codes,
        plan=_describe(laid_out.digest, how),
        interrupted=interrupt.up,
        seconds=time.monotonic() - begun,
        beliefs=TableBeliefs(graph, answer.message, answer.belief),
    )


def _count_entries(graph: MessageGraph) -> float:
    """Return the table entries that a sweep reads."""
    if not graph.n_factors:
        return 0.0
    width = np.diff(graph.member_start)
    size = np.multiply.reduceat(graph.card[graph.site[graph.member]], graph.member_start[:-1])
    return float((width * size).sum())


def _start(graph: MessageGraph, order: Ints, how: _Settings) -> _Run:
    """Return a run with uniform messages."""
    finite = graph.log_value[graph.log_value > -np.inf]
    known = graph.log_unary[graph.log_unary > -np.inf]
    steep = min(finite.min(initial=0.0), known.min(initial=0.0)) < math.log(LEAST)
    ring = LogMessages(how.kind == "max") if steep else PlainMessages(how.kind == "max")
    residuals = new_residuals(graph.n_edges if how.schedule == "residual" else 0)
    return _Run(graph, ring, new_messages(graph, bool(steep)), residuals, order, how)


def _settle(run: _Run, once: bool, begun: float, show: Progress, interrupt: Any) -> float:
    """Update messages until they have converged or the budget is used up; return the largest remaining change."""
    how, edges = run.how, run.graph.n_edges
    if not edges:
        return 0.0
    if once:
        run.advance(ALL)
        return 0.0
    mode, passes = NOTED if how.schedule == "residual" else ALL, 0
    while True:
        count = min(max(edges, _AT_ONCE), how.max_iterations * edges - run.messages)
        done, residual = run.advance(mode, count)
        passes += 1
        elapsed = time.monotonic() - begun
        made = -(-run.messages // edges)
        show.show(Status("belief propagation", made, how.max_iterations, elapsed, how.seconds, 1))
        if mode != SOME and residual <= how.tolerance:
            return residual
        if made >= how.max_iterations or interrupt.up or elapsed >= how.seconds:
            return residual
        if mode != ALL:  # all messages are computed once more when no change is expected
            mode = NOTED if mode == SOME and done < count else SOME
        if passes % _ROUNDING == 0:
            gather_beliefs(run.ring, run.graph, run.state)


def _as_odds(graph: Graph, how: _Settings) -> OddsLattice | None:
    """Return the model as a lattice that can be swept line by line, or None if model or settings do not allow that."""
    if graph.kind != "lattice" or how.schedule != "sweep" or how.weight != 1.0:
        return None
    if how.kind not in ("sum", "fractional") or not graph.n_sites:
        return None
    return lay_out_lattice(graph.arrays)


def _on_lattice(model: FactorGraph, graph: Graph, odds: OddsLattice, how: _Settings, show: Progress) -> BeliefResult:
    """Propagate on a binary lattice, line by line."""
    edges = int(2 * sum(np.count_nonzero(w != 1.0) for w in (odds.along_0, odds.along_1, odds.along_2)))
    line = int(2 * np.count_nonzero(odds.along_2 != 1.0))
    sweep_lattice(odds, 0, how.damping)
    begun = time.monotonic()
    sweeps = 0
    with catch_interrupt(show.say) as interrupt:
        while True:
            residual = sweep_lattice(odds, 2, how.damping)
            sweeps += 1
            elapsed = time.monotonic() - begun
            show.show(Status("belief propagation", sweeps, how.max_iterations, elapsed, how.seconds, 1))
            if residual <= how.tolerance or sweeps == how.max_iterations or interrupt.up or elapsed >= how.seconds:
                break
    log_odds, log_z = summarise_lattice(odds)
    chain = edges == line and odds.along_2[odds.size_2 - 1 :: odds.size_2].max(initial=1.0) == 1.0
    return BeliefResult(
        model=model,
        cells=np.exp(-np.logaddexp(0.0, -log_odds)),
        binary=True,
        kind=how.kind,
        schedule=how.schedule,
        log_z=log_z + graph.log_offset,
        messages=sweeps * (edges + line),
        edges=edges,
        residual=float(residual),
        tolerance=how.tolerance,
        exact=bool(chain and residual <= how.tolerance),
        plan=_describe(graph.digest, how),
        interrupted=interrupt.up,
        seconds=time.monotonic() - begun,
        beliefs=LatticeBeliefs(odds, log_odds),
    )
