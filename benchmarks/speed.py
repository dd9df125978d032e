"""Updates per second of the compiled loop, against the C loop of the same workload in the same run."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, Times, race
from benchmarks.reference import AgreementReference, SpinReference, TableReference, library
from benchmarks.report import Section, Target
from benchmarks.workloads import Workload, load
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.support.start import find_start
from gibbsite.kernels.base import alone
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import start_chain, sweep_chain
from gibbsite.sampling.tape import LENGTH, Tape

BINARY = ("lattice", "ising")
#: What the loop in C is called, and how fast a bare systematic scan must be beside it, by kind.
UNITS = {
    "lattice": ("C", 1.0),
    "ising": ("C", 1.0),
    "potts": ("C agreements", 1.0),
    "pairwise": ("C tables", 1.2),
    "table": ("C tables", 0.85),
}


@dataclass(frozen=True)
class Case:
    """A workload in one representation.

    ``chosen`` says whether gibbsite takes this kind by itself; otherwise the case is for information.
    """

    workload: str
    kind: str
    chosen: bool = True
    quick: bool = True
    bare: float | None = None  # promised speed of a bare systematic scan, where it is more than usual

    @property
    def name(self) -> str:
        return f"{self.workload} / {self.kind}"


CASES = (
    Case("grid100", "lattice"),
    Case("grid100", "ising"),
    Case("grid100", "pairwise", chosen=False, quick=False),
    Case("grid100", "table", chosen=False, quick=False),
    Case("grid1000", "lattice", quick=False),
    Case("grid1000", "ising", quick=False),
    Case("regular3", "ising"),
    Case("regular3-million", "ising", quick=False),
    Case("potts100", "potts"),
    Case("potts100", "pairwise", quick=False),
    # running log-weights spare the sums over all neighbours
    Case("potts-dense", "potts", bare=2.2),
    Case("network40", "table", quick=False),
    Case("network200", "table"),
    Case("network1000", "table", quick=False),
    # remembered conditionals: a real network sees few configurations, the random ones above see all
    Case("alarm", "table", quick=False, bare=1.5),
)

#: Rows for information, measured without recording: name, kernel, scan.
VARIANTS: tuple[tuple[str, gs.kernels.Kernel, gs.scans.Scan], ...] = (
    ("metropolised", gs.Gibbs("metropolised"), gs.Systematic()),
    ("suwa-todo", gs.Gibbs("suwa-todo"), gs.Systematic()),
    ("Palindromic", gs.Gibbs(), gs.scans.Palindromic()),
    ("Chromatic", gs.Gibbs(), gs.Chromatic()),
    ("RandomScan", gs.Gibbs(), gs.RandomScan()),
    ("Shuffled", gs.Gibbs(), gs.scans.Shuffled()),
)


class Chain:
    """One chain of gibbsite, driven as a run drives it, without what happens between blocks."""

    def __init__(
        self,
        model: gs.FactorGraph,
        graph: gs.graphs.Graph,
        start: np.ndarray[Any, Any],
        kernel: gs.kernels.Kernel | None = None,
        scan: gs.scans.Scan | None = None,
        record: gs.Marginals | None = None,
    ) -> None:
        kernel, scan = kernel or gs.Gibbs(), scan or gs.Systematic()
        layout = lay_out(model, graph, kernel, [] if record is None else record)
        self.keep = record is not None
        self.state = start_chain(graph, kernel, scan, start, stream(1, 0), layout.conditional)
        self.tape: Tape = layout.empty_tape(graph)
        self.parameters = kernel.parameters(graph)
        self.schedule = scan.schedule(graph, model)
        self.graph = graph

    def run(self, sweeps: int) -> None:
        n = self.graph.n_sites
        sweep_chain(
            self.parameters, self.graph.arrays, self.schedule, self.state, self.tape, sweeps, n, self.keep, alone()
        )

    def rewind(self, length: int = 1) -> None:
        """Empty the tape, as at the start of a run, or as after many draws (``length`` to a batch)."""
        for part in self.tape:
            if isinstance(part, np.ndarray) and part.flags.writeable and part.dtype.kind == "f":
                part.fill(0.0)
        self.tape.counters[:] = 0
        self.tape.counters[LENGTH] = length


def reference(workload: Workload, case: Case) -> Any:
    """Return the C loop a case is compared with."""
    if case.kind in BINARY:
        return SpinReference(workload)  # type: ignore[arg-type]
    if case.kind == "potts":
        return AgreementReference(workload)  # type: ignore[arg-type]
    return TableReference(workload.tables())


def contestants(workload: Workload, case: Case, variants: bool) -> list[Contestant]:
    """Return all that race on one case, the C loop first."""
    model = workload.model(case.kind)
    graph = gs.graphs.compile_graph(model, None if case.chosen else case.kind)
    assert graph.kind == case.kind
    start = find_start(model, graph, np.random.default_rng(1))
    n = graph.n_sites
    found = []
    for name, count in (("C", False), ("C + counts", True)):
        c = reference(workload, case)
        c.place(start)
        found.append(Contestant(name, lambda sweeps, c=c, count=count: c.run(sweeps, count), n))
    bare = Chain(model, graph, start)
    counts = Chain(model, graph, start, record=gs.Marginals(rao_blackwell=False))
    smooth = Chain(model, graph, start, record=gs.Marginals())
    later = Chain(model, graph, start, record=gs.Marginals())
    found += [
        Contestant("bare", bare.run, n),
        Contestant("counts", counts.run, n, counts.rewind),
        Contestant("rao-blackwell", smooth.run, n, smooth.rewind),
        Contestant("rao-blackwell, long run", later.run, n, lambda: later.rewind(1 << 20)),
    ]
    if not variants:
        return found
    for name, kernel, scan in VARIANTS:
        chain = Chain(model, graph, start, kernel, scan)
        found.append(Contestant(name, chain.run, n, least=2))
    if case.chosen:
        sweeps = max(20, 2_000_000 // n)
        call = f"sample() of {sweeps} sweeps"

        def whole_calls(calls: int) -> None:
            for _ in range(calls):
                whole_call(model, sweeps)

        found.append(Contestant(call, whole_calls, sweeps * n, least=1))
    return found


def whole_call(model: gs.FactorGraph, sweeps: int, rng: int = 1, record: Any = None) -> gs.Result:
    """Call ``sample`` from model to result: compiling the graph, recording, diagnostics and all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return gs.sample(model, sweeps=sweeps, warmup=0, chains=1, threads=1, rng=rng, record=record, progress=False)


