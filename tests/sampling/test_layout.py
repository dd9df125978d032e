"""Sites in an order in which neighbours are near: only the speed changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.graphs import nearness
from gibbsite.graphs.nearness import renumber
from gibbsite.graphs.tiny import tiny_models
from gibbsite.models.networks.causes import CauseFactors
from gibbsite.sampling import layout
from gibbsite.sampling.batched_layouts import RenumberedLayout


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models are renumbered, too."""
    monkeypatch.setattr(nearness, "WINDOW", 3)
    monkeypatch.setattr(layout, "WINDOW", 3)
    monkeypatch.setattr(layout, "LEAST_COLORED", 10**9)


def shuffled_chain(n: int, states: int) -> gs.FactorGraph:
    rng = np.random.default_rng(n)
    at = rng.permutation(n)
    pairs = at[:-1], at[1:], rng.normal(size=n - 1)
    if states == 2:
        return gs.ising(pairs, rng.normal(size=n))
    return gs.potts(pairs, states, rng.normal(size=(n, states)))


def mixed(n: int) -> gs.FactorGraph:
    """Sites of two and three states in a chain that is out of order."""
    rng = np.random.default_rng(7)
    at, names = rng.permutation(n), [f"s{k}" for k in range(n)]
    cards = {name: 2 + k % 2 for k, name in enumerate(names)}
    factors = [
        ((names[a], names[b]), rng.random((cards[names[a]], cards[names[b]])) + 0.1)
        for a, b in zip(at[:-1].tolist(), at[1:].tolist(), strict=True)
    ]
    return gs.FactorGraph(cards, factors)


MODELS: dict[str, Any] = {"ising": shuffled_chain(14, 2), "potts": shuffled_chain(12, 3), "pairwise": mixed(12)}


@pytest.mark.parametrize("name", tiny_models())
def test_the_same_law_in_another_order(name: str) -> None:
    model = tiny_models()[name]
    order = np.random.default_rng(1).permutation(model.n_sites)
    other = renumber(model, order)
    if other is None:
        fixed = gs.factors.LatticeFactors, CauseFactors
        assert any(isinstance(group, fixed) for group in model.groups)
        return
    assert other.cards.tolist() == model.cards[order].tolist()
    for x in gs.exact.enumerate(model).states[::7]:
        one, two = model.log_potential(x), other.log_potential(x[order])
        assert one == two or abs(one - two) < 1e-9


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "kernel", [gs.Gibbs(), gs.Gibbs("metropolised"), gs.HerdedGibbs(), gs.PoissonGibbs(minibatch=3.0)]
)
@pytest.mark.parametrize("name", MODELS)
def test_marginals_and_starts_belong_to_their_sites(name: str, kernel: gs.kernels.Kernel) -> None:
    """Six standard errors of 1000 independent batches at least; herded ones are within 2 %."""
    model = MODELS[name]
    exact = gs.exact.enumerate(model).marginals.cells
    if gs.graphs.compile_graph(model).binary:
        exact = exact[1::2]
    result = gs.sample(model, kernel, sweeps=6000, rng=2, progress=False)
    assert result.plan.form == "renumbered"
    errors = result.mcse.cells  # NaN where draws are not random
    bound = np.where(np.isnan(errors), 0.02, np.maximum(6.0 * errors, 1e-12))
    assert (np.abs(result.marginals.cells - exact) <= bound).all()


def scattered(monkeypatch: pytest.MonkeyPatch, n: int = 14) -> gs.FactorGraph:
    """Sites on a line, out of order, whose couplings are computed from positions even though they are few."""
    monkeypatch.setattr("gibbsite.graphs.kinds.base.MOST_STORED", 0)
    at = np.random.default_rng(6).permutation(n).astype(float)[:, None]
    fields = np.random.default_rng(7).normal(size=(n, 3))
    return gs.models.distance_potts(at, 3, gamma=0.3, beta=0.8, fields=fields)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kernel", [gs.Gibbs(), gs.Gibbs("metropolised"), gs.PoissonGibbs(minibatch=3.0)])
