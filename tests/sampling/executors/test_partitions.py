"""One run of one model shared out to hosts: the bytes of one process, whoever moves which sites."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.kernels.batched.colored import pack_columns
from gibbsite.kernels.batched.cut import look_across, segment_colors
from gibbsite.sampling.executor import Executor
from gibbsite.sampling.executors.partitions.halo import find_halo, host_ranges
from gibbsite.sampling.executors.partitions.host import Host, count_planes, find_stretches, send_chain
from gibbsite.sampling.executors.partitions.joining import Room, check_layout
from gibbsite.sampling.executors.partitions.links import Link
from gibbsite.sampling.layout import choose_scan_and_layout
from gibbsite.sampling.record import lay_out
from tests.sampling.executors import running
from tests.sampling.executors.running import same

pytestmark = pytest.mark.long


def random_graph(n: int, degree: int) -> gs.FactorGraph:
    rng = np.random.default_rng(5)
    pairs = np.unique(np.sort(rng.integers(0, n, (n * degree // 2, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return gs.ising((pairs[:, 0], pairs[:, 1], rng.normal(0, 0.3, len(pairs))), rng.normal(0, 0.3, n))


def rough_grid(*shape: int, periodic: bool = False) -> gs.FactorGraph:
    field = np.random.default_rng(7).normal(0, 0.3, shape)
    return gs.ising_grid(shape, coupling=0.3, field=field, periodic=periodic)


MODELS: dict[str, Any] = {
    "lattice": lambda: gs.ising_grid((70, 61), coupling=0.3),
    "periodic lattice with fields": lambda: rough_grid(66, 64, periodic=True),
    "cube": lambda: rough_grid(12, 20, 19),
    "periodic cube": lambda: rough_grid(12, 20, 18, periodic=True),
    "long rows": lambda: gs.ising_grid((3, 1500), coupling=0.3),
    "Potts": lambda: gs.potts_grid((67, 64), 3, 0.5),
    "random graph": lambda: random_graph(4500, 3),
    "dense random graph": lambda: random_graph(4500, 12),
}


class InOneProcess(Executor):
    """Hosts on threads of this process, with sockets between them."""

    block_seconds = 0.0

    def __init__(self, parts: int, hosts: int, threads: int = 1) -> None:
        self.parts, self.hosts, self.threads = parts, hosts, threads

    def advance(self, chains: Any, rounds: int, length: int, keep: bool) -> float:
        form = check_layout(chains.layout)
        n = form.graph.n_sites
        ranges = host_ranges(form.packed, self.parts, self.hosts)
        links: list[dict[int, Link]] = [{} for _ in range(self.hosts)]
        for i in range(self.hosts):
            for j in range(i):
                one, other = socket.socketpair()
                links[i][j], links[j][i] = Link(one), Link(other)
        hosts = []
        for k in range(self.hosts):
            halo = find_halo(form.arrays(1), ranges, k)
            host = Host(form, chains.parameters, chains.schedule, halo, links[k], self.threads)
            planes = count_planes(form, chains.tapes[0])
            own = find_stretches(ranges[k], planes)
            host.load([send_chain(s, t, own, n) for s, t in zip(chains.states, chains.tapes, strict=True)])
            hosts.append(host)
        with ThreadPoolExecutor(self.hosts) as pool:
            list(pool.map(lambda host: host.move(rounds, length // n, keep), hosts))
        standing = hosts[0].standing()
        rooms = [
            Room.beside(form, state, tape, ranges, tape.counters, each)
            for state, tape, each in zip(chains.states, chains.tapes, standing, strict=True)
        ]
        for k, host in enumerate(hosts):
            there = [piece for room in rooms for piece in room.pieces(form, ranges, k)]
            for piece, values in zip(there, host.news(), strict=True):
                piece[:] = values
            host.close()
        for c, room in enumerate(rooms):
            chains.states[c], chains.tapes[c] = room.move_in(form, ranges, chains.states[c])
            chains.states[c].position[1] += rounds * (length // n)
        return 1.0


def sample(model: Any, executor: Executor | None = None, **how: Any) -> gs.Result:
    return running.sample_by(executor, model, **{"sweeps": 70, "chains": 2, **how})


# One of each layout, in few shares; the others differ in shape and number alone.
LAYOUTS = ("lattice", "Potts", "random graph")
SHARES = ((1, 1, 1), (2, 2, 1), (3, 3, 1), (7, 2, 2), (7, 7, 1))  # parts, hosts, threads of each


@pytest.mark.parametrize(
    ("name", "shares"),
    [(name, SHARES[2:4]) for name in LAYOUTS]
    + [pytest.param(name, SHARES, marks=pytest.mark.campaign) for name in MODELS],
)
def test_shares_give_the_bytes_of_one_process(name: str, shares: Any) -> None:
    model = MODELS[name]()
    alone = sample(model)
    assert alone.plan.form != "plain"
    for parts, hosts, threads in shares:
        assert same(alone, sample(model, InOneProcess(parts, hosts, threads))), (parts, hosts, threads)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("lattice", "shared"),
        pytest.param("periodic lattice with fields", "shared", marks=pytest.mark.campaign),
        ("random graph", "blanket"),
    ],
)
def test_herding_in_shares(name: str, keys: str) -> None:
    """Weights travel with the sites that they belong to."""
    how: dict[str, Any] = {"kernel": gs.HerdedGibbs(keys=keys), "scan": gs.Chromatic(), "sweeps": 40}
    model = MODELS[name]()
    alone = sample(model, **how)
    assert alone.plan.form in ("counted", "arranged")
    for parts, hosts, threads in ((2, 2, 1), (7, 3, 2)):
        assert same(alone, sample(model, InOneProcess(parts, hosts, threads), **how)), (parts, hosts, threads)


RECORDED: dict[str, Any] = {
    "energies, draws, and the best state": [
        "marginals",
        "energy",
        "best",
        gs.Draws(["3", "4000"]),
        gs.recorders.Joint([("0", "7"), ("1", "2", "4100")]),
    ],
    "what chosen sites are": [
        gs.Marginals(rao_blackwell=False),
        gs.Draws(["3", "4000"]),
        gs.recorders.Joint([("0", "7")]),
    ],
    "chosen sites alone": gs.Marginals(sites=["5", "4000"]),
    "the best state alone": "best",
    "all edges": ["marginals", gs.recorders.PairMoments()],
    "functions": [gs.recorders.Magnetisation(), gs.Observable("ends", lambda x: x[0] * x[-1]), "marginals"],
    "correlations on lattices": [gs.recorders.TwoPoint(), "marginals"],
    "meetings of chains": ["marginals", gs.recorders.Overlap()],
}


@pytest.mark.parametrize(
    ("name", "what"),
    [("lattice", what) for what in RECORDED]
    + [
        pytest.param(name, what, marks=pytest.mark.campaign)
        for name in LAYOUTS[1:]
        for what in RECORDED
        if not (name == "random graph" and what == "correlations on lattices")
    ],
)
def test_what_depends_on_all_sites_is_recorded_in_shares(name: str, what: str) -> None:
    model, how = MODELS[name](), {"record": RECORDED[what], "sweeps": 80}
    alone = sample(model, **how)
    assert alone.plan.form != "plain"
    shared = sample(model, InOneProcess(7, 3), **how)
    assert same(alone, shared)


def test_parts_are_balanced_and_their_borders_short() -> None:
    """A grid in a random order, given as a graph: sites of a color are shared out equally, in strips."""
    side = 300
    site = np.random.default_rng(1).permutation(side * side).reshape(side, side)
    pairs = [(site[1:], site[:-1]), (site[:, 1:], site[:, :-1])]
    one, other = (np.concatenate([pair[end].ravel() for pair in pairs]) for end in (0, 1))
    model = gs.ising((one, other, np.full(one.size, 0.1)))
    packed = pack_columns(model, gs.graphs.compile_graph(model))
    assert packed is not None
    ranges = host_ranges(packed, 3, 3)
    first = segment_colors(packed.arrays)
    sizes = np.add.reduceat(ranges[:, :, 1] - ranges[:, :, 0], first[:-1], axis=1)
    assert (np.ptp(sizes, axis=0) <= 1).all() and sizes.sum() == side * side
    # two borders, each of them seen from both sides; the fronts of the search are up to two rows long
    assert sum(look_across(packed.arrays, own).size for own in ranges) <= 2 * 2 * 2 * side


@pytest.mark.parametrize(
    ("side", "said"),
    [(5, "has 25 sites, too few for a partitioned run"), (20, r"has 400\. Give scan as gs\.Chromatic\(\)")],
)
def test_small_models_are_refused_for_their_size(side: int, said: str) -> None:
    model = gs.ising_grid((side, side))
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, gs.Gibbs(), "marginals")
    _, form = choose_scan_and_layout(model, graph, gs.Gibbs(), None, layout, 4)
    with pytest.raises(gs.errors.IncompatibleError, match=said):
        check_layout(form)
