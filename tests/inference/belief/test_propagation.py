"""Belief propagation: exact on trees, bounds that hold, fixed points that do not depend on the way there."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.belief.layout import grow_forests, lay_out, raise_to, sealed
from gibbsite.inference.belief.messages import LogMessages, PlainMessages, new_messages
from gibbsite.inference.belief.schedule import ALL, move, new_residuals, order_messages

pytestmark = pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
KINDS = ("sum", "max", "tree-reweighted", "fractional")
SCHEDULES = ("residual", "sweep")


def propagate(model: gs.FactorGraph, **given: Any) -> Any:
    return gs.belief_propagation(model, progress=False, **given)


def random_table(rng: np.random.Generator, shape: list[int], zeros: float, scale: float) -> Any:
    """Return positive entries, and zeros except at one configuration that all tables have in common."""
    table = np.exp(scale * rng.normal(size=shape)) * (rng.random(shape) >= zeros)
    table.flat[0] += 0.1
    return table


def random_tree(rng: np.random.Generator, n: int, zeros: float) -> gs.FactorGraph:
    """Return factors of two to four sites that form a tree, and factors of single sites, some left out."""
    cards = rng.integers(1, 4, size=n).tolist()
    factors, used = [], 1
    while used < n:
        more = int(rng.integers(1, min(3, n - used) + 1))
        scope = rng.permutation([int(rng.integers(used)), *range(used, used + more)]).tolist()
        used += more
        factors.append((tuple(scope), random_table(rng, [cards[i] for i in scope], zeros, 1.0)))
    factors += [((i,), random_table(rng, [cards[i]], zeros, 1.0)) for i in range(n) if rng.random() < 0.5]
    return named(cards, factors)


def random_model(rng: np.random.Generator) -> gs.FactorGraph:
    """Return factors over any sites: pairs or more, weak or strong, with or without zeros."""
    n, most = int(rng.integers(2, 8)), int(rng.choice([2, 4]))
    cards = rng.integers(1, 4, size=n).tolist()
    zeros, scale = float(rng.choice([0.0, 0.3])), float(rng.choice([0.3, 1.0, 3.0]))
    factors = []
    for _ in range(int(rng.integers(1, 2 * n + 1))):
        scope = rng.choice(n, int(rng.integers(1, min(most, n) + 1)), replace=False).tolist()
        factors.append((tuple(scope), random_table(rng, [cards[i] for i in scope], zeros, scale)))
    return named(cards, factors)


def named(cards: list[int], factors: list[Any]) -> gs.FactorGraph:
    sites = {f"x{i}": card for i, card in enumerate(cards)}
    return gs.FactorGraph(sites, [(tuple(f"x{i}" for i in scope), table) for scope, table in factors])


def best_of(exact: Any) -> float:
    return float(np.log(exact.law.max()) + exact.log_z)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_exact(kind: str, schedule: str) -> None:
    rng = np.random.default_rng(1)
    for number in range(40):
        model = random_tree(rng, int(rng.integers(1, 9)), 0.4 * (number % 2))
        exact = gs.exact.enumerate(model)
        weight = {"weight": 1.0} if kind == "fractional" else {}
        found = propagate(model, kind=kind, schedule=schedule, **weight)
        assert found.exact
        assert found.converged
        assert found.messages == found.edges
        if kind == "max":
            assert found.log_potential == pytest.approx(best_of(exact), abs=1e-12)
        else:
            assert gs.compare(found, exact).max_abs < 1e-12
            assert found.log_z == pytest.approx(exact.log_z, abs=1e-12)
            for group in model.groups:
                for scope in group.scopes:
                    assert np.abs(found.joint(*scope.tolist()) - exact.joint(*scope.tolist())).max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_damped_messages_on_trees_end_at_the_same_place(kind: str) -> None:
    rng = np.random.default_rng(2)
    for schedule in SCHEDULES:
        model = random_tree(rng, 8, 0.3)
        weight = {"weight": 1.0} if kind == "fractional" else {}
        given = {"kind": kind, "schedule": schedule, "tolerance": 1e-14, **weight}
        damped, plain = propagate(model, damping=0.6, **given), propagate(model, **given)
        assert damped.converged
        assert np.abs(damped.cells - plain.cells).max() < 1e-12


def test_most_probable_states_of_trees_with_ties() -> None:
    pairs = [(("a", "b"), np.eye(2)), (("b", "c"), 1 - np.eye(2)), (("c", "d", "e"), np.ones((2, 2, 2)))]
    model = gs.FactorGraph(dict.fromkeys("abcde", 2), pairs)
    assert propagate(model, kind="max").log_potential == 0.0


def check_bounds(models: int, seed: int) -> None:
    """Bounds hold for messages that have settled, and for those that have not."""
    rng = np.random.default_rng(seed)
    for number in range(models):
        model = random_model(rng)
        log_z = gs.exact.enumerate(model).log_z
        sweeps, damping = ((1, 1.0), (2, 0.5), (100, 1.0))[number % 3]
        found = propagate(model, kind="tree-reweighted", max_iterations=sweeps, damping=damping)
        assert math.isfinite(found.log_z)
        assert log_z - found.log_z <= 1e-12 * max(1.0, abs(log_z))
        assert found.log_z_bounds[1] == found.log_z
        assert np.isfinite(found.cells).all()


def test_upper_bounds_hold() -> None:
    check_bounds(200, 3)


@pytest.mark.campaign
def test_upper_bounds_hold_on_ten_thousand_models() -> None:
    check_bounds(10_000, 4)


def test_the_bound_holds_for_messages_that_are_nonsense() -> None:
    from gibbsite.inference.belief.readout import add_logs, upper_bound

    rng = np.random.default_rng(5)
    for _ in range(50):
        model = random_model(rng)
        graph, constant = lay_out(gs.graphs.compile_graph(model), model)
        power, shares = grow_forests(sealed(graph))
        graph = sealed(raise_to(graph, power))
        state = new_messages(graph, True)
        state.message[:] = rng.normal(size=state.message.size)
        add_logs(graph, state)
        bound = upper_bound(LogMessages(False), graph, state, *shares, np.zeros(state.belief.size)) + constant
        assert bound >= gs.exact.enumerate(model).log_z - 1e-12


def test_forests_are_counted_as_by_drawing_roots() -> None:
    """Powers are shares of forests: members lead as often as roots lie behind them."""
    model = random_model(np.random.default_rng(12))
    graph = sealed(lay_out(gs.graphs.compile_graph(model), model)[0])
    power, shares = grow_forests(graph)
    assert (power > 0).all()
    assert np.bincount(graph.factor, shares.lead, power.size) == pytest.approx(power, abs=1e-12)
    # in every forest a site is a root, or one factor leads to its root
    below = power[graph.factor] - shares.lead
    child = np.bincount(graph.site, below, graph.n_sites)
    assert shares.root + child == pytest.approx(np.ones(graph.n_sites), abs=1e-12)


def settled_model(seed: int) -> gs.FactorGraph:
    rng = np.random.default_rng(seed)
    factors = [((i, j, k), np.exp(0.5 * rng.normal(size=(2, 3, 2)))) for i, j, k in [(0, 1, 2), (2, 3, 4), (4, 5, 0)]]
    factors += [((i, (i + 2) % 6), np.exp(0.3 * rng.normal(size=(2 + i % 2, 2 + i % 2)))) for i in range(6)]
    return named([2, 3, 2, 3, 2, 3], factors)


@pytest.mark.parametrize("kind", ["sum", "tree-reweighted", "fractional"])
def test_fixed_points_do_not_depend_on_the_way_there(kind: str) -> None:
    model = settled_model(6)
    exact = gs.exact.enumerate(model)
    ways = itertools.product(SCHEDULES, (1.0, 0.5))
    found = [propagate(model, kind=kind, schedule=schedule, damping=step, tolerance=1e-13) for schedule, step in ways]
    for one in found:
        assert one.settled
        assert not one.exact
        assert np.abs(one.cells - found[0].cells).max() < 1e-11
        assert one.log_z == pytest.approx(found[0].log_z, abs=1e-11)
    assert 1e-6 < gs.compare(found[0], exact).max_abs < 0.05


def test_fractional_messages_of_power_one_are_plain() -> None:
    model = settled_model(16)
    for schedule in SCHEDULES:
        plain = propagate(model, schedule=schedule)
        one = propagate(model, schedule=schedule, kind="fractional", weight=1.0)
        assert one.cells.tobytes() == plain.cells.tobytes()
        assert one.log_z == plain.log_z
    other = propagate(model, kind="fractional", weight=0.5)
    assert np.abs(other.cells - plain.cells).max() > 1e-4


def test_messages_are_the_textbooks() -> None:
    """One sweep, message by message, against sums over whole tables; powers, logarithms and maxima, too."""
    for power, logs, largest in itertools.product((1.0, 0.6), (False, True), (False, True)):
        model = settled_model(7)
        graph, _ = lay_out(gs.graphs.compile_graph(model), model)
        graph = sealed(raise_to(graph, np.full(graph.n_factors, power)))
        state, order = new_messages(graph, logs), order_messages(graph)[0]
        way = (LogMessages if logs else PlainMessages)(largest)
        move(way, graph, state, new_residuals(0), order, ALL, 0, 0.0, 1.0)
        said = [np.ones(int(graph.card[i])) for i in graph.site]
        for e in order.tolist():
            f = int(graph.factor[e])
            edges = graph.member[graph.member_start[f] : graph.member_start[f + 1]].tolist()
            scope = graph.site[edges].tolist()
            shape = graph.card[scope]
            table = graph.value[graph.table[f] :][: shape.prod()].reshape(shape)
            for axis, (edge, i) in enumerate(zip(edges, scope, strict=True)):
                if edge != e:
                    row = range(int(graph.start[i]), int(graph.start[i + 1]))
                    q = np.prod([said[k] ** power for k in row], axis=0) / said[edge]
                    table = table * q.reshape([-1 if d == axis else 1 for d in range(len(scope))])
            others = tuple(d for d, edge in enumerate(edges) if edge != e)
            new = table.max(axis=others) if largest else table.sum(axis=others)
            said[e] = new / new.max()
        seen = np.exp(state.message) if logs else state.message
        assert np.abs(seen - np.concatenate(said)).max() < 1e-13


def test_numbers_too_small_for_floats() -> None:
    """Copies of copies with evidence that is ever less probable, taken back at the end."""
    n = 60
    pairs = [((i, i + 1), np.eye(2)) for i in range(n - 1)]
    single = [((i,), np.array([1.0, 1e-30])) for i in range(n)]
    back = [((n,), np.array([1e-30, 1.0])) for _ in range(60)]
    last = [((n - 1, n), np.eye(2)), ((n, n), np.array([0.0, 1.0]))][:1]
    model = named([2] * (n + 1), pairs + single + back + last)
    found = propagate(model)
    assert found.exact
    assert found.marginals["x0"][1] == pytest.approx(0.5, abs=1e-9)
    steep = gs.FactorGraph(
        {"a": 2, "b": 2, "c": 2},
        log_factors=[(pair, [[0.0, -900.0], [-2000.0, -900.0]]) for pair in (("a", "b"), ("b", "c"), ("c", "a"))],
    )
    for kind in KINDS:
        seen = propagate(steep, kind=kind)
        assert np.isfinite(seen.cells).all()
        assert seen.settled
    assert propagate(steep, kind="max").assignment == {"a": 0, "b": 0, "c": 0}


def test_zeros_evidence_and_sites_of_one_state() -> None:
    model = settled_model(8).observe({"x0": 1, "x3": {0: 0.0, 1: 0.5, 2: 0.5}})
    found, exact = propagate(model), gs.exact.enumerate(model)
    assert found.marginals["x0"] == {0: 0.0, 1: 1.0}
    assert found.marginals["x3"][0] == 0.0
    assert gs.compare(found, exact).max_abs < 0.05
    assert found.joint("x0", "x3")[0].tolist() == [0.0, 0.0, 0.0]
    lonely = gs.FactorGraph({"a": 1, "b": 2}, [("b", [1, 3])])
    assert propagate(lonely).cells.tolist() == [1.0, 0.25, 0.75]
    assert propagate(lonely, kind="max").assignment == {"a": 0, "b": 1}
    nothing = gs.FactorGraph({"a": 2}, [("a", [1, 3])]).observe({"a": 1})
    assert propagate(nothing).log_z == pytest.approx(math.log(3))


def test_contradictions_are_named() -> None:
    both = [(("a", "b"), np.eye(2)), (("b", "a"), 1 - np.eye(2))]
    with pytest.raises(gs.errors.SupportError, match=r"No state of site '[ab]' is possible"):
        propagate(gs.FactorGraph({"a": 2, "b": 2}, both))
    chain = [("a", [0, 1]), (("a", "b"), np.eye(2)), ("b", [1, 0])]
    with pytest.raises(gs.errors.SupportError, match=r"Site '[ab]'"):
        propagate(gs.FactorGraph({"a": 2, "b": 2}, chain))


def test_factors_over_the_same_sites_are_no_cycle() -> None:
    rng = np.random.default_rng(9)
    scopes = [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 3), (3, 2)]
    model = named([2, 3, 2, 2], [(s, rng.exponential(size=[(2, 3, 2, 2)[i] for i in s])) for s in scopes])
    found = propagate(model)
    assert found.exact
    assert gs.compare(found, gs.exact.enumerate(model)).max_abs < 1e-12


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(9,), (5, 4), (3, 4, 3)])
def test_lines_of_lattices_are_the_same_messages(shape: tuple[int, ...], periodic: bool) -> None:
    rng = np.random.default_rng(10)
    fields = rng.normal(size=shape)
    model = gs.ising_grid(shape, coupling=0.25, field=fields, periodic=periodic)
    lines, tables = (propagate(model, schedule=schedule, tolerance=1e-13) for schedule in ("sweep", "residual"))
    assert (lines.binary, tables.binary) == (True, False)
    assert gs.compare(lines, tables).max_abs < 1e-11
    assert lines.log_z == pytest.approx(tables.log_z, abs=1e-10)
    assert lines.edges == tables.edges
    assert lines.exact == tables.exact == (shape == (9,) and not periodic)
    pair = (model.sites[1], model.sites[0])
    assert np.abs(lines.joint(*pair) - tables.joint(*pair)).max() < 1e-11
    damped = propagate(model, schedule="sweep", tolerance=1e-13, damping=0.7)
    assert gs.compare(lines, damped).max_abs < 1e-11


def test_lattices_that_lines_do_not_take() -> None:
    """Odds beyond the range of floats, and states that are no two."""
    for model in (gs.ising_grid((2, 4), coupling=200.0, field=1.0), gs.potts_grid((2, 4), 3, coupling=0.3)):
        found = propagate(model, schedule="sweep")
        assert not found.binary
        assert found.settled
        assert found.converged is None


@pytest.mark.parametrize(
    "model",
    [
        gs.potts_grid((2, 3), 3, coupling=0.4),
        gs.ising(np.array([[0, 0.3, 0.2], [0.3, 0, -0.4], [0.2, -0.4, 0]]), np.array([0.1, 0.2, 0.3])),
        gs.rbm(0.1 * np.arange(6).reshape(2, 3), np.zeros(2), np.ones(3)),
    ],
    ids=["potts", "ising", "rbm"],
)
def test_every_kind_of_graph(model: gs.FactorGraph) -> None:
    assert gs.compare(propagate(model), gs.exact.enumerate(model)).max_abs < 0.05


def test_equal_calls_give_equal_bytes() -> None:
    model = settled_model(11)
    for given in ({}, {"schedule": "sweep"}, {"kind": "tree-reweighted"}):
        first, again = propagate(model, **given), propagate(model, **given)
        assert first.cells.tobytes() == again.cells.tobytes()
        assert (first.log_z, first.messages) == (again.log_z, again.messages)


def test_what_has_not_settled_says_so() -> None:
    rng = np.random.default_rng(13)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    spins = np.array([[1.0, -1.0], [-1.0, 1.0]])
    fields = [((i,), np.exp(rng.normal(size=2))) for i in range(12)]
    frustrated = named([2] * 12, fields + [(pair, np.exp(2 * rng.normal() * spins)) for pair in pairs])
    with pytest.warns(gs.ConvergenceWarning, match="still change"):
        found = propagate(frustrated, max_iterations=20)
    assert found.converged is False
    assert found.residual > found.tolerance
    assert found.line().startswith("NOT CONVERGED")
    assert "NOT settled" in repr(found)
    assert 19 * found.edges < found.messages <= 21 * found.edges
    assert "damping" in found.reasons[0]
    limited = propagate(frustrated, seconds=1e-6)
    assert limited.messages <= 2 * limited.edges


def test_infer_by_messages() -> None:
    model = settled_model(14)
    answer = gs.infer(model, method="bp", progress=False, tolerance=1e-10)
    assert (answer.method, answer.kind) == ("bp", "approximation")
    assert answer.to_dict()["diagnostics"]["messages"] == answer.result.messages
    bound = gs.infer(model, "PR", method="bp", kind="tree-reweighted", progress=False)
    assert bound.kind == "upper bound"
    assert bound.to_dict()["log_z_bounds"] == [None, bound.log_z]
    assert gs.infer(model, "PR", method="bp", progress=False).to_dict()["log_z_bounds"] == [None, None]
    found = gs.infer(model, "MAP", method="bp", progress=False)
    assert found.kind == "best found"
    assert found.log_potential <= best_of(gs.exact.enumerate(model)) + 1e-12
    for task, kind in (("MAR", "max"), ("MAP", "sum")):
        with pytest.raises(gs.errors.ArgumentError, match=f"kind='{kind}' does not answer {task}"):
            gs.infer(model, task, method="bp", kind=kind, progress=False)


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "unknown kind": ({"kind": "summ"}, ["kind 'summ'", "did you mean 'sum'"]),
    "unknown schedule": ({"schedule": "residuals"}, ["schedule 'residuals'", "did you mean 'residual'"]),
    "no damping": ({"damping": 0}, ["damping", "above 0"]),
    "NaN damping": ({"damping": np.nan}, ["damping", "nan"]),
    "weight of sums": ({"weight": 0.5}, ["weight", "kind='fractional'"]),
    "no weight": ({"kind": "fractional", "weight": 0}, ["weight", "positive"]),
    "zero iterations": ({"max_iterations": 0}, ["max_iterations", "at least 1"]),
    "negative tolerance": ({"tolerance": -1.0}, ["tolerance", "-1.0"]),
    "zero seconds": ({"seconds": 0}, ["seconds", "positive"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(case: str) -> None:
    arguments, words = BAD[case]
    with pytest.raises(gs.errors.ArgumentError) as caught:
        propagate(settled_model(1), **arguments)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text


def test_what_beliefs_do_not_know() -> None:
    model = settled_model(15)
    sums, maxima = propagate(model), propagate(model, kind="max")
    with pytest.raises(gs.errors.ArgumentError, match="kind='sum'"):
        maxima.joint("x0")
    assert maxima.marginals is sums.assignment is sums.log_potential is None
    assert list(maxima.to_dataframe().columns) == ["site", "state"]
    with pytest.raises(gs.errors.ArgumentError, match="No factor contains the sites 'x1' and 'x4'"):
        sums.joint("x1", "x4")
    with pytest.raises(gs.errors.ArgumentError, match="must be a model"):
        gs.belief_propagation("asia")  # type: ignore[arg-type]
    assert list(sums.to_dataframe().columns) == ["site", "state", "probability", "mcse", "observed"]


def test_reasons_are_in_words() -> None:
    rng = np.random.default_rng(3)
    model = gs.ising(np.triu(rng.normal(size=(12, 12)), 1) * 3.0, rng.normal(size=12))
    found = gs.belief_propagation(model, max_iterations=1, progress=False)
    assert found.converged is False
    assert all(reason.isprintable() for reason in found.reasons)
    assert found.reasons[0].endswith("allow more iterations, or use a damping below 1.")
