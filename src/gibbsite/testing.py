"""Proofs that a kernel is right, for our own tests and for kernels of yours.

Four checks, each of which can fail on its own:

``invariance``
    The exact transition matrix P of kernel x scan on a tiny model, built from the kernel's own compiled
    ``transition``: pi P = pi to 1e-12, and detailed balance where it is claimed. No randomness.
``ergodicity``
    The same matrix, iterated, forgets its start: every row tends to pi. A scan that skips a site fails here.
``law``
    Many independent exact draws, a few sweeps of the real compiled loop each: the states must still follow
    the exact law. Exact binomial tests of every joint state, marginal and pair, Bonferroni-corrected; false
    alarms below 1e-6; a clear pass ends it early, a doubtful one takes more draws.
``repeat``
    The same seed gives the same bytes, whether the sweeps are made in one call or in several.

>>> import gibbsite as gs
>>> report = check_kernel(gs.Gibbs(), models={"coin": gs.ising_grid((2, 2), coupling=0.3)})
>>> report.passed
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._random.generators import stream
from gibbsite.exact import Enumeration, enumerate_states
from gibbsite.exact.transition import site_matrix, sweep_matrix
from gibbsite.graph.compile import KINDS, compile_graph
from gibbsite.graph.graph import Graph
from gibbsite.kernel.base import Kernel, RunOutline, alone, transition
from gibbsite.kernel.gibbs.annealed import AnnealedGibbs
from gibbsite.kernel.gibbs.gibbs import Gibbs
from gibbsite.kernel.gibbs.quasi import QuasiGibbs
from gibbsite.kernel.herded.herded import HerdedGibbs
from gibbsite.kernel.minibatch.double_min import DoubleMinGibbs
from gibbsite.kernel.minibatch.local import LocalMinibatchGibbs
from gibbsite.kernel.minibatch.mgpmh import MGPMH
from gibbsite.kernel.minibatch.min_gibbs import MinGibbs
from gibbsite.kernel.minibatch.poisson import PoissonGibbs
from gibbsite.kernel.rules import RULES
from gibbsite.run.chain import advance, start_chain
from gibbsite.run.record import lay_out
from gibbsite.scan import (
    Chromatic,
    FixedOrder,
    Palindromic,
    RandomScan,
    Scan,
    Shuffled,
    Systematic,
)

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph, FactorGroup

FALSE_ALARM = 1e-6
_STAGES = (3_000, 12_000, 48_000)
_CLEAR = 0.05  # a p-value above this ends the test

#: Every kernel of the library; a kernel listed here is tested on every graph kind, and with every scan. The
#: numbers of a long period are as good as random for so few draws.
KERNELS: tuple[Kernel, ...] = (
    *(Gibbs(rule) for rule in RULES),
    AnnealedGibbs(sweeps=4),
    HerdedGibbs(),
    QuasiGibbs(m=32),
    PoissonGibbs(minibatch=3.0),
    MGPMH(minibatch=3.0),
    MinGibbs(minibatch=20.0),
    DoubleMinGibbs(minibatch=3.0, second=20.0),
    LocalMinibatchGibbs(minibatch=1),
)


def scans(n_sites: int) -> tuple[Scan, ...]:
    """Return every scan of the library, ready for a model of ``n_sites`` sites.

    Examples
    --------
    >>> len(scans(3)) >= 7
    True
    """
    backwards = np.arange(n_sites)[::-1].copy()
    uneven = np.arange(1.0, n_sites + 1)
    return (
        Systematic(),
        Systematic(order=backwards),
        Palindromic(),
        RandomScan(),
        RandomScan(weights=uneven),
        Shuffled(),
        Chromatic(),
        FixedOrder(np.concatenate([backwards, backwards[: n_sites // 2 + 1]])),
    )


def tiny_models() -> dict[str, FactorGraph]:
    """Return small models that between them need every graph kind and hold the known traps.

    Zeros, sites of one state, isolated sites, parallel factors, odd cycles, strong fields and couplings,
    periodic axes.

    Examples
    --------
    >>> sorted(tiny_models())[:2]
    ['agreements', 'glass']
    """
    from gibbsite.model import (
        AgreementFactors,
        FactorGraph,
        TableFactors,
        distance_potts,
        ising,
        ising_grid,
        potts,
    )

    rng = np.random.default_rng(20161)
    glass = np.triu(rng.normal(size=(4, 4)), 1)
    grid = ising_grid((2, 2), coupling=(0.6, -0.4), field=np.array([[0.3, -1.0], [0.0, 0.5]]))
    ring = ising_grid((3,), coupling=np.array([[0.5, -0.3, 0.8]]), field=0.2, periodic=True)
    links: list[tuple[Any, Any]] = [
        (("a", "b"), [[1, 2, 0], [3, 1, 1]]),
        (("b", "c"), [[1, 0.5], [2, 1], [0.2, 4]]),
        (("c", "a"), [[1, 2], [2, 1]]),
        (("a", "c"), [[1, 3], [1, 1]]),
        (("fixed", "b"), [[1, 2, 2]]),
        (("lonely",), [0.2, 0.0, 0.8]),
    ]
    mixed = FactorGraph({"a": 2, "b": ["x", "y", "z"], "c": 2, "lonely": 3, "fixed": 1}, links)
    tables = FactorGraph(
        {"p": 2, "q": 3, "r": 2, "s": 2},
        [
            (("p", "q", "r"), rng.uniform(0.1, 2, (2, 3, 2)) * (rng.random((2, 3, 2)) < 0.9)),
            (("q", "s"), [[1, 2], [3, 0], [1, 1]]),
            (("s", "r", "p"), rng.uniform(0.1, 2, (2, 2, 2))),
            (("p",), [1, 2]),
        ],
    )
    agreements: list[FactorGroup] = [
        AgreementFactors([[0, 1], [1, 0], [1, 2]], [0.4, 0.3, -400.0]),
        TableFactors([[0], [2], [3]], [[0.0, 0.5, -np.inf], [0.1, 0.0, 0.3], [-np.inf, 0.0, 0.2]]),
    ]
    return {
        "glass": ising(glass, rng.normal(size=4)),
        "grid": grid,
        "ring": ring,
        "steep": ising(np.array([[0, 6.0], [6.0, 0]]), [40.0, -38.0]),
        "potts": potts(np.array([[0, 0.7, 0], [0.7, 0, -0.5], [0, -0.5, 0]]), 3),
        "distance": distance_potts([[0.0, 0.0], [1.0, 0.2], [0.4, 0.9], [4.0, 4.0]], 2, 0.5, 0.8, [0.0, 0.3]),
        "agreements": FactorGraph(4, groups=agreements, states=3),
        "mixed": mixed,
        "tables": tables,
    }


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


def has_transition(kernel: Kernel, graph: Graph) -> bool:
    """Tell whether a kernel supplies exact transition probabilities on this graph."""
    types = (type(kernel.parameters(graph)), type(graph.arrays))
    return transition.__dict__["registry"].find(types) is not None


def check_invariance(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> list[Check]:
    """Check pi P = pi, detailed balance where claimed, and that P forgets its start."""
    subject = _subject(graph, kernel, scan)
    pi = exact.probabilities
    matrix = sweep_matrix(exact, graph, kernel, scan)
    drift = float(np.abs(pi @ matrix - pi).max())
    rows = float(np.abs(matrix.sum(axis=1) - 1.0).max())
    least = float(matrix.min())
    good = drift < 1e-12 and rows < 1e-12 and least > -1e-15
    checks = [Check("invariance", subject, good, f"|pi P - pi| {drift:.1e}, row sums {rows:.1e}")]
    if kernel.reversible:
        steps = [site_matrix(exact, graph, kernel, i) for i in range(graph.n_sites)]
        palindromes = [matrix] if isinstance(scan, Palindromic | RandomScan | Shuffled) else []
        flows = [pi[:, None] * m for m in [*steps, *palindromes]]
        skew = max((float(np.abs(f - f.T).max()) for f in flows), default=0.0)
        checks.append(Check("reversibility", subject, skew < 1e-12, f"flow asymmetry {skew:.1e}"))
    support = pi > 0
    far = matrix[np.ix_(support, support)]
    for _ in range(40):  # two to the fortieth sweeps
        far = far @ far
        far /= far.sum(axis=1, keepdims=True)  # or rounding would grow with the power
    gap = float(np.abs(far - pi[support]).max())
    checks.append(Check("ergodicity", subject, gap < 1e-6, f"rows differ from pi by {gap:.1e}"))
    return checks


def check_law(
    exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan, sweeps: int = 2, seed: int = 1
) -> Check:
    """Check that exact draws stay in the exact law under the compiled loop."""
    subject = _subject(graph, kernel, scan)
    rng = np.random.default_rng(seed)
    state, move = _loop(exact, graph, kernel, scan, seed)
    worst = ""
    p = 1.0
    for size in _STAGES:
        starts = exact.draw(size, rng).astype(graph.state_dtype)
        ends = np.empty_like(starts)
        for k in range(size):
            state.x[:] = starts[k]
            kernel.forget(state.memory)
            move(sweeps)
            ends[k] = state.x
        p, worst = law_p_value(exact, ends)
        if p > _CLEAR:
            return Check("law", subject, True, f"p = {p:.2g} with {size} draws")
        if p < FALSE_ALARM / len(_STAGES):
            return Check("law", subject, False, f"p = {p:.1e} with {size} draws at {worst}")
    return Check("law", subject, True, f"p = {p:.2g} with {_STAGES[-1]} draws")


def law_p_value(exact: Enumeration, states: NDArray[Any]) -> tuple[float, str]:
    """Return a p-value for "these states are independent draws from the exact law", and the worst event.

    Every joint state, single-site and pair event is tested by an exact binomial test; the smallest p-value
    times their number bounds the chance of a false alarm.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.exact.enumerate(gs.ising_grid((2, 2), coupling=0.3))
    >>> law_p_value(exact, exact.draw(1000, np.random.default_rng(1)))[0] > 1e-6
    True
    """
    from scipy.special import bdtr, bdtrc

    counts = np.bincount(exact.number(states), minlength=exact.law.size).reshape(exact.law.shape)
    n = exact.law.ndim
    events: list[tuple[str, NDArray[Any], NDArray[Any]]] = [("states", counts, exact.law)]
    for keep in [(i,) for i in range(n)] + [(i, j) for i in range(n) for j in range(i)]:
        away = tuple(a for a in range(n) if a not in keep)
        events.append((f"sites {keep}", counts.sum(axis=away), exact.law.sum(axis=away)))
    total = len(states)
    least, worst, number = 1.0, "", 0
    for name, seen, law in events:
        k, q = seen.ravel().astype(float), np.clip(law.ravel(), 0.0, 1.0)
        lower, upper = bdtr(k, total, q), np.where(k > 0, bdtrc(np.maximum(k - 1, 0), total, q), 1.0)
        two_sided = np.minimum(1.0, 2.0 * np.minimum(lower, upper))
        two_sided = np.where((q == 0) & (k > 0), 0.0, np.where(q == 0, 1.0, two_sided))
        number += k.size
        at = int(two_sided.argmin())
        if two_sided[at] < least:
            least, worst = float(two_sided[at]), f"{name}[{at}]: {k[at]:.0f} of {total}, law {q[at]:.4f}"
    return min(1.0, least * number), worst


def check_repeat(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan) -> Check:
    """Check that 6 sweeps in one call equal 1 + 2 + 3 sweeps, byte for byte."""
    ends = []
    for parts in ((6,), (1, 2, 3)):
        state, move = _loop(exact, graph, kernel, scan, seed=5)
        state.x[:] = exact.draw(1, np.random.default_rng(5))[0]
        for part in parts:
            move(part)
        ends.append(state.x.tobytes() + state.rng.tobytes())
    return Check("repeat", _subject(graph, kernel, scan), ends[0] == ends[1], "1 + 2 + 3 against 6 sweeps")


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
        From a number of sites to the scans to try; :func:`scans` by default.
    kinds : sequence of str
        Graph kinds to try, as far as they can represent a model and the kernel accepts them. Models and scans
        that the kernel refuses are left out, too.
    seed : int
        Seed of the ``law`` check.

    Returns
    -------
    Report
        ``report.passed``; printed, it lists what failed and where.
    """
    report = Report()
    for model in (tiny_models() if models is None else models).values():
        exact = enumerate_states(model)
        for kind in kinds:
            graph = _try_kind(model, kind)
            if graph is None or not kernel.accepts(graph):
                continue
            exactly = kernel.exact and not kernel.deterministic
            for scan in (scans if scans_of is None else scans_of)(graph.n_sites):
                settled = _try_scan(kernel, scan, graph)
                if settled is None:
                    continue
                if exactly and has_transition(settled, graph):
                    report.checks += check_invariance(exact, graph, settled, scan)
                if exactly:
                    report.checks.append(check_law(exact, graph, settled, scan, seed=seed))
                report.checks.append(check_repeat(exact, graph, settled, scan))
    return report


