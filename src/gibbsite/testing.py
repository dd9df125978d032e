"""Checks that a kernel, a scan or the updates of a model are correct, for the library and for its users.

There are four checks of a kernel:

``invariance``
    The exact transition matrix P of kernel x scan on a tiny model, built from the kernel's own compiled ``transition``,
    has pi P = pi to 1e-12, and detailed balance where it is claimed. There is no randomness.
``ergodicity``
    The rows of powers of P converge to pi. A scan that skips a site fails here.
``law``
    Many independent exact draws, moved by a few sweeps of the real compiled loop, still follow the exact distribution.
    Every joint state, marginal and pair is tested by an exact binomial test, Bonferroni-corrected, with false alarms
    below 1e-6. A clear pass ends the test early, a doubtful one takes more draws.
``repeat``
    The same seed gives the same bytes, whether the sweeps are made in one call or in several.

>>> import gibbsite as gs
>>> report = check_kernel(gs.Gibbs(), models={"coin": gs.ising_grid((2, 2), coupling=0.3)})
>>> report.passed
True
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import gibbsite.inference.importance  # noqa: F401  (registers a kernel of its own)
from gibbsite._common.arguments import check_integer, checked, describe
from gibbsite._common.arrays import Array, Bools, Ints, Positions
from gibbsite._common.wording import argument
from gibbsite._numba.random.generators import stream
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.graph import KINDS, Graph, compile_graph
from gibbsite.graphs.tiny import tiny_models
from gibbsite.inference.exact import Enumeration, enumerate_states
from gibbsite.inference.exact.transition import draw_periods, sweep_matrix, unit_matrix
from gibbsite.kernels.base import Kernel, transition, units_of
from gibbsite.kernels.protocols import Resolvable, RunOutline, Stateful
from gibbsite.kernels.registry import registered_kernels
from gibbsite.models.base import Model
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import repeatedly, start_chain
from gibbsite.scans.base import Scan
from gibbsite.scans.registry import proof_scans as scans

__all__ = [
    "FALSE_ALARM",
    "KERNELS",
    "Check",
    "Report",
    "check_invariance",
    "check_kernel",
    "check_law",
    "check_model",
    "check_repeat",
    "check_scan",
    "has_transition",
    "law_p_value",
    "scans",
    "tiny_models",
]

FALSE_ALARM = 1e-6
_STAGES = (3_000, 12_000, 48_000)
_CLEAR = 0.05  # a p-value above this ends the test

#: Instances of every kernel of the library for models of states; they are tested on every graph kind and scan.
KERNELS: tuple[Kernel, ...] = tuple(kernel for one in registered_kernels() for kernel in one.proof_instances())


@dataclass(frozen=True)
class Check:
    """The outcome of one check."""

    name: str
    subject: str
    passed: bool
    detail: str


@dataclass
class Report:
    """The outcomes of all checks of a kernel."""

    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> set[str]:
        """Names of the checks that failed somewhere."""
        return {check.name for check in self.checks if not check.passed}

    def __str__(self) -> str:
        bad = [c for c in self.checks if not c.passed]
        lines = [f"{len(self.checks) - len(bad)} checks passed, {len(bad)} failed"]
        lines += [f"FAILED {c.name} on {c.subject}: {c.detail}" for c in bad]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card

        first, *failures = str(self).splitlines()
        return card("passed" if self.passed else "FAILED", [first], good=self.passed, notes=failures)


@checked
def has_transition(kernel: Kernel, graph: Graph) -> bool:
    """Return whether a kernel has exact transition probabilities on this graph."""
    types = (type(kernel.parameters(graph)), type(graph.arrays))
    return transition.__dict__["registry"].find(types) is not None


@checked
def check_invariance(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> list[Check]:
    """Check pi P = pi, detailed balance where it is claimed, and that P forgets its start."""
    subject = _subject(graph, kernel, scan)
    pi = exact.probabilities
    matrix = sweep_matrix(exact, graph, kernel, scan)
    drift = float(np.abs(pi @ matrix - pi).max())
    rows = float(np.abs(matrix.sum(axis=1) - 1.0).max())
    least = float(matrix.min())
    good = drift < 1e-12 and rows < 1e-12 and least > -1e-15
    checks = [Check("invariance", subject, good, f"|pi P - pi| {drift:.1e}, row sums {rows:.1e}")]
    if kernel.reversible:
        steps = [unit_matrix(exact, graph, kernel, unit) for unit in range(graph.n_units)]
        palindromes = [matrix] if _is_palindromic(scan, graph, exact.model) else []
        flows = [pi[:, None] * m for m in [*steps, *palindromes]]
        skew = max((float(np.abs(f - f.T).max()) for f in flows), default=0.0)
        checks.append(Check("reversibility", subject, skew < 1e-12, f"flow asymmetry {skew:.1e}"))
    support = pi > 0
    far = matrix[np.ix_(support, support)]
    for _ in range(40):  # two to the fortieth sweeps
        far = far @ far
        far /= far.sum(axis=1, keepdims=True)  # rounding errors would grow with the power
    gap = float(np.abs(far - pi[support]).max())
    checks.append(Check("ergodicity", subject, gap < 1e-6, f"rows differ from pi by {gap:.1e}"))
    return checks


def _is_palindromic(scan: Scan, graph: Graph, model: FactorGraph) -> bool:
    """Return whether orders are as probable backwards as forwards; then reversible steps make reversible sweeps."""
    law = _add_up(scan.mixture(graph, model))
    return all(law.get(visits[::-1], 0.0) == chance for visits, chance in law.items())


def _add_up(mixture: Iterable[tuple[float, Array]]) -> dict[tuple[int, ...], float]:
    """Return the probability of each order of visits."""
    law: dict[tuple[int, ...], float] = {}
    for chance, order in mixture:
        visits = tuple(order.tolist())
        law[visits] = law.get(visits, 0.0) + chance
    return law


@checked
def check_law(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan, sweeps: int = 2, seed: int = 1) -> Check:
    """Check that exact draws keep the exact distribution under the compiled loop."""
    check_integer("sweeps", sweeps, 1)
    check_integer("seed", seed, 0)
    subject = _subject(graph, kernel, scan)
    rng = np.random.default_rng(seed)
    state, loop = _loop(exact, graph, kernel, scan, seed)
    move = loop(sweeps)
    worst = ""
    p = 1.0
    for size in _STAGES:
        starts = exact.draw(size, rng).astype(graph.state_dtype)
        ends = np.empty_like(starts)
        for k in range(size):
            state.x[:] = starts[k]
            if isinstance(kernel, Stateful):
                kernel.forget(state.memory)
            move()
            ends[k] = state.x
        p, worst = law_p_value(exact, ends)
        if p > _CLEAR:
            return Check("law", subject, True, f"p = {p:.2g} with {size} draws")
        if p < FALSE_ALARM / len(_STAGES):
            return Check("law", subject, False, f"p = {p:.1e} with {size} draws at {worst}")
    return Check("law", subject, True, f"p = {p:.2g} with {_STAGES[-1]} draws")


@checked
def law_p_value(exact: Enumeration, states: Array) -> tuple[float, str]:
    """Return a p-value for "these states are independent draws from the exact distribution", and the worst event.

    Every joint state, single-site and pair event is tested by an exact binomial test; the smallest p-value times their
    number bounds the chance of a false alarm.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.exact.enumerate(gs.ising_grid((2, 2), coupling=0.3))
    >>> law_p_value(exact, exact.draw(1000, np.random.default_rng(1)))[0] > 1e-6
    True
    """
    if np.ndim(states) != 2:
        raise ArgumentError(f"{argument('states')} must be an array (draws, sites), got {describe(states)}.")
    counts = np.bincount(exact.number(states), minlength=exact.law.size).reshape(exact.law.shape)
    n = exact.law.ndim
    events: list[tuple[str, Array, Array]] = [("states", counts, exact.law)]
    for keep in [(i,) for i in range(n)] + [(i, j) for i in range(n) for j in range(i)]:
        away = tuple(a for a in range(n) if a not in keep)
        events.append((f"sites {keep}", counts.sum(axis=away), exact.law.sum(axis=away)))
    total = len(states)
    least, worst, number = 1.0, "", 0
    for name, seen, law in events:
        k, q = seen.ravel().astype(float), np.clip(law.ravel(), 0.0, 1.0)
        two_sided = _binomial_p_values(k, total, q)
        number += k.size
        at = int(two_sided.argmin())
        if two_sided[at] < least:
            least, worst = float(two_sided[at]), f"{name}[{at}]: {k[at]:.0f} of {total}, law {q[at]:.4f}"
    return min(1.0, least * number), worst


def _binomial_p_values(seen: Array, total: int, law: Array) -> Array:
    """Return two-sided p-values of the numbers of successes ``seen`` in ``total`` trials."""
    from scipy.special import bdtr, bdtrc

    lower, upper = bdtr(seen, total, law), np.where(seen > 0, bdtrc(np.maximum(seen - 1, 0), total, law), 1.0)
    two_sided = np.minimum(1.0, 2.0 * np.minimum(lower, upper))
    found: Array = np.where(law > 0, two_sided, np.where(seen > 0, 0.0, 1.0))
    return found


@checked
def check_repeat(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> Check:
    """Check that 6 sweeps in one call equal 1 + 2 + 3 sweeps, byte for byte."""
    ends = []
    for parts in ((6,), (1, 2, 3)):
        state, loop = _loop(exact, graph, kernel, scan, seed=5)
        state.x[:] = exact.draw(1, np.random.default_rng(5))[0]
        for part in parts:
            loop(part)()
        ends.append(state.x.tobytes() + state.rng.tobytes())
    return Check("repeat", _subject(graph, kernel, scan), ends[0] == ends[1], "1 + 2 + 3 against 6 sweeps")


@checked
def check_kernel(
    kernel: Kernel,
    *,
    models: Mapping[str, FactorGraph] | None = None,
    scans_of: Any = None,
    kinds: Sequence[str] = KINDS,
    seed: int = 1,
) -> Report:
    """Run every check of a kernel on every scan and graph kind.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    models : mapping, optional
        Models by name; :func:`tiny_models` by default.
    scans_of : function, optional
        From a number of units (sites or blocks) to the scans to try; :func:`scans` by default.
    kinds : sequence of str
        Graph kinds to try, if they can represent a model and the kernel accepts them. Models and scans that the kernel
        refuses are skipped, too.
    seed : int
        Seed of the ``law`` check.

    Returns
    -------
    Report
        ``report.passed``; printed, it lists the failed checks.
    """
    report = Report()
    for model in (tiny_models() if models is None else models).values():
        exact = enumerate_states(model)
        for kind in kinds:
            graph = _try_kind(model, kind)
            if graph is None or not kernel.accepts(graph):
                continue
            graph = replace(graph, units=units_of(kernel, graph))
            exactly = kernel.exact and kernel.error_source != "none"
            for scan in (scans if scans_of is None else scans_of)(graph.n_units):
                settled = _try_scan(kernel, scan, graph)
                if settled is None:
                    continue
                if exactly and has_transition(settled, graph):
                    report.checks += check_invariance(exact, graph, settled, scan)
                if exactly:
                    report.checks.append(check_law(exact, graph, settled, scan, seed=seed))
                report.checks.append(check_repeat(exact, graph, settled, scan))
    return report


@checked
def check_model(model: Model, *, seed: int = 1) -> Report:
    """Check the updates that were derived for a model, such as one in the BUGS language, at random states.

    ``conditional``
        The conditional distribution on which an update rests is that of the joint density, to 1e-8.
    ``draws``
        Many draws of the update follow it, or keep the distribution of exact draws, with false alarms below 1e-6.

    Parameters
    ----------
    model : Model
        A model whose updates are derived from it.
    seed : int
        Seed of the states and draws.

    Returns
    -------
    Report
        ``report.passed``; printed, it lists the failed checks.

    Examples
    --------
    >>> import gibbsite as gs
    >>> text = "model { for (i in 1:3) { x[i] ~ dpois(rate) }  rate ~ dgamma(0.5, 0.1) }"
    >>> print(check_model(gs.applications.bugs.read_bugs(text, {"x": [3, 1, 4]})))
    6 checks passed, 0 failed
    """
    check_integer("seed", seed, 0)
    checks = getattr(model, "check_updates", None)
    if checks is None:
        raise ArgumentError(
            f"{argument('model')} must be one whose updates are derived from it, as those in the BUGS language, got "
            f"{describe(model)}; check_kernel checks the kernels of other models."
        )
    return Report([Check(*outcome) for outcome in checks(seed)])


@checked
def check_scan(scan: Scan, *, model: FactorGraph | None = None, draws: int = 20_000, seed: int = 1) -> Report:
    """Check that a scan visits the sites that it declares.

    ``visits``
        The compiled schedule visits the sites of :meth:`Scan.visits`; if it is random, with the probabilities of
        :meth:`Scan.mixture`, by exact binomial tests with false alarms below 1e-6.
    ``once``
        If that is claimed, every site is visited once in every sweep.
    ``all``
        Every site is visited, except for those of :meth:`Scan.left_out`.

    Parameters
    ----------
    scan : Scan
        The scan.
    model : FactorGraph, optional
        A small model; four sites by default.
    draws : int
        Number of periods of a random scan.
    seed : int
        Seed of these.

    Returns
    -------
    Report

    Raises
    ------
    IncompatibleError
        If a random scan does not declare its mixture.

    Examples
    --------
    >>> import gibbsite as gs
    >>> check_scan(gs.scans.Shuffled()).passed
    True
    """
    check_integer("draws", draws, 1)
    check_integer("seed", seed, 0)
    model = tiny_models()["grid"] if model is None else model
    graph, name = compile_graph(model), type(scan).__name__
    said = list(scan.mixture(graph, model))
    periods = draw_periods(scan, graph, model, draws if scan.random else 2, seed)
    if scan.random:
        p = _mixture_p_value(periods, said)
        visits = Check("visits", name, p >= FALSE_ALARM, f"p = {p:.2g} with {draws} periods")
    else:
        same = bool((periods == said[0][1]).all())
        visits = Check("visits", name, same, "the compiled schedule against the method visits")
    seen = np.zeros(graph.n_units, bool)
    seen[periods] = True
    checks = [visits, Check("all", name, *_compare_left_out(seen, scan.left_out(graph, model)))]
    if scan.once:
        sweeps = np.sort(periods.reshape(-1, graph.n_units), axis=1)
        whole = bool((sweeps == np.arange(graph.n_units)).all())
        checks.append(Check("once", name, whole, "every site once in every sweep"))
    return Report(checks)


def _mixture_p_value(periods: Ints, said: list[tuple[float, Array]]) -> float:
    """Return a p-value for "these periods consist of independent draws from this mixture"."""
    lengths = {len(order) for _, order in said}
    if len(lengths) > 1 or periods.shape[1] % min(lengths):
        raise IncompatibleError("The orders that a scan draws must have the same length, which divides its period.")
    parts = Counter(map(tuple, periods.reshape(-1, min(lengths)).tolist()))
    law = dict.fromkeys(parts, 0.0) | _add_up(said)
    seen = np.array([parts[order] for order in law], float)
    p_values = _binomial_p_values(seen, parts.total(), np.array(list(law.values()), float))
    return min(1.0, float(p_values.min()) * len(law))


def _compare_left_out(seen: Bools, left_out: Positions) -> tuple[bool, str]:
    missing = np.flatnonzero(~seen)
    return missing.tolist() == left_out.tolist(), f"never visited: {missing}, declared: {left_out}"


def _try_kind(model: FactorGraph, kind: str) -> Graph | None:
    try:
        return compile_graph(model, kind)
    except IncompatibleError:
        return None


def _try_scan(kernel: Kernel, scan: Scan, graph: Graph) -> Kernel | None:
    """Return the kernel for a run with this scan that records nothing; None if it refuses."""
    try:
        scan.schedule(graph)
        period = scan.cycle(graph)
        if isinstance(kernel, Resolvable):
            kernel = kernel.resolve(RunOutline(type(scan).__name__, period, period or graph.n_units, 1, None))
        return kernel
    except IncompatibleError:
        return None


def _loop(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan, seed: int) -> Any:
    """Return the state and a function from a number of sweeps to the compiled loop that makes them."""
    layout = lay_out(exact.model, graph, kernel, None)
    state = start_chain(graph, kernel, scan, exact.states[0], stream(seed, 0), layout.conditional)
    tape = layout.empty_tape(graph)
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, exact.model)

    def loop(sweeps: int) -> Callable[[], None]:
        return repeatedly(parameters, graph.arrays, schedule, state, tape, sweeps, graph.n_units)

    return state, loop


def _subject(graph: Graph, kernel: Kernel, scan: Scan) -> str:
    rule = "".join(f" {value}" for value in vars(kernel).values())
    return f"{type(kernel).__name__}{rule} x {type(scan).__name__} on {graph.kind}"