@pytest.mark.parametrize("name", [*MODELS, "distance"])
def test_persistent_chains_are_those_of_a_run(
    name: str, kernel: gs.kernels.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scattered(monkeypatch) if name == "distance" else MODELS[name]
    chains = gs.PersistentChains(model, kernel, chains=2, rng=3).run(200)
    assert chains._driver.layout.name == "renumbered"
    record = gs.Marginals(batches=False)
    run = gs.sample(model, kernel, chains=2, rng=3, warmup=0, sweeps=200, record=record, progress=False)
    assert np.abs(chains.marginals.cells - run.marginals.cells).max() < 1e-12


@pytest.mark.usefixtures("small")
def test_chains_of_the_dispersed_start_check_have_the_law_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minibatches depend on positions: short chains must take those of the order they are in."""
    monkeypatch.setattr("gibbsite.results.verdict.known_marginals.TINY", 0)
    model = scattered(monkeypatch)
    result = gs.sample(model, gs.PoissonGibbs(minibatch=3.0), sweeps=20_000, rng=2, progress=False)
    assert result.plan.form == "renumbered"
    assert result.diagnostics.dispersed_starts == "agrees"


@pytest.mark.usefixtures("small")
def test_a_run_is_resumed_and_threads_do_not_matter(tmp_path: Any) -> None:
    model, path = MODELS["potts"], tmp_path / "run.chk"
    how: dict[str, Any] = {"rng": 1, "progress": False, "warmup": 10}
    whole = gs.sample(model, sweeps=300, threads=1, **how)
    gs.sample(model, sweeps=100, checkpoint=path, **how)
    rest = gs.sample(model, sweeps=300, checkpoint=gs.Checkpoint(path, resume=True), **how)
    assert whole.marginals.cells.tobytes() == rest.marginals.cells.tobytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("how", [{"scan": gs.Systematic()}, {"record": ["draws"]}, {"record": ["best"]}])
def test_what_names_an_order_keeps_it(how: dict[str, Any]) -> None:
    result = gs.sample(MODELS["potts"], sweeps=20, rng=1, progress=False, **how)
    assert result.plan.form == "plain"


def test_orders_bring_neighbours_together() -> None:
    """A shuffled grid of 300 x 300: neighbours were anywhere, and are at most a few rows apart."""
    rng, side = np.random.default_rng(3), 300
    at = rng.permutation(side * side).reshape(side, side)
    first = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    second = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    graph = gs.graphs.compile_graph(gs.potts((first, second, np.full(first.size, 0.3)), 3))
    start, neighbour = graph.arrays.start, graph.arrays.neighbour
    rank = nearness.rank_sites(start, neighbour)
    assert rank is not None
    assert sorted(rank.tolist()) == list(range(side * side))
    assert np.abs(rank[first] - rank[second]).max() < 4 * side


def test_positions_along_a_curve() -> None:
    positions = np.random.default_rng(4).random((40_000, 2))
    rank = nearness.rank_positions(positions)
    assert rank is not None
    along = positions[np.argsort(rank)]
    assert np.abs(np.diff(along, axis=0)).sum(axis=1).mean() < 0.02
    assert nearness.rank_positions(along) is None  # already in order


@pytest.mark.parametrize("name", ["pairs", "distance"])
def test_large_models_in_any_order(name: str) -> None:
    """Couplings of almost nothing: every site has the marginals of its own field."""
    rng, n = np.random.default_rng(5), {"pairs": 150_000, "distance": 40_000}[name]
    fields = rng.normal(size=(n, 3))
    if name == "pairs":
        at = rng.permutation(n)
        model, kernel = gs.potts((at[:-1], at[1:], np.full(n - 1, 1e-9)), 3, fields), gs.Gibbs()
    else:
        model = gs.models.distance_potts(rng.random((n, 2)) * 200.0, 3, gamma=1.0, beta=1e-9, fields=fields)
        kernel = gs.PoissonGibbs()
    result = gs.sample(model, kernel, sweeps=2, chains=1, rng=1, progress=False)
    assert result.plan.form == RenumberedLayout.name
    exact = np.exp(fields) / np.exp(fields).sum(axis=1, keepdims=True)
    if name == "pairs":  # conditionals are recorded
        assert np.abs(result.marginals.cells.reshape(n, 3) - exact).max() < 1e-6
    else:  # draws are counted: sites of high probability are seen there
        seen = result.marginals.cells.reshape(n, 3)
        assert abs((seen * exact).sum() - (exact**2).sum()) < 6.0 * np.sqrt(n)
        assert (seen * exact).sum() > (seen * exact[rng.permutation(n)]).sum() + 6.0 * np.sqrt(n)
