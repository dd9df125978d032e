"""Many sites at once: colors, checkerboards, replicas and threads, against the plain C loop.

The C loop is sequential over the model's own order, one chain; ours take the form a chromatic run takes by
itself. Ratios of one thread are by processor time, those of threads by the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, Times, race
from benchmarks.reference import AgreementReference, SpinReference, library
from benchmarks.report import Section, Target
from benchmarks.startup import run_fresh
from benchmarks.workloads import Agreements, Spins, grid, load, potts
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import Team
from gibbsite.sampling.batched_layouts import pack_chains, pack_sites
from gibbsite.sampling.executor import Threads
from gibbsite.sampling.layout import ChainLayout
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import sweep_chain
from gibbsite.sampling.tape import LENGTH

GIBBS = gs.Gibbs()


@dataclass(frozen=True)
class Case:
    """A model in a form; what is promised of it bare, in units of C, and with marginals, in units of bare."""

    name: str
    workload: Callable[[], Spins | Agreements]
    kind: str
    bound: float
    chains: int = 1
    uniform: bool = False
    quick: bool = True
    kept: float = 0.6


def _load(name: str) -> Callable[[], Spins]:
    return lambda: load(name)  # type: ignore[return-value]


def _potts(side: int) -> Callable[[], Agreements]:
    """Four states."""
    return lambda: potts(f"potts{side}", side, 4)


CASES = (
    Case("colors, 3-regular graph of 10^4 sites", _load("regular3"), "ising", 4.0),
    Case("colors, 3-regular graph of 10^6 sites", _load("regular3-million"), "ising", 4.0, quick=False),
    Case("colors, grid of 1000 x 1000 as a graph", _load("grid1000"), "ising", 4.0, quick=False),
    Case("lattice, couplings of each edge, 100 x 100", _load("grid100"), "lattice", 8.0),
    Case("lattice, couplings of each edge, 1000 x 1000", _load("grid1000"), "lattice", 10.0, quick=False),
    Case("lattice, one coupling, 100 x 100", _load("grid100"), "lattice", 8.0, uniform=True),
    Case("lattice, one coupling, 1000 x 1000", _load("grid1000"), "lattice", 12.0, uniform=True, quick=False),
    Case("64 replicas of 50 x 50", lambda: grid("grid50", 50), "ising", 15.0, chains=64),
    Case("128 replicas of 50 x 50", lambda: grid("grid50", 50), "ising", 15.0, chains=128),
    Case("Potts, couplings of each edge, 100 x 100", _potts(100), "lattice", 7.0),
    Case("Potts, one coupling, 100 x 100", _potts(100), "lattice", 7.0, uniform=True),
    # four sums for each site: 32 MB
    Case("Potts, couplings of each edge, 1000 x 1000", _potts(1000), "lattice", 8.0, quick=False, kept=0.4),
    Case("Potts, one coupling, 1000 x 1000", _potts(1000), "lattice", 8.0, uniform=True, quick=False, kept=0.4),
)


class Bundle:
    """Chains in a form, moved by a team of threads; ``first`` numbers them, for streams of their own."""

    def __init__(
        self,
        form: ChainLayout,
        chains: int,
        keep: bool,
        team: int = 1,
        first: int = 0,
        kernel: gs.kernels.Kernel = GIBBS,
    ) -> None:
        self.form, self.chains, self.keep, self.team = form, chains, keep, team
        rng = np.random.default_rng(1 + first)
        starts = [rng.integers(0, form.graph.cards).astype(np.int8) for _ in range(chains)]
        self.state = form.start(starts, [stream(1, first + c) for c in range(chains)])
        self.tape = form.tape(chains)
        self.tape.counters[LENGTH] = 1 << 20  # as in a long run: batches are closed now and then
        self.arrays, self.schedule = form.arrays(chains), form.schedule()
        self.parameters = kernel.parameters(form.graph)
        self.executor = Threads(team)

    def run(self, sweeps: int) -> None:
        gate, n = np.zeros(1, np.int64), self.form.graph.n_sites

        def move(member: int) -> None:
            team = Team(member, self.team, gate)
            sweep_chain(self.parameters, self.arrays, self.schedule, self.state, self.tape, sweeps, n, self.keep, team)

        self.executor.map(move, range(self.team))


def make_form(case: Case, workload: Spins | Agreements, record: list[Any] | None = None) -> ChainLayout:
    """Return the layout of a case, which records marginals by default."""
    model = workload.uniform() if case.uniform else workload.model(case.kind)
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, GIBBS, record)
    form = (
        pack_chains(model, graph, GIBBS, layout, case.chains)
        if case.chains > 1
        else pack_sites(model, graph, GIBBS, layout)
    )
    assert form is not None
    return form


def measure(*, quick: bool = False) -> Section:
    """Race all cases."""
    library()  # says at once if there is no compiler
    targets: list[Target] = []
    rows: list[list[str]] = []
    data: dict[str, Any] = {}
    for case in CASES:
        if quick and not case.quick:
            continue
        workload = case.workload()
        form = make_form(case, workload)
        n = workload.n_sites
        c = SpinReference(workload) if isinstance(workload, Spins) else AgreementReference(workload)
        bare, kept = Bundle(form, case.chains, False), Bundle(form, case.chains, True)
        field = [
            Contestant("C", c.run, n, least=2),
            Contestant("bare", bare.run, n * case.chains, least=2),
            Contestant("marginals", kept.run, n * case.chains, least=2),
        ]
        times = race(field, repetitions=3 if quick else 9, seconds=0.1 if quick else 0.3)
        rows += [_row(f"{case.name}: {name}", seen, times["C"]) for name, seen in times.items()]
        targets.append(_ratio(f"{case.name}", times["bare"].against(times["C"]), case.bound, "C"))
        targets.append(_ratio(f"{case.name}, marginals", times["marginals"].against(times["bare"]), case.kept, "bare"))
        data[case.name] = {name: seen.rate.to_dict() for name, seen in times.items()}
    targets += _threads(quick, rows, data)
    targets += _memory(quick, data)
    return Section("forms", targets, ["million updates per second", "cpu", "wall", "in C", "range"], rows, data)


def _row(name: str, seen: Times, unit: Times) -> list[str]:
    ratio = seen.against(unit)
    rates = f"{seen.rate.median / 1e6:.1f}", f"{seen.wall_rate.median / 1e6:.1f}"
    return [name, *rates, f"{ratio.median:.2f}", f"{ratio.low:.2f} .. {ratio.high:.2f}"]


def _ratio(name: str, spread: Spread, bound: float, unit: str) -> Target:
    return Target(name, spread.median, bound, True, unit, f"{spread.low:.2f} .. {spread.high:.2f}")


def _threads(quick: bool, rows: list[list[str]], data: dict[str, Any]) -> list[Target]:
    """Compare two threads with one, by the clock: large models gain, small ones are left to one thread."""
    found = []
    for case, least in ((CASES[4], 1.7), (CASES[2], 1.7), (CASES[3], 0.95)):
        if quick and not case.quick:
            continue
        workload = case.workload()
        form = make_form(case, workload)
        two = min(2, form.most_members)
        n = workload.n_sites
        field = [
            Contestant(f"{k} threads", Bundle(form, 1, False, team).run, n, least=2) for k, team in ((1, 1), (2, two))
        ]
        times = race(field, repetitions=3 if quick else 9, seconds=0.1 if quick else 0.3)
        ratios = [b / a for a, b in zip(times["2 threads"].wall, times["1 threads"].wall, strict=True)]
        rows.append(_row(f"{case.name}: two threads", times["2 threads"], times["1 threads"]))
        found.append(_ratio(f"{case.name}: two threads", Spread.of(ratios), least, "one thread"))
        data[f"{case.name}: threads"] = ratios
    return found


_LATTICE = """
import json, resource, time, tracemalloc
import numpy as np
import gibbsite as gs
from gibbsite.sampling.batched_layouts import pack_sites
from gibbsite.sampling.record import lay_out
from gibbsite._numba.random.generators import stream
from gibbsite.kernels.base import alone
from gibbsite.sampling.sweep import sweep_chain
def begin(side):
    model = gs.ising_grid((side, side), coupling=0.2)
    graph = gs.graphs.compile_graph(model)
    form = pack_sites(model, graph, gs.Gibbs(), lay_out(model, graph, gs.Gibbs(), []))
    return form, form.start([np.zeros(side * side, np.int8)], [stream(1, 0)])
def run(form, state, sweeps):
    n = form.graph.n_sites
    kernel = gs.Gibbs().parameters(form.graph)
    sweep_chain(kernel, form.arrays(1), form.schedule(), state, form.tape(1), sweeps, n, False, alone())
run(*begin(10), 1)
tracemalloc.start()
form, state = begin(SIDE)
held = tracemalloc.get_traced_memory()[0]
tracemalloc.stop()
began = time.perf_counter()
run(form, state, 2)
print(json.dumps({"bytes": held / SIDE**2, "seconds": (time.perf_counter() - began) / 2,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / SIDE**2}))
"""


def _memory(quick: bool, data: dict[str, Any]) -> list[Target]:
    """Measure what a uniform lattice holds on to, and that 10^8 sites run."""
    found = []
    for side in (3162,) if quick else (3162, 10_000):
        seen = run_fresh(_LATTICE.replace("SIDE", str(side)))
        data[f"uniform lattice of {side} x {side}"] = seen
        found.append(
            Target(
                f"uniform lattice of {side} x {side}: bytes per site",
                seen["bytes"],
                4.0,
                False,
                "",
                f"{seen['seconds']:.2f} s per sweep, peak {seen['peak']:.1f}",
            )
        )
    return found
