"""Dense layers drawn by matrix products: the states that 64-bit log-odds decide, for any number of chains."""

from __future__ import annotations

import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._numba.jit import compiled
from gibbsite._numba.random.generators import WORDS, chain_key, philox, stream
from gibbsite.graphs import color
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.kinds import base as rows_of_pairs
from gibbsite.graphs.local import log_odds
from gibbsite.inference.exact.enumeration import Enumeration, enumerate_states
from gibbsite.kernels.batched import base as batched
from gibbsite.kernels.batched import layers
from gibbsite.kernels.batched.heatbath import exponential, unit
from gibbsite.kernels.batched.layers import DRAW_ERROR, PIECE, TILE, LayeredGraph, pack_layers
from gibbsite.models import weighted
from gibbsite.sampling import executor
from gibbsite.sampling.batched_layouts import ReplicatedLayout
from gibbsite.sampling.layout import choose_scan_and_layout
from gibbsite.sampling.progress import Status
from gibbsite.sampling.record import lay_out
from gibbsite.testing import FALSE_ALARM, law_p_value
from tests.proofs.test_layouts import Runner

GIBBS = gs.Gibbs()


# Helpers called from Python run as Python; these run as they do in a sweep.


@compiled
def compiled_draw(odds: Any, words: Any, x: Any, margin: Any) -> bool:
    zero = np.uintp(0)
    return layers._draw(odds, zero, words, zero, x, zero, np.uintp(x.size), margin)


@compiled
def compiled_sums(arrays: Any, first: Any, base: Any, inputs: Any, room: Any) -> None:
    layers._add_up(arrays, first, base, inputs, room)


def layered(model: gs.FactorGraph, bundle: int = 4096) -> ReplicatedLayout:
    """Lay chains of a model out in layers, however small they are."""
    graph = gs.graphs.compile_graph(model, "ising")
    packed = pack_layers(graph, least_layer=1)
    assert packed is not None
    return ReplicatedLayout(graph, GIBBS, lay_out(model, graph, GIBBS, None), layers.Layers(), packed, bundle)


def tiny() -> dict[str, gs.FactorGraph]:
    """Layers smaller and larger than a tile, missing pairs, parallel factors, a site without neighbours."""
    rng = np.random.default_rng(4)
    found = {
        f"{m} x {n}": gs.rbm(rng.normal(size=(m, n)), rng.normal(size=m), rng.normal(size=n))
        for m, n in ((1, 1), (1, 6), (2, 3), (4, 4), (9, 2), (3, 8))
    }
    found["no biases"] = gs.rbm(np.array([[0.7, 0.0], [-0.9, 1.2], [0.0, 0.0]]))
    found["nothing"] = gs.rbm(np.zeros((3, 3)))
    strong = 40.0 * rng.normal(size=(3, 4))
    found["couplings of 100"] = gs.rbm(strong, -strong.sum(axis=1) / 2, -strong.sum(axis=0) / 2)
    i, j = np.array([0, 0, 3, 3, 3]), np.array([1, 2, 1, 2, 4])
    holes = gs.ising((i, j, rng.normal(size=5)), rng.normal(size=6))
    twice = gs.factors.SpinFactors([[0, 1], [4, 3]], [0.3, -0.5])
    found["holes and parallel factors"] = gs.FactorGraph(6, groups=[*holes.groups, twice], states=(-1, 1))
    return found


def medium() -> dict[str, gs.FactorGraph]:
    """More than one piece and not a whole number of them, tiles that are not full, odds of every size."""
    rng = np.random.default_rng(6)

    def of(m: int, n: int, scale: float) -> gs.FactorGraph:
        w = scale * rng.normal(size=(m, n))
        # biases that keep most units undecided, where sums cancel and rounding is largest
        return gs.rbm(w, rng.normal(size=m) - w.sum(axis=1) / 2, rng.normal(size=n) - w.sum(axis=0) / 2)

    return {
        "weak": of(150, 67, 0.02),
        "usual": of(130, 201, 0.1),
        "strong": of(71, 129, 3.0),
        "very strong": of(66, 70, 200.0),
    }