def targets(case: Case, n_sites: int, times: dict[str, Times]) -> list[Target]:
    """Return the promises this case can keep or break."""
    unit, bare = UNITS[case.kind]

    def ratio(name: str, to: str, bound: float, what: str, of: str) -> Target:
        spread = times[name].against(times[to])
        return Target(f"{case.name}: {what}", spread.median, bound, True, of, show_range(spread))

    found = []
    if case.chosen:
        found = [
            ratio("bare", "C", case.bare or bare, "systematic scan", unit),
            ratio("counts", "C", 0.6, "counting marginals", unit),
            ratio("rao-blackwell", "C", 0.6, "Rao-Blackwell marginals", unit),
        ]
        if n_sites >= 10**6:
            found.append(ratio("rao-blackwell", "bare", 0.5, "marginals every sweep", "bare"))
    return found


def show_range(spread: Spread) -> str:
    return f"{spread.low:.2f} .. {spread.high:.2f}"


def measure_case(case: Case, *, repetitions: int, seconds: float, variants: bool = True) -> Section:
    """Race one case."""
    workload = load(case.workload)
    field = contestants(workload, case, variants)
    times = race(field, repetitions=repetitions, seconds=seconds)
    rows = []
    for name, seen in times.items():
        ratio = seen.against(times["C"])
        rows.append(
            [
                f"{case.name}: {name}",
                f"{seen.rate.median / 1e6:.1f}",
                f"{seen.wall_rate.median / 1e6:.1f}",
                f"{ratio.median:.2f}",
                show_range(ratio),
            ]
        )
    data = {
        "case": case.name,
        "sites": workload.n_sites,
        "contestants": {
            name: {
                "rate": seen.rate.to_dict(),
                "wall_rate": seen.wall_rate.to_dict(),
                "ratio": seen.against(times["C"]).to_dict(),
            }
            for name, seen in times.items()
        },
    }
    head = ["million updates per second", "cpu", "wall", "in C", "range"]
    return Section(case.name, targets(case, workload.n_sites, times), head, rows, data)


def measure(*, quick: bool = False, only: Iterable[str] = ()) -> Iterable[Section]:
    """Race every case; ``only`` names workloads."""
    library()  # says at once if there is no compiler
    chosen = set(only)
    for case in CASES:
        if case.workload in chosen or (not chosen and (case.quick or not quick)):
            scale = {"repetitions": 5, "seconds": 0.03} if quick else {"repetitions": 9, "seconds": 0.1}
            yield measure_case(case, variants=not quick, **scale)  # type: ignore[arg-type]
