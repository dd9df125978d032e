"""Remembered conditionals: the bytes of a chain that computes everything, whatever it remembers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import stream
from gibbsite.graphs.graph import Graph
from gibbsite.kernels.base import Buffer, alone
from gibbsite.kernels.gibbs import conditional_cache as remembered
from gibbsite.kernels.gibbs.conditional_cache import (
    Remembered,
    find_blankets,
    pick_by_row,
    remember_levels,
    remembered_memory,
    remembering_pays,
)
from gibbsite.kernels.rules import HEAT_BATH, METROPOLISED, RULES, pick
from gibbsite.sampling import executor
from gibbsite.sampling.checkpoint import load_checkpoint
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import State, start_chain, sweep_chain, sweep_sites
from gibbsite.testing import check_kernel, tiny_models


def network(n: int = 40, sharp: float = 0.3, zeros: float = 0.2) -> gs.FactorGraph:
    """A Bayesian network of 1 to 5 states and up to 3 parents, tables with zeros, the last sites observed."""
    rng = np.random.default_rng(n)
    cards = rng.integers(1, 6, n)
    cards[-3:] = 2
    factors = []
    for i in range(n):
        parents = rng.choice(i, min(i, int(rng.integers(0, 4))), replace=False) if i else []
        shape = [int(cards[p]) for p in parents]
        table = rng.dirichlet(np.full(cards[i], sharp), shape)
        table = np.where((rng.random(table.shape) < zeros) & (table < table.max(-1, keepdims=True)), 0.0, table)
        factors.append(([f"v{p}" for p in parents] + [f"v{i}"], table / table.sum(-1, keepdims=True)))
    model = gs.FactorGraph({f"v{i}": int(k) for i, k in enumerate(cards)}, factors, directed=True)
    return model.observe({f"v{i}": 0 for i in (n - 1, n - 2)})


def hub() -> gs.FactorGraph:
    """A site with 14 children, whose blanket has too many configurations, and sites in no factor at all."""
    rng = np.random.default_rng(3)
    sites = {"top": 3, **{f"c{i}": 3 for i in range(14)}, "free": 4, "fixed": 1, "biased": 2}
    pairs = [(("top", f"c{i}"), rng.uniform(0.1, 1, (3, 3))) for i in range(14)]
    return gs.FactorGraph(sites, [*pairs, (("biased",), [1.0, 3.0])])


def wide() -> gs.FactorGraph:
    """Factors of ten sites, and one of three beside another over the same sites."""
    rng = np.random.default_rng(4)
    names = [str(i) for i in range(14)]
    tens = [(names[a : a + 10], rng.random((2,) * 10) ** 4) for a in (0, 4)]
    threes = [(names[a : a + 3], rng.random((2, 2, 2))) for a in (0, 0, 11)]
    return gs.FactorGraph(dict.fromkeys(names, 2), [*tens, *threes])


def faint() -> gs.FactorGraph:
    """Products that underflow and are taken again in logarithms."""
    triples = [((f"{i}", f"{i + 1}", f"{i + 2}"), np.full((2, 2, 2), 1e-90) + np.eye(2)) for i in range(6)]
    return gs.FactorGraph({f"{i}": 2 for i in range(8)}, triples * 2)


def many_states() -> gs.FactorGraph:
    rng = np.random.default_rng(5)
    table = rng.random((40, 3, 2)) ** 6
    return gs.FactorGraph({"a": 40, "b": 3, "c": 2}, [(("a", "b", "c"), table), (("c", "a"), rng.random((2, 40)))])


MODELS: dict[str, Callable[[], gs.FactorGraph]] = {
    "network": network,
    "flat network": lambda: network(25, sharp=3.0, zeros=0.0),
    "hub": hub,
    "wide": wide,
    "faint": faint,
    "many states": many_states,
    "mixed": lambda: tiny_models()["mixed"],
    "tables": lambda: tiny_models()["tables"],
}
#: Numbers of a site, of a chain, and those filled before sites are judged, at most.
BOUNDS = {"usual": (1 << 16, 1 << 20, 1 << 16), "little": (64, 400, 1 << 16), "strict": (1 << 16, 1 << 20, 1000)}


@pytest.fixture(params=BOUNDS)
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in zip(("_MOST_OF_SITE", "_MOST", "_ROOM"), BOUNDS[request.param], strict=True):
        monkeypatch.setattr(remembered, name, value)
    return str(request.param)


class Chain:
    """One chain that is moved by the compiled loop; with a scratch array as memory if it is ``plain``."""

    def __init__(
        self, model: gs.FactorGraph, x0: NDArray[Any], rule: str, scan: gs.scans.Scan, plain: bool = False
    ) -> None:
        self.graph, self.kernel = gs.graphs.compile_graph(model, "table"), gs.Gibbs(rule)
        layout = lay_out(model, self.graph, self.kernel, None)
        state = start_chain(self.graph, self.kernel, scan, x0, stream(7, 0), layout.conditional)
        assert isinstance(state.memory, Remembered)
        work = Buffer(np.zeros(int(self.graph.cards.max())))
        self.state: State = state._replace(memory=work) if plain else state
        self.tape = layout.empty_tape(self.graph)
        self.parameters, self.schedule = self.kernel.parameters(self.graph), scan.schedule(self.graph, model)

    def sweep(self, sweeps: int, keep: bool) -> None:
        arrays, n = self.graph.arrays, self.graph.n_sites
        sweep_chain(self.parameters, arrays, self.schedule, self.state, self.tape, sweeps, n, keep, alone())

    @property
    def bytes(self) -> list[bytes]:
        parts = (self.state.x, self.state.rng, self.state.cond, self.tape.total, self.tape.open_batch)
        return [part.tobytes() for part in parts]


def rows_of(graph: Graph, memory: Remembered, own: bool, i: int) -> NDArray[np.float64]:
    """Return the rows of one site."""
    blankets = find_blankets(graph, own)
    numbers = 2 * int(graph.cards[i])
    for k in range(int(blankets.start[i]), int(blankets.start[i + 1])):
        numbers *= int(graph.cards[blankets.member[k]])
    first = int(blankets.place[i])
    return memory.table[first : first + numbers].reshape(-1, 2 * int(graph.cards[i]))


# ---- the same bytes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", MODELS)
def test_the_bytes_are_those_of_a_plain_chain(name: str, rule: str, bounds: str) -> None:
    model = MODELS[name]()
    x0 = np.zeros(model.n_sites, int)  # impossible in some of them, which must make no difference either
    for scan in (gs.Systematic(), gs.RandomScan()):
        chain, plain = (Chain(model, x0, rule, scan, plain) for plain in (False, True))
        for sweeps, keep in ((1, False), (40, True), (400, False), (400, True)):
            chain.sweep(sweeps, keep)
            plain.sweep(sweeps, keep)
            assert chain.bytes == plain.bytes, scan
        known = chain.state.memory.place > 0
        before = find_blankets(chain.graph, own=rule != "heat-bath").place > 0
        if bounds == "usual" and name not in ("hub", "wide", "network"):
            assert known.all()
        if bounds == "little" and name in ("network", "hub"):
            assert 0 < before.sum() < before.size
        if bounds == "strict" and name in ("network", "flat network"):
            assert 0 < known.sum() < before.sum(), "some are to be given up, and some not"


@pytest.mark.parametrize("rule", RULES)
def test_where_no_state_is_possible_a_site_stays_and_nothing_is_remembered(rule: str) -> None:
    table = np.zeros((3, 2, 2))
    table[:, 1, 1] = [0.2, 0.0, 0.8]
    table[1, 0, 1] = 1.0
    model = gs.FactorGraph({"a": 3, "b": 2, "c": 2}, [(("a", "b", "c"), table)])
    x0 = np.array([2, 0, 0])  # none of them can sweep_sites
    chain, plain = (Chain(model, x0, rule, gs.Systematic(), plain) for plain in (False, True))
    for one in (chain, plain):
        one.sweep(5, keep=True)
    assert chain.bytes == plain.bytes
    assert chain.state.x.tolist() == [2, 0, 0]
    own = rule != "heat-bath"
    for i in range(3):
        assert (rows_of(chain.graph, chain.state.memory, own, i)[:, 0] == 0.0).all()
    for one in (chain, plain):
        one.state.x[:] = [0, 1, 1]  # from here they can
        one.kernel.forget(one.state.memory)
        one.sweep(200, keep=True)
    assert chain.bytes == plain.bytes
    assert len(set(chain.tape.total.tolist())) > 2


@compiled
def _by_levels(memory: Any, rule: int, size: int, total: float, u: float) -> int:
    remember_levels(rule, memory, 0, np.uintp(1), size, total)
    return pick_by_row(memory, 0, np.uintp(1), np.uintp(size), u)


@compiled
def _by_weights(w: NDArray[np.float64], size: int, level: float) -> int:
    return pick(w, size, level)


def test_levels_choose_as_weights_do_even_where_rounding_reaches_the_total() -> None:
    rng = np.random.default_rng(1)
    ends = 0
    for _ in range(3000):
        size = int(rng.integers(1, 7))
        w = rng.random(size) * (rng.random(size) < 0.7)
        w[rng.integers(size)] += 1e-3
        if rng.random() < 0.5:
            w /= w.sum()
        total = float(sum(w.tolist()))
        for rule, scale in ((HEAT_BATH, total), (METROPOLISED, 1.0)):
            memory = Remembered(
                w.copy(), *[np.zeros(2, np.uint32)] * 3, np.zeros(1, np.int64), np.zeros(20), np.zeros(2, np.int64)
            )
            sums = np.cumsum(w)
            for u in (0.0, rng.random(), float(np.nextafter(1.0, 0.0)), *(sums[:-1] / scale).tolist()):
                if u < 1.0:
                    level = u * scale
                    first = next((a for a in range(size) if level < sums[a]), None)
                    ends += first is None
                    expected = int(np.flatnonzero(w > 0)[-1]) if first is None else first
                    assert _by_weights(w, size, level) == expected
                    assert _by_levels(memory, rule, size, total, u) == expected
    assert ends > 100, "the total must be reached"


# ---- what is remembered


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_every_configuration_has_a_row_of_its_own(name: str, own: bool, bounds: str) -> None:
    model = MODELS[name]()
    graph = gs.graphs.compile_graph(model, "table")
    found = find_blankets(graph, own)
    assert found is find_blankets(graph, own)
    room_of_site, room, _ = BOUNDS[bounds]
    scopes = [set(scope.tolist()) for group in model.groups for scope in group.scopes]
    begins: list[int] = []
    numbers = []
    for i in range(graph.n_sites):
        blanket = set().union(*(scope for scope in scopes if i in scope)) - {i} | ({i} if own else set())
        blanket = {j for j in blanket if graph.cards[j] > 1}
        wanted = 2 * int(graph.cards[i]) * int(np.prod([int(graph.cards[j]) for j in blanket], dtype=object))
        numbers.append(wanted)
        row = slice(int(found.start[i]), int(found.start[i + 1]))
        members, strides = found.member[row].tolist(), found.stride[row].tolist()
        if not found.place[i]:
            assert not members
            continue
        assert wanted <= room_of_site
        assert set(members) == blanket and len(members) == len(blanket)
        states = [range(int(graph.cards[j])) for j in members]
        for codes in itertools.product(*states):
            begin = int(found.place[i]) + sum(s * c for s, c in zip(strides, codes, strict=True))
            begins += range(begin, begin + 2 * int(graph.cards[i]))
    assert sorted(begins) == list(range(1, found.size))
    # small ones first, as long as they fit
    used = 0
    for i in np.argsort(numbers, kind="stable"):
        if numbers[i] <= room_of_site and used + numbers[i] <= room:
            used += numbers[i]
            assert found.place[i] > 0
        else:
            break
    assert used == found.size - 1


@pytest.mark.parametrize("rule", RULES)
def test_rows_are_filled_once_and_finds_are_counted(rule: str) -> None:
    model, own, sweeps = network(), rule != "heat-bath", 300
    chain = Chain(model, np.zeros(model.n_sites, int), rule, gs.Systematic())
    chain.sweep(50, keep=False)  # into the support, where every visit has a possible state
    memory, graph = chain.state.memory, chain.graph
    before = [(rows_of(graph, memory, own, i)[:, 0] > 0).sum() for i in range(graph.n_sites)]
    gain = memory.gain.copy()
    chain.sweep(sweeps, keep=False)
    filled = 0
    for i in np.flatnonzero(memory.place):
        rows = rows_of(graph, memory, own, int(i))
        full = rows[:, 0] > 0
        size = int(graph.cards[i])
        fills = int(full.sum() - before[i])
        filled += 2 * size * fills
        assert memory.gain[i] - gain[i] == sweeps - fills - 3 * fills
        assert np.allclose(rows[full, size:].sum(axis=1), 1.0, rtol=0, atol=1e-14)
        levels = rows[full, 1:size]
        assert (levels[:, 1:] >= levels[:, :-1]).all()
        assert (rows[~full] == 0).all()
    assert gain[-1] - memory.gain[-1] == filled > 0


def test_a_site_with_few_hits_is_given_up_if_the_cache_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_ROOM", 200)
    n = 12
    steady = [((f"{i}", f"{i + 1}", f"{i + 2}"), np.full((2, 2, 2), 1e-9) + np.eye(2)[None] * 0) for i in range(4)]
    for _, table in steady:
        table[0, 0, 0] = 1.0
    restless = [((f"{i}", f"{i + 1}", f"{i + 2}"), np.ones((2, 2, 2))) for i in range(6, n - 2)]
    model = gs.FactorGraph({f"{i}": 2 for i in range(n)}, [*steady, *restless])
    chain = Chain(model, np.zeros(n, int), "heat-bath", gs.Systematic())
    for _ in range(60):
        chain.sweep(1, keep=False)
    memory = chain.state.memory
    assert memory.gain[-1] < 0
    assert (memory.place[:6] > 0).all()
    given_up = memory.place == 0
    assert given_up.any() and (memory.gain[:-1][given_up] < 0).all()


def test_models_that_differ_in_weights_share_blankets_but_no_rows() -> None:
    rng = np.random.default_rng(1)
    scopes = np.arange(6)[:, None] + np.arange(3)
    first = gs.FactorGraph(
        8, groups=[gs.factors.TableFactors(scopes, rng.normal(size=(6, 2, 2, 2)), name="all")], states=2
    )
    second = first.reweight(all=rng.normal(size=(6, 2, 2, 2)))
    graphs = [gs.graphs.compile_graph(model) for model in (first, second)]
    assert find_blankets(graphs[0], own=False) is find_blankets(graphs[1], own=False)
    memories = [remembered_memory(graph, own=False) for graph in (*graphs, graphs[1])]
    for one, other in itertools.combinations(memories, 2):
        assert one.member is other.member and not one.member.flags.writeable
        for part in ("work", "place", "table", "gain"):
            assert not np.shares_memory(getattr(one, part), getattr(other, part))
    for model in (first, second):
        chain, plain = (Chain(model, np.zeros(8, int), "heat-bath", gs.Systematic(), p) for p in (False, True))
        for one in (chain, plain):
            one.sweep(300, keep=True)
        assert chain.bytes == plain.bytes


# ---- part of the whole


@pytest.mark.parametrize("rule", RULES)
def test_all_proofs_hold(rule: str, bounds: str) -> None:
    report = check_kernel(
        gs.Gibbs(rule),
        models={name: tiny_models()[name] for name in ("mixed", "tables")},
        kinds=["table"],
        scans_of=lambda n: (gs.Systematic(), gs.RandomScan()),
        seed=3,
    )
    assert len(report.checks) >= 2 * 2 * 4
    assert report.passed, str(report)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("rule", RULES)
def test_a_killed_and_resumed_run_gives_the_same_bytes_without_a_memory_on_disk(
    rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor.Threads, "block_seconds", 0.0)  # one sweep per block
    model, kernel = network(), gs.Gibbs(rule)
    settings: dict[str, Any] = {"sweeps": 90, "warmup": 3, "chains": 2, "rng": 5, "threads": 1}
    settings["record"] = ["marginals", "draws"]
    place, whole, parts = tmp_path / "run.ckpt", tmp_path / "whole.npz", tmp_path / "parts.npz"
    gs.sample(model, kernel, progress=False, **settings).save(whole)
    before = len(sweep_sites.signatures)
    for blocks in (20, 30):
        seen = 0

        def count(status: Any, last: int = blocks) -> None:
            nonlocal seen
            seen += 1
            if seen > last:
                raise Killed

        with pytest.raises(Killed):
            gs.sample(
                model, kernel, checkpoint=gs.Checkpoint(place, every=0.0, resume=True), progress=count, **settings
            )
        assert not [name for name in load_checkpoint(place)[1] if "memory" in name]
    gs.sample(model, kernel, checkpoint=gs.Checkpoint(place, resume=True), progress=False, **settings).save(parts)
    assert whole.read_bytes() == parts.read_bytes()
    assert len(sweep_sites.signatures) == before, "a fresh memory must have the types of the first"


def test_it_is_chosen_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [(network(), "table", True), (hub(), None, False), (gs.ising_grid((3, 3)), None, False)]
    models += [(gs.potts_grid((3, 3), 3, 0.5), None, False), (gs.FactorGraph({}), "table", True)]
    for (model, kind, expected), rule in itertools.product(models, RULES):
        graph, kernel = gs.graphs.compile_graph(model, kind), gs.Gibbs(rule)
        memory = kernel.memory(graph, stream(1, 0))
        assert remembering_pays(graph) == expected
        assert isinstance(memory, Remembered if expected else Buffer)
        own = (part for part in memory if part.flags.writeable)
        assert kernel.memory_bytes(graph) == sum(part.nbytes for part in own)
    monkeypatch.setattr(remembered, "_MOST_SITES", 10)
    assert not remembering_pays(gs.graphs.compile_graph(network()))