# ---- exact


def conditionals(form: ReplicatedLayout, starts: Any) -> tuple[Any, Any]:
    """Return the states after a sweep, and the probabilities that were recorded."""
    runner = Runner(form, starts).run(1, keep=True)
    return runner.states(), runner.sums()


@pytest.mark.parametrize("name", sorted(tiny()))
def test_recorded_probabilities_are_the_conditionals(name: str) -> None:
    model = tiny()[name]
    exact = enumerate_states(model)
    form = layered(model)
    color = color_sites(form.graph)
    after, chances = conditionals(form, exact.states.astype(np.int8))
    margin = form.order.unpack(form.packed.arrays.margin)
    for x, y, p in zip(exact.states, after, chances, strict=True):
        for i in range(model.n_sites):
            seen = np.where(color < color[i], y, x).astype(np.int8)
            true = 1.0 / (1.0 + np.exp(-log_odds(form.graph.arrays, seen, i)))
            # a relative error of the small probability, half of the margin, plus 32-bit rounding
            assert abs(p[i] - true) <= margin[i] / 2 * min(true, 1 - true) + 2.0**-23
    if name != "couplings of 100":
        assert margin.max() < 2e-4


def chance_of_one(y: float) -> float:
    """Return the share of all 2^32 words that decide for state 1, by bisection in both halves of them."""
    total = 0
    for bit in (0, 1):
        low, high = -1, 1 << 31  # the decision falls from the one's to the other's, at one place at most
        at_least = layers._decide(np.uint32(bit), y)
        while high - low > 1:
            middle = (low + high) // 2
            if layers._decide(np.uint32(middle << 1 | bit), y) == at_least:
                low = middle
            else:
                high = middle
        total += high if at_least else (1 << 31) - high
    return total * 2.0**-32


def test_decisions_have_the_right_chance() -> None:
    for y in [0.0, 1e-9, -1e-9, *np.random.default_rng(1).normal(size=200) * 8, 21.0, -21.0, 80.0, -500.0]:
        assert abs(chance_of_one(float(y)) - 1.0 / (1.0 + np.exp(-y))) <= 2.0**-31


def sweep_by_words(exact: Enumeration, graph: gs.graphs.Graph, parallel: bool = False) -> Any:
    """Return the transition matrix of a sweep that decides by log-odds and uniformly distributed words.

    ``parallel``: a mistake, both layers see the state before the sweep.
    """
    color = color_sites(graph)
    states = exact.states.astype(np.int8)
    steps = []
    for layer in (0, 1):
        matrix = np.ones((len(states), len(states)))
        for a, x in enumerate(states):
            for i in range(graph.n_sites):
                p = chance_of_one(log_odds(graph.arrays, x, i))
                own = np.where(states[:, i] == 1, p, 1.0 - p)
                matrix[a] *= own if color[i] == layer else (1.0 if parallel else states[:, i] == x[i])
        steps.append(matrix)
    if not parallel:
        return steps[0] @ steps[1]
    return steps[0] * steps[1]


@pytest.mark.parametrize(
    "name", ["2 x 3", pytest.param("1 x 6", marks=pytest.mark.campaign), "no biases", "holes and parallel factors"]
)
def test_the_transition_matrix_keeps_the_law(name: str) -> None:
    model = tiny()[name]
    exact, graph = enumerate_states(model), gs.graphs.compile_graph(model, "ising")
    pi = exact.probabilities
    matrix = sweep_by_words(exact, graph)
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-12
    # words have a resolution of 2^-32
    assert np.abs(pi @ matrix - pi).max() < graph.n_sites * 2.0**-31
    assert np.abs(np.linalg.matrix_power(matrix, 1 << 20) - pi).max() < 1e-6
    wrong = sweep_by_words(exact, graph, parallel=True)
    assert np.abs(pi @ wrong - pi).max() > 1e-3