def _try_kind(model: FactorGraph, kind: str) -> Graph | None:
    from gibbsite.errors import IncompatibleError

    try:
        return compile_graph(model, kind)
    except IncompatibleError:
        return None


def _try_scan(kernel: Kernel, scan: Scan, graph: Graph) -> Kernel | None:
    """Return the kernel for a run with this scan that records nothing; None if it refuses."""
    from gibbsite.errors import IncompatibleError

    period = scan.cycle(graph)
    try:
        return kernel.resolve(RunOutline(type(scan).__name__, period, period or graph.n_sites, 1, None))
    except IncompatibleError:
        return None


def _loop(exact: Enumeration, graph: Graph, kernel: Kernel, scan: Scan, seed: int) -> Any:
    """Return the state and a function that makes sweeps with the compiled loop."""
    layout = lay_out(exact.model, graph, kernel, None)
    state = start_chain(graph, kernel, scan, exact.states[0], stream(seed, 0), layout.conditional)
    tape = layout.empty_tape(graph)
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, exact.model)

    def move(sweeps: int) -> None:
        advance(parameters, graph.arrays, schedule, state, tape, sweeps, graph.n_sites, False, alone())

    return state, move


def _subject(graph: Graph, kernel: Kernel, scan: Scan) -> str:
    rule = "".join(f" {value}" for value in vars(kernel).values())
    return f"{type(kernel).__name__}{rule} x {type(scan).__name__} on {graph.kind}"
