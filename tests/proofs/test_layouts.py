"""Forms that move many sites at once: right conditionals, the right law, the same bytes in every form."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.random.generators import BLOCK, stream
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.local import weights
from gibbsite.inference.exact.enumeration import enumerate_states
from gibbsite.kernels.base import Team, alone
from gibbsite.kernels.batched.colored import MOST_ODDS
from gibbsite.sampling.batched_layouts import PackedLayout, ReplicatedLayout, pack_chains, pack_sites
from gibbsite.sampling.executor import Threads
from gibbsite.sampling.layout import ChainLayout, choose_scan_and_layout
from gibbsite.sampling.record import lay_out
from gibbsite.sampling.sweep import repeatedly, sweep_chain
from gibbsite.testing import FALSE_ALARM, law_p_value, tiny_models

GIBBS = gs.Gibbs()


def random_ising(n: int, degree: float, rng: Any, scale: float = 0.5) -> gs.FactorGraph:
    pairs = np.argwhere(np.triu(rng.random((n, n)) < degree / n, 1))
    return gs.ising((pairs[:, 0], pairs[:, 1], scale * rng.normal(size=len(pairs))), rng.normal(size=n) * scale)


def tiny_potts() -> dict[str, gs.FactorGraph]:
    """Potts lattices: couplings of axes or edges; no fields, one, or one for each site; zeros."""
    rng = np.random.default_rng(6)
    shapes: list[tuple[tuple[int, ...], Any, int]] = [
        ((1,), False, 3),
        ((5,), False, 4),
        ((4,), True, 3),
        ((1, 3), False, 1),
        ((3, 1), False, 5),
        ((3, 3), False, 3),
        ((2, 5), False, 3),
        ((4, 3), (True, False), 3),
        ((3, 4), (False, True), 3),
        ((2, 4), (False, True), 4),
        ((2, 2, 3), False, 3),
        ((1, 3, 3), False, 3),
        ((3, 2, 2), False, 3),
        ((4, 1, 2), (True, False, False), 4),
    ]
    found = {}
    for shape, periodic, states in shapes:
        label = f"{'x'.join(map(str, shape))}{'' if periodic is False else ' periodic'}"
        single = rng.normal(size=(*shape, states))
        edges = rng.normal(size=(len(shape), *shape))
        axes = tuple(0.9 - 0.6 * a for a in range(len(shape)))
        for name, coupling, field in (
            ("one field", axes, single.reshape(-1, states)[0]),
            ("edges", edges, None),
            ("edges and fields", edges, single),
        ):
            model = gs.potts_grid(shape, states, coupling=coupling, field=field, periodic=periodic)
            found[f"potts {label} {name}"] = model
    field = rng.normal(size=(3, 3, 2))
    field[1, 2, 0] = field[0, 0, 1] = -np.inf
    found["potts of two states with zeros"] = gs.potts_grid((3, 3), 2, coupling=0.8, field=field)
    found["potts with an impossible state"] = gs.potts_grid((2, 3), 4, coupling=0.8, field=[0, -np.inf, 1, 0])
    found["potts with a last state of zero"] = gs.potts_grid((2, 3), 3, coupling=-0.8, field=[0, 2, -np.inf])
    found["potts of couplings up to 15"] = gs.potts_grid((2, 3), 3, coupling=(15.0, -13.0), field=[0, 2, -5.0])
    return found


@cache
def models() -> dict[str, gs.FactorGraph]:
    """Models with what could go wrong: odd and thin lattices, hubs, isolated sites, strong fields."""
    rng = np.random.default_rng(5)
    tiny = {name: model for name, model in tiny_models().items() if gs.graphs.compile_graph(model).binary}
    found = {name: model for name, model in tiny.items() if name != "steep"}  # beyond single precision
    shapes: list[tuple[tuple[int, ...], Any]] = [
        ((1,), False),
        ((5,), False),
        ((4,), True),
        ((1, 3), False),
        ((3, 1), False),
        ((3, 3), False),
        ((2, 5), False),
        ((4, 3), (True, False)),
        ((3, 4), (False, True)),
        ((2, 2, 3), False),
        ((1, 3, 3), False),
        ((3, 2, 2), False),
        ((4, 1, 2), (True, False, False)),
        ((3, 3), True),  # an odd periodic lattice needs a third color
    ]
    for shape, periodic in shapes:
        label = f"{'x'.join(map(str, shape))}{'' if periodic is False else ' periodic'}"
        coupling = 0.7 * rng.normal(size=(len(shape), *shape))
        field = rng.normal(size=shape)
        found[f"lattice {label}"] = gs.ising_grid(shape, coupling=coupling, field=field, periodic=periodic)
        weights = tuple(0.3 + 0.2 * a for a in range(len(shape)))
        found[f"uniform {label}"] = gs.ising_grid(shape, coupling=weights, field=-0.2, periodic=periodic)
        found[f"even {label}"] = gs.ising_grid(shape, coupling=0.4, field=0.1, periodic=periodic)
    found |= tiny_potts()
    found["no pairs"] = gs.ising((np.zeros(0, int), np.zeros(0, int), np.zeros(0)), rng.normal(size=5))
    found["hub"] = gs.ising((np.zeros(11, int), np.arange(1, 12), rng.normal(size=11)), rng.normal(size=12))
    found["sparse"] = random_ising(10, 3, rng)
    found["dense"] = random_ising(11, 10, rng)
    found["fields of 50"] = gs.ising(
        (np.arange(5), np.arange(1, 6), rng.normal(size=5)), [25.0, -25.0, 0.1, 25.0, -25.0, 0.0]
    )
    return found


def is_left_to_the_campaign(name: str) -> bool:
    """Tell whether a lattice differs from another one by equal couplings or by missing fields alone."""
    return (name.startswith("even") or name.endswith("edges")) and " 3x3" not in name and " 2x2x3" not in name


every_model = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.campaign] if is_left_to_the_campaign(name) else [])
        for name in sorted(models())
    ],
)


def forms(model: gs.FactorGraph, lanes: int = 3) -> list[ChainLayout]:
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, GIBBS, None)
    found = [pack_sites(model, graph, GIBBS, layout), pack_chains(model, graph, GIBBS, layout, lanes)]
    if graph.kind == "lattice":  # the way of general graphs, too
        graph = gs.graphs.compile_graph(model, "ising")
        found.append(pack_sites(model, graph, GIBBS, lay_out(model, graph, GIBBS, None)))
    return [form for form in found if form is not None]


class Runner:
    """A bundle of chains in a form."""

    def __init__(self, form: ChainLayout, starts: Any, entropy: int = 1, first: int = 0) -> None:
        self.form, self.size = form, len(starts)
        self.state = form.start(list(starts), [stream(entropy, first + c) for c in range(self.size)])
        self.tape = form.tape(self.size)
        self.fixed = GIBBS.parameters(form.graph), form.arrays(self.size), form.schedule()

    def run(self, sweeps: int, keep: bool = False, steps: int | None = None) -> Any:
        length = self.form.graph.n_sites if steps is None else steps
        sweep_chain(*self.fixed, self.state, self.tape, sweeps, length, keep, alone())
        return self

    def states(self) -> Any:
        return np.stack([x for x, _ in self.form.release(self.state, self.tape, self.size)])

    def sums(self) -> Any:
        released = self.form.release(self.state, self.tape, self.size)
        return np.stack([tape.total + tape.open_batch for _, tape in released])


def by_state(graph: gs.graphs.Graph, cells: Any) -> Any:
    """Return the cells of all sites of a model of equal cardinalities as an array (sites, states)."""
    return np.stack([1.0 - cells, cells], axis=1) if graph.binary else cells.reshape(graph.n_sites, -1)


def label(form: ChainLayout) -> str:
    return f"{type(form).__name__} {type(form.arrays(1)).__name__}"


@every_model
def test_conditionals_are_exact(name: str) -> None:
    """After one sweep, a site's recorded probability is its conditional: colors before it have moved."""
    model = models()[name]
    exact = enumerate_states(model)
    every = exact.states if len(exact.states) <= 64 else exact.draw(64, np.random.default_rng(1))
    weight = exact.law.ravel()
    used = forms(model, len(every))
    assert used
    for form in used:
        color = color_sites(form.graph)
        width = form.width
        for k in range(0, len(every), width):
            starts = np.asarray(every[k : k + width], np.int8)
            runner = Runner(form, starts).run(1, keep=True)
            ends = runner.states()
            found = np.stack([by_state(form.graph, p) for p in runner.sums()])
            for i in range(model.n_sites):
                seen = np.where(color < color[i], ends, starts)
                each = np.repeat(seen[:, None], model.cards[i], axis=1)
                each[:, :, i] = np.arange(model.cards[i])
                w = weight[exact.number(each)]
                chances = found[:, i]
                assert np.abs(chances - w / w.sum(axis=1, keepdims=True)).max() < 2e-6, (label(form), i)
                assert (chances[w == 0] == 0).all()