# ---- draws


def draw_with_words(words: Any, y: Any, computed: Any, margin: float) -> tuple[Any, Any]:
    """Return the states that compiled code draws from computed log-odds, and where it is not sure."""
    y32 = np.array(computed, np.float32)
    x = np.zeros(y32.size, np.int8)
    compiled_draw(y32, words, x, np.float32(margin))
    product = (np.float32(2.0**-31) * (np.float32(words >> 1) + np.float32(0.5))) * np.abs(y32)
    return x, np.abs(product - np.float32(2.0)) <= np.float32(margin)


@pytest.mark.parametrize("error", [0.0, 1e-5, 1e-3, 0.09])
def test_draws_that_are_not_made_again_do_not_depend_on_errors_of_log_odds(error: float) -> None:
    """Log-odds of every size, wrong by up to ``error``; half of the words decide by a hair."""
    rng = np.random.default_rng(3)
    size = 4000
    y = np.concatenate([rng.normal(size=size) * 0.1 * error, rng.normal(size=size), rng.normal(size=size) * 20])
    words = rng.integers(0, 1 << 32, y.size, dtype=np.uint64).astype(np.uint32)
    with np.errstate(over="ignore"):
        close = np.minimum(2.0 / (1.0 + np.exp(np.abs(y))), 1.0) * (1 << 31)
    shift = rng.normal(size=y.size) * (close * max(2 * error, 2e-5) + 2.0)
    near = np.clip(close + shift, 0, (1 << 31) - 1).astype(np.uint32)
    half = rng.random(y.size) < 0.5
    words[half] = near[half] << np.uint32(1) | (y[half] > 0).astype(np.uint32)
    relative = np.expm1(error) + DRAW_ERROR
    margin = 2.001 * relative / (1.0 - relative)
    x, doubtful = draw_with_words(words, y, y + rng.choice([-1, 1], y.size) * error * 0.999, margin)
    true = np.array([layers._decide(word, float(each)) for word, each in zip(words, y, strict=True)])
    assert (x == true)[~doubtful].all()
    assert error == 0.0 or not (x == true)[doubtful].all()  # the margin is not there for nothing
    assert doubtful.sum() > 100 and (~doubtful[half]).sum() > 100


def test_the_relative_error_of_a_draw_is_bounded() -> None:
    """In steps of less than 32-bit floats have, where it is largest, and over the whole range."""
    rng = np.random.default_rng(5)
    y = np.concatenate([np.linspace(0, 80, 20001), 80 - rng.random(2000) * 0.01]).astype(np.float32)
    inverse = np.array([np.float32(1.0) + exponential(each) for each in y], np.float64)
    assert np.abs(inverse / (1.0 + np.exp(y.astype(np.float64))) - 1.0).max() < 0.8 * DRAW_ERROR
    words = rng.integers(0, 1 << 32, 1000, dtype=np.uint64).astype(np.uint32)
    v = np.array([unit(word) for word in words], np.float64)
    assert np.abs(v / (((words >> 1) + 0.5) * 2.0**-31) - 1.0).max() < 0.01 * DRAW_ERROR


# ---- whole runs


def words_of(chains: int, entropy: int, turn: int, start: int, size: int) -> Any:
    """Return the words of a layer (size, chains): four consecutive positions share a counter."""
    keys = np.stack([chain_key(stream(entropy, c)) for c in range(chains)], axis=1)
    first = start + np.arange(0, size, 4, dtype=np.uint32)
    shape = (first.size, chains)
    rest = [np.full(shape, number, np.uint32) for number in (WORDS, turn, 0)]
    four = philox(np.broadcast_to(first[:, None], shape), *rest, *(np.broadcast_to(k, shape) for k in keys))
    return np.stack(four, axis=1).reshape(-1, chains)[:size]


def reference(form: ReplicatedLayout, starts: Any, sweeps: int, entropy: int = 1) -> Any:
    """Make sweeps with NumPy: log-odds of plain Gibbs, the rule of the layers, the words of the chains."""
    arrays: LayeredGraph = form.packed.arrays
    x = form.order.pack(np.array(starts))
    for turn in range(sweeps):
        for layer in (0, 1):
            start, end = arrays.start[layer], arrays.start[layer + 1]
            words = words_of(len(x), entropy, turn, int(start), int(end - start))
            seen = form.order.unpack(x)
            for p in range(start, end):
                y = [log_odds(form.graph.arrays, each, int(arrays.site[p])) for each in seen]
                x[:, p] = [layers._decide(word, z) for word, z in zip(words[p - start], y, strict=True)]
    return form.order.unpack(x)


def random_starts(model: gs.FactorGraph, chains: int) -> Any:
    return np.random.default_rng(1).integers(0, 2, (chains, model.n_sites)).astype(np.int8)


LONG = {"weak": [pytest.mark.campaign], "strong": [pytest.mark.campaign], "usual": [pytest.mark.long]}


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, [])) for name in sorted(tiny() | medium())])
def test_states_are_those_of_64_bit_log_odds(name: str) -> None:
    """Bit by bit: what 32-bit sums leave open is decided by the log-odds of plain Gibbs."""
    model = (tiny() | medium())[name]
    starts = random_starts(model, 33)
    form = layered(model)
    sweeps = 2
    assert (Runner(form, starts).run(sweeps).states() == reference(form, starts, sweeps)).all()


def spoiled(form: ReplicatedLayout, **arrays: Any) -> ReplicatedLayout:
    packed = form.packed._replace(arrays=form.packed.arrays._replace(**arrays))
    return ReplicatedLayout(form.graph, form.kernel, form.record, form.update, packed, form.bundle)


def test_a_product_without_margins_is_noticed() -> None:
    """Weights of 16 bits: with margins for that the states are right, without they are not."""
    model = medium()["strong"]
    form, starts = layered(model), random_starts(model, 64)
    right = Runner(form, starts).run(3).states()
    coarse = form.packed.arrays.weight.astype(np.float16).astype(np.float32)
    wide = np.full(model.n_sites, 1.9, np.float32)
    assert (Runner(spoiled(form, weight=coarse, margin=wide), starts).run(3).states() == right).all()
    none = np.full(model.n_sites, -1.0, np.float32)
    assert not (Runner(spoiled(form, weight=coarse, margin=none), starts).run(3).states() == right).all()


@pytest.mark.parametrize("name", sorted(tiny()))
def test_the_law_is_kept(name: str) -> None:
    model = tiny()[name]
    exact = enumerate_states(model)
    starts = exact.draw(4000, np.random.default_rng(2)).astype(np.int8)
    p, worst = law_p_value(exact, Runner(layered(model), starts).run(2).states())
    assert p > FALSE_ALARM, worst