@every_model
def test_the_law_is_kept(name: str) -> None:
    model = models()[name]
    exact = enumerate_states(model)
    starts = exact.draw(1500, np.random.default_rng(2)).astype(np.int8)
    for form in forms(model, len(starts)):
        if form.width > 1:
            ends = Runner(form, starts).run(2).states()
        else:
            assert isinstance(form, PackedLayout)
            runner = Runner(form, starts[:1])
            state = runner.state.x
            twice = repeatedly(*runner.fixed, runner.state, runner.tape, 2, form.graph.n_sites)
            ends = form.order.pack(starts)
            for x in ends:
                state[:] = x
                twice()
                x[:] = state
            ends = form.order.unpack(ends)
        p, worst = law_p_value(exact, ends)
        assert p > FALSE_ALARM, (label(form), worst)


def large_models() -> dict[str, gs.FactorGraph]:
    rng = np.random.default_rng(8)
    return {
        "sparse": random_ising(3000, 4, rng),
        "hub": gs.ising(
            (np.zeros(2999, int), np.arange(1, 3000), 0.004 * rng.normal(size=2999)), 0.1 * rng.normal(size=3000)
        ),
        "lattice": gs.ising_grid((41, 53), coupling=0.3 * rng.normal(size=(2, 41, 53)), field=0.1),
        "uniform": gs.ising_grid((38, 51), coupling=0.3),
        "solid": gs.ising_grid((9, 11, 23), coupling=0.2, field=rng.normal(size=(9, 11, 23))),
    }