def test_mistakes_are_caught_by_the_law() -> None:
    model = tiny()["4 x 4"]
    exact, form = enumerate_states(model), layered(model)
    starts = exact.draw(4000, np.random.default_rng(2)).astype(np.int8)
    arrays = form.packed.arrays
    n = arrays.weight.size // 2
    none = np.full(model.n_sites, -1.0, np.float32)
    mistakes = {
        "couplings not transposed": np.concatenate([arrays.weight[:n], arrays.weight[:n]]),
        "an input left out": np.where(np.arange(2 * n) // TILE % 4 == 3, np.float32(0.0), arrays.weight),
    }
    for mistake, weight in mistakes.items():
        p, _ = law_p_value(exact, Runner(spoiled(form, weight=weight, margin=none), starts).run(2).states())
        assert p < FALSE_ALARM, mistake
    # both layers from the state before the sweep
    first, second = Runner(form, starts).run(1, steps=4), Runner(form, starts)
    second.state.position[0] = 4
    second.run(1, steps=4)
    color = color_sites(form.graph)
    p, _ = law_p_value(exact, np.where(color == 0, first.states(), second.states()))
    assert p < FALSE_ALARM


@pytest.mark.parametrize("name", sorted(medium()))
def test_a_chain_is_the_same_for_any_number_of_chains(name: str) -> None:
    model = medium()[name]
    starts = random_starts(model, 57)
    together = Runner(layered(model), starts).run(5, keep=True)
    for first, count in ((0, 1), (3, 1), (20, 29)):
        part = Runner(layered(model), starts[first : first + count], first=first).run(5, keep=True)
        assert (part.states() == together.states()[first : first + count]).all()
        assert (part.sums() == together.sums()[first : first + count]).all()


def test_parts_of_sweeps_add_up() -> None:
    model = medium()["usual"]
    n, starts, form = model.n_sites, random_starts(model, 5), layered(model)
    whole, parts = Runner(form, starts).run(3), Runner(form, starts)
    for steps in (1, 9, TILE, 119, n - 2, 2 * n + 2 - 137):
        parts.run(1, steps=steps)
    assert parts.state.position.tolist() == [0, 3]
    assert (whole.states() == parts.states()).all()


def test_compiled_tiles_add_up_as_in_python() -> None:
    rng = np.random.default_rng(2)
    model = medium()["usual"]
    form = layered(model)
    arrays = form.arrays(40)
    state = form.start(list(random_starts(model, 40)), [stream(1, c) for c in range(40)])
    inputs = int(arrays.start[1])
    assert inputs > 2 * PIECE and inputs % PIECE
    room = state.memory.room
    room.inputs[: inputs * 40] = rng.integers(0, 2, inputs * 40)
    first, base = np.uintp(arrays.tile_start[1]), np.uintp(arrays.start[1])
    compiled_sums(arrays, first, base, np.uintp(inputs), room)
    weight = arrays.weight[int(first) :][: inputs * TILE].reshape(inputs, TILE)
    x = room.inputs[: inputs * 40].reshape(inputs, 40)
    expected = np.repeat(arrays.field[int(base) : int(base) + TILE, None], 40, axis=1)
    for k in range(0, inputs, PIECE):
        piece = np.zeros((TILE, 40), np.float32)
        for row, states in zip(weight[k : k + PIECE], x[k : k + PIECE], strict=True):
            piece += row[:, None] * states
        expected += piece
    assert (room.odds.reshape(TILE, 40) == expected).all()


# ---- through gibbsite.sample


def exact_means(w: Any, b: Any, c: Any) -> Any:
    """Return the marginals of a machine of few hidden units, by summing over all their states."""
    hidden = (np.arange(1 << c.size)[:, None] >> np.arange(c.size)) & 1
    fields = b + hidden @ w.T
    log_p = hidden @ c + np.logaddexp(0.0, fields).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return np.concatenate([p @ (1.0 / (1.0 + np.exp(-fields))), p @ hidden])


def machine() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(7)
    return 0.25 * rng.normal(size=(40, 16)), 0.3 * rng.normal(size=40), 0.3 * rng.normal(size=16)


def run(model: gs.FactorGraph, **options: Any) -> gs.Result:
    return gs.sample(model, **{"chains": 100, "sweeps": 400, "rng": 1, "progress": False} | options)


def test_runs_of_many_chains_are_right() -> None:
    """Against the exact answer, and against plain chromatic Gibbs; deviations in standard errors."""
    w, b, c = machine()
    model, exact = gs.rbm(w, b, c), exact_means(w, b, c)
    found = run(model)
    plain = run(model, chains=15, scan=gs.Chromatic(), sweeps=2000)
    assert found.plan.form == "layered" and found.plan.scan["name"] == "Chromatic"
    assert plain.plan.form == "plain"
    for result in (found, plain):
        mean, error = (np.array([table[site][1] for site in model.sites]) for table in (result.marginals, result.mcse))
        # one of 56 normal deviations beyond 6: 1e-7
        assert np.abs((mean - exact) / error).max() < 6.0
    # conditionals are averaged, not states: errors are below those of as many independent draws
    assert max(found.mcse[site][1] for site in model.sites) < 0.5 / np.sqrt(found.n_draws * found.chains)


def test_threads_checkpoints_and_interrupts_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = medium()["usual"]
    whole = run(model, sweeps=60, threads=1)
    assert whole.plan.form == "layered"
    monkeypatch.setattr(executor.Threads, "block_seconds", 1e-9)
    path = tmp_path / "run.npz"

    def interrupt(status: Status) -> None:
        if status.phase == "sampling":
            signal.raise_signal(signal.SIGINT)

    early = run(model, sweeps=60, threads=2, checkpoint=gs.Checkpoint(path, every=0.0), progress=interrupt)
    assert early.interrupted and early.n_draws < whole.n_draws
    for same in (run(model, sweeps=60, threads=2), run(model, sweeps=60, checkpoint=gs.Checkpoint(path, resume=True))):
        assert (same.totals == whole.totals).all() and (same._trace == whole._trace).all()


def test_persistent_chains_go_on_and_take_new_weights() -> None:
    w, b, c = machine()
    model = gs.rbm(w, b, c)
    chains = gs.PersistentChains(model, chains=64, rng=1)
    chains.run(3)
    copy = pickle.loads(pickle.dumps(chains))
    whole = gs.PersistentChains(model, chains=64, rng=1).run(8)
    assert (chains.run(5).states == whole.states).all() and (copy.run(5).states == whole.states).all()
    assert chains.result().plan.form == "layered"
    # only biases, which pin all units but the first one
    state = np.random.default_rng(2).integers(0, 2, model.n_sites)
    fields = 20.0 * (2 * state - 1)
    fields[0] = 0.0
    chains.reweight(couplings=0.0, fields=fields).run(200)
    assert (chains.states[:, 1:] == state[1:]).all()
    assert abs(chains.marginals["v0"][1] - 0.5) < 1e-12  # its conditional, in every chain and sweep


def test_chains_that_came_into_layers_by_new_weights_are_pickled_as_they_are() -> None:
    w, b, c = machine()
    chains = gs.PersistentChains(gs.rbm(1e9 * w, b, c), chains=64, rng=1).run(1)
    assert chains.result().plan.form == "plain"
    fields = gs.rbm(w, b, c).group("fields")
    assert isinstance(fields, gs.factors.SpinFactors)
    chains.reweight(couplings=w.ravel() / 4, fields=fields.weights).run(1)
    assert chains.result().plan.form == "layered"
    chains.reweight(couplings=w.ravel() / 5).run(1)
    copy = pickle.loads(pickle.dumps(chains))
    assert (chains.run(5).states == copy.run(5).states).all()


def test_couplings_of_a_pair_with_several_factors_are_added_up() -> None:
    w, b, c = machine()
    once = gs.rbm(w, b, c)
    pairs, fields = once.group("couplings"), once.group("fields")
    assert isinstance(pairs, gs.factors.SpinFactors)
    rows = np.random.default_rng(4).permutation(len(pairs.scopes))
    parts = [
        gs.factors.SpinFactors(pairs.scopes[rows][:, ::-1], 0.25 * pairs.weights[rows]),
        gs.factors.SpinFactors(pairs.scopes, 0.75 * pairs.weights, "rest"),
        fields,
    ]
    several = gs.FactorGraph(once.sites, groups=parts, states=2)
    for model in (several, several.reweight(rest=0.75 * pairs.weights)):
        found, wanted = pack_layers(gs.graphs.compile_graph(model)), pack_layers(gs.graphs.compile_graph(once))
        assert found is not None and wanted is not None
        assert np.allclose(found.arrays.weight, wanted.arrays.weight, rtol=1e-6, atol=1e-9)
        assert (found.arrays.margin >= 0.999 * wanted.arrays.margin).all()


def test_new_weights_repeat_no_work_that_depends_on_the_structure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    w, b, c = machine()
    model = gs.rbm(w, b, c)
    chains = gs.PersistentChains(model, gs.Gibbs(), chains=64, rng=1).run(1)
    weights = np.asarray(model.group("couplings").weights)
    chains.reweight(couplings=0.5 * weights).run(1)  # keeps the source of each stored coupling
    done: list[str] = []

    def count(module: Any, name: str) -> None:
        real = getattr(module, name)

        def call(*args: Any) -> Any:
            done.append(name)
            return real(*args)

        monkeypatch.setattr(module, name, call)

    for module, name in (
        (layers, "_find_structure"),
        (rows_of_pairs, "build_rows"),
        (color, "_two_colors"),
        (weighted, "check_scopes"),
        (batched, "read_declarations"),
    ):
        count(module, name)
    for share in (0.25, 0.75):
        chains.reweight(couplings=share * weights).run(1)
        chains.run(1, model=model.reweight(couplings=-share * weights))
    assert not done
    gs.PersistentChains(gs.rbm(w, b, c), gs.Gibbs(), chains=64, rng=1)  # another structure
    assert done == ["check_scopes", "check_scopes", "build_rows", "_two_colors", "_find_structure"]


def test_new_weights_give_the_layers_of_a_fresh_model() -> None:
    w, b, c = machine()
    model = gs.rbm(w, b, c)
    pairs = model.group("couplings")
    parts = [gs.factors.SpinFactors(pairs.scopes, 0.5 * pairs.weights), model.group("fields")]
    fresh = gs.FactorGraph(model.sites, groups=parts, states=2)
    wanted = pack_layers(gs.graphs.compile_graph(fresh))
    for _ in range(3):
        model = model.reweight(couplings=0.5 * pairs.weights)
        found = pack_layers(gs.graphs.compile_graph(model))
        assert found is not None and wanted is not None
        for name in ("weight", "field", "margin"):
            assert np.array_equal(getattr(found.arrays, name), getattr(wanted.arrays, name))


def test_layers_are_found_and_chosen() -> None:
    rng = np.random.default_rng(1)
    w = 0.1 * rng.normal(size=(30, 20))
    i, j = np.nonzero(rng.random((30, 20)) < 0.5)
    order = rng.permutation(50)
    i, j = order[i], order[30 + j]
    some = 0.1 * rng.normal(size=i.size)
    inside = np.nonzero(~np.isin(order[:30], i[:1]))[0][:1]
    few = rng.random(i.size) < 0.3

    def name(
        model: gs.FactorGraph,
        chains: int = 100,
        kernel: gs.kernels.Kernel = GIBBS,
        record: Any = None,
        scan: Any = None,
    ) -> str:
        graph = gs.graphs.compile_graph(model)
        layout = lay_out(model, graph, kernel, record)
        return choose_scan_and_layout(model, graph, kernel, scan, layout, chains)[1].name

    machine = gs.rbm(w)
    assert name(machine) == name(machine, scan=gs.Chromatic()) == "layered"
    assert name(gs.ising((i, j, some), np.zeros(50))) == "layered"  # half of the pairs, in any order
    assert name(gs.rbm(w).observe({"v3": 1, "h2": 0})) == "layered"
    assert name(gs.rbm(50 * w)) == "layered"  # beyond what 32-bit sums alone would do for
    # others
    assert name(machine, chains=15) == "plain"
    assert name(machine, scan=gs.Systematic()) == "plain"
    assert name(machine, kernel=gs.Gibbs("metropolised")) == "plain"
    assert name(machine, record="energy") != "layered"
    assert name(gs.rbm(w[:15])) != "layered"
    assert name(gs.ising((i[few], j[few], some[few]), np.zeros(50))) != "layered"
    odd = np.append(i, order[inside]), np.append(j, i[:1]), np.append(some, 0.1)
    assert name(gs.ising(odd, np.zeros(50))) != "layered"
    for strength in (1e6, 1e30, 1e90):
        assert name(gs.rbm(strength * w)) == "plain"
    lattice = gs.ising_grid((20, 20), coupling=0.1)
    assert name(lattice) == "arranged"