def large_potts() -> dict[str, gs.FactorGraph]:
    """Rows longer than a block and shorter, ends that wrap and ends that do not."""
    rng = np.random.default_rng(9)
    return {
        "potts": gs.potts_grid((41, 53), 4, coupling=0.6),
        "potts lines": gs.potts_grid((3, 1102), 3, 0.7, [0.1, 0.0, 0.4], periodic=(False, True)),
        "potts edges": gs.potts_grid(
            (40, 53), 3, rng.normal(size=(2, 40, 53)), rng.normal(size=(40, 53, 3)), periodic=(True, False)
        ),
        "potts solid": gs.potts_grid((9, 10, 23), 5, (0.3, 0.5, -0.4), periodic=(False, True, False)),
        "potts solid edges": gs.potts_grid((9, 11, 23), 3, rng.normal(size=(3, 9, 11, 23))),
        "potts chain": gs.potts_grid(2500, 300, rng.normal(size=(1, 2500))),
    }


EVERY = {**large_models(), **large_potts()}


def random_start(model: gs.FactorGraph) -> Any:
    """Return a state of one chain."""
    return np.random.default_rng(1).integers(0, model.cards[0], (1, model.n_sites)).astype(np.int16)


@pytest.mark.parametrize("name", sorted(large_models()))
def test_replicas_equal_single_chains(name: str) -> None:
    model = large_models()[name]
    graph = gs.graphs.compile_graph(model, "ising")
    layout = lay_out(model, graph, GIBBS, None)
    starts = np.random.default_rng(1).integers(0, 2, (5, model.n_sites)).astype(np.int8)
    side, one = pack_chains(model, graph, GIBBS, layout, 5), pack_sites(model, graph, GIBBS, layout)
    assert side is not None and one is not None
    together = Runner(side, starts).run(7, keep=True)
    for c in range(5):
        alone_ = Runner(one, starts[c : c + 1], first=c).run(7, keep=True)
        assert (alone_.states()[0] == together.states()[c]).all()
        assert np.allclose(alone_.sums()[0], together.sums()[c], atol=1e-12)


@pytest.mark.parametrize("name", sorted(large_potts()))
def test_conditionals_of_boards_are_those_of_the_plain_kind(name: str) -> None:
    """Even sites see the odd ones as they were, odd sites the even ones as they are now."""
    model = EVERY[name]
    (form,) = forms(model)
    assert form.name == "checkered"
    start = random_start(model)
    runner = Runner(form, start).run(1, keep=True)
    x, y, sums = start[0], runner.states()[0], by_state(form.graph, runner.sums()[0])
    color = color_sites(form.graph)
    seen, work = np.where(color == 0, y, x), np.zeros(model.cards[0])
    for i in range(0, model.n_sites, 1 if work.size < 10 else 17):
        _, total = weights(form.graph.arrays, x if color[i] == 0 else seen, i, work)
        assert np.abs(sums[i] - work / total).max() < 1e-6
    # each is rounded to a 32-bit float
    assert np.abs(sums.sum(axis=1) - 1.0).max() <= sums.shape[1] * 2.0**-25


@pytest.mark.parametrize("name", sorted(EVERY))
@pytest.mark.parametrize("members", [2, 3, 4])
def test_teams_equal_one_thread(name: str, members: int) -> None:
    model = EVERY[name]
    graph = gs.graphs.compile_graph(model)
    form = pack_sites(model, graph, GIBBS, lay_out(model, graph, GIBBS, None))
    assert form is not None
    start = random_start(model)
    single, shared = Runner(form, start).run(9, keep=True), Runner(form, start)
    gate = np.zeros(1, np.int64)

    def move(member: int) -> None:
        sweep_chain(
            GIBBS.parameters(graph),
            form.arrays(1),
            form.schedule(),
            shared.state,
            shared.tape,
            9,
            model.n_sites,
            True,
            Team(member, members, gate),
        )

    with Threads(members) as executor:
        executor.map(move, range(members))
    assert (single.states() == shared.states()).all()
    assert (single.sums() == shared.sums()).all()
    assert single.state.position.tolist() == shared.state.position.tolist()


@pytest.mark.parametrize("name", sorted(EVERY))
def test_parts_of_sweeps_add_up(name: str) -> None:
    model = EVERY[name]
    n = model.n_sites
    start = random_start(model)
    for form in forms(model, 1):
        whole, parts = Runner(form, start).run(3), Runner(form, start)
        for steps in (1, BLOCK, n - 7, 3 * n - (1 + BLOCK + n - 7)):
            parts.run(1, steps=steps)
        assert (whole.states() == parts.states()).all(), label(form)
        # a round that is no whole number of sweeps counts states instead of adding conditionals up
        counted = Runner(form, start).run(1, keep=True, steps=n + 5)
        states = np.arange(model.cards[0])
        indicators = counted.states()[0][:, None] == states
        assert (by_state(form.graph, counted.sums()[0]) == indicators).all()


@pytest.mark.parametrize("name", sorted(EVERY))
def test_log_potentials_agree(name: str) -> None:
    model = EVERY[name]
    result = gs.sample(
        model, scan=gs.Chromatic(), sweeps=3, chains=1, rng=1, record=["energy", "best", "draws"], progress=False
    )
    assert result.plan.form in ("arranged", "checkered")
    for k in range(3):
        x = result.draws[0, k]
        assert abs(result.energy[0, k] + model.log_potential(x)) < 1e-5 * max(1.0, abs(model.log_potential(x)))
    assert result.log_potential == -min(result.energy[0])


@pytest.mark.parametrize("strength", [1e3, 1e20, 1e39, 1e90])
@pytest.mark.parametrize("states", [2, 3])
def test_couplings_beyond_single_precision_take_the_plain_form(strength: float, states: int) -> None:
    rng = np.random.default_rng(1)
    coupling = strength * rng.normal(size=(2, 20, 20))
    model = gs.ising_grid((20, 20), coupling) if states == 2 else gs.potts_grid((20, 20), states, coupling)
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, GIBBS, None)
    for chains in (4, 64):
        for scan in (gs.Chromatic(), None):
            scan, form = choose_scan_and_layout(model, graph, GIBBS, scan, layout, chains)
            assert form.name == "plain"
        assert isinstance(scan, gs.Systematic)  # by itself: no color moves at once
    assert pack_sites(model, graph, GIBBS, layout) is None and strength > MOST_ODDS


def test_forms_are_chosen_by_themselves() -> None:
    model = gs.ising_grid((20, 20), coupling=0.1)
    graph = gs.graphs.compile_graph(model)
    layout = lay_out(model, graph, GIBBS, None)

    def chosen(kernel: gs.kernels.Kernel, scan: gs.scans.Scan, chains: int, lay: Any = layout) -> type[ChainLayout]:
        return type(choose_scan_and_layout(model, graph, kernel, scan, lay, chains)[1])

    assert chosen(GIBBS, gs.Chromatic(), 4) is PackedLayout
    assert chosen(GIBBS, gs.Chromatic(), 64) is ReplicatedLayout
    assert chosen(GIBBS, gs.Chromatic(), 64, lay_out(model, graph, GIBBS, "energy")) is PackedLayout
    for kernel, scan in ((GIBBS, gs.Systematic()), (gs.Gibbs("metropolised"), gs.Chromatic())):
        assert chosen(kernel, scan, 64).__name__ == "PlainLayout"


def test_fields_of_fifty_take_the_plain_form_and_are_right() -> None:
    """Their log-odds, 100, are beyond what is summed up in single precision."""
    field = np.where(np.arange(400).reshape(20, 20) % 3, 50.0, -50.0)
    model = gs.ising_grid((20, 20), coupling=0.5, field=field)
    for chains in (2, 16):
        result = gs.sample(model, scan=gs.Chromatic(), sweeps=50, chains=chains, rng=1, progress=False)
        assert result.plan.form == "plain"
        seen = np.array([result.marginals[site][1] for site in model.sites])
        assert np.array_equal(seen > 0.5, field.ravel() > 0)
        assert np.abs(seen - (field.ravel() > 0)).max() < 1e-12


def test_boards_of_potts_lattices_are_refused_where_they_would_be_wrong() -> None:
    field = np.zeros((20, 20, 3))
    field[3, 4, 1] = -40.0
    pair = gs.factors.AgreementFactors([[0, 399]], [0.5])
    grid = gs.potts_grid((20, 20), 3, coupling=0.5)
    second = gs.factors.LatticeFactors((20, 20), (False, False), 0.5, spin=False)
    fine = {
        "plain": grid,
        "zeros": gs.potts_grid((20, 20), 3, 0.5, np.where(field < 0, -np.inf, 0.0)),
        "strong": gs.potts_grid((20, 20), 3, 5.9, field),
    }
    wrong = {
        "stronger": gs.potts_grid((20, 20), 3, 6.1, field),
        "odd ring": gs.potts_grid((20, 21), 3, 0.5, periodic=(False, True)),
        "four axes": gs.potts_grid((4, 4, 5, 5), 3, 0.5),
        "one more pair": gs.FactorGraph(400, groups=[*grid.groups, pair], states=3),
        "holes": grid.observe({"5": 1}),
        "two lattices": gs.FactorGraph(400, groups=[*grid.groups, second], states=3),
    }
    for name, model in {**fine, **wrong}.items():
        graph = gs.graphs.compile_graph(model)
        form = pack_sites(model, graph, GIBBS, lay_out(model, graph, GIBBS, None))
        assert (form is not None) == (name in fine), name
