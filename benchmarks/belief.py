"""Belief propagation: a message against C, a sweep of a lattice, how soon messages settle, and peers."""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsite as gs
from benchmarks.measure import Contestant, Spread, race
from benchmarks.reference import MessageReference
from benchmarks.report import Section, Target
from gibbsite.formats.files import example_path
from gibbsite.inference.belief.layout import MessageGraph, lay_out, sealed
from gibbsite.inference.belief.messages import PlainMessages, new_messages
from gibbsite.inference.belief.schedule import ALL, move, new_residuals, order_messages

LEAVES = {"CVP": "HIGH", "HREKG": "LOW"}
_SETTLED, _MOST = 1e-6, 2000  # largest change left, and sweeps at most


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    repetitions = 3 if quick else 7
    rows: list[list[str]] = []
    data: dict[str, Any] = {}
    targets = [
        *_messages(repetitions, rows, data),
        *_lattice(200 if quick else 1000, repetitions, rows, data),
        *_until_settled(rows, data),
        *_peers(repetitions, rows, data),
    ]
    return Section("belief", targets, ["belief propagation", "figure", "range"], rows, data)


def random_tables(n: int, arity: int, states: int, factors: int, scale: float) -> gs.FactorGraph:
    """Return tables over random sets of sites, with a weight for every state of every site."""
    rng = np.random.default_rng(1)
    sites = {f"x{i}": states for i in range(n)}
    single = [(f"x{i}", np.exp(0.3 * rng.normal(size=states))) for i in range(n)]
    scopes = [rng.choice(n, arity, replace=False) for _ in range(factors)]
    tables = np.exp(scale * rng.normal(size=(factors, *[states] * arity)))
    many = [(tuple(f"x{i}" for i in scope), table) for scope, table in zip(scopes, tables, strict=True)]
    return gs.FactorGraph(sites, single + many)


def random_lattice(side: int, scale: float, field: float) -> gs.FactorGraph:
    """Return a square lattice of two-state sites with normal couplings and fields."""
    rng = np.random.default_rng(2)
    sites = np.arange(side * side).reshape(side, side)
    across = np.stack([sites[:, :-1].ravel(), sites[:, 1:].ravel()], axis=1)
    down = np.stack([sites[:-1].ravel(), sites[1:].ravel()], axis=1)
    pairs = np.concatenate([across, down])
    couplings = scale * rng.normal(size=len(pairs))
    return gs.ising((pairs[:, 0], pairs[:, 1], couplings), field * rng.normal(size=sites.size))


def arrays_of(model: gs.FactorGraph) -> tuple[MessageGraph, Any]:
    """Return the arrays of messages, and the order of a sweep."""
    graph = sealed(lay_out(gs.graphs.compile_graph(model), model)[0])
    return graph, order_messages(graph)[0]


def _messages(repetitions: int, rows: list[list[str]], data: dict[str, Any]) -> list[Target]:
    cases = {
        "lattice, 2 states": gs.ising_grid((100, 100), coupling=0.2, field=0.1),
        "pairs, 2 states": random_tables(2000, 2, 2, 5000, 0.3),
        "pairs, 5 states": random_tables(1000, 2, 5, 2500, 0.3),
        "pairs, 20 states": random_tables(300, 2, 20, 700, 0.3),
        "triples, 2 states": random_tables(1000, 3, 2, 1500, 0.3),
        "fours, 3 states": random_tables(500, 4, 3, 500, 0.3),
        "alarm": gs.read_model(example_path("alarm")),
    }
    targets = []
    for name, model in cases.items():
        graph, order = arrays_of(model)
        many = np.tile(order, max(1, 20_000 // order.size))  # a call of few messages would measure calls
        reference, state, queues = MessageReference(graph, many), new_messages(graph, False), new_residuals(0)

        def ours(rounds: int, graph: Any = graph, state: Any = state, many: Any = many, q: Any = queues) -> None:
            for _ in range(rounds):
                move(PlainMessages(False), graph, state, q, many, ALL, 0, 0.0, 1.0)

        seen = race(
            [Contestant("ours", ours, many.size, least=1), Contestant("C", reference.run, many.size, least=1)],
            repetitions=repetitions,
            seconds=0.1,
        )
        cost, ratio = Spread.of([1e9 * t for t in seen["ours"].cpu]), seen["ours"].against(seen["C"])
        rows.append([f"a message, {name}", f"{cost.median:,.0f} ns, {ratio.median:.2f} C", _range(cost)])
        data[name] = {"ns": cost.to_dict(), "in_c": ratio.to_dict()}
        targets.append(Target.of(f"messages per second, {name}, in C", ratio, 0.5))
    return targets


def _lattice(side: int, repetitions: int, rows: list[list[str]], data: dict[str, Any]) -> list[Target]:
    model = gs.ising_grid((side, side), coupling=0.2, field=0.1)
    seconds = []
    for _ in range(repetitions + 1):
        begun = time.process_time()
        one = _quietly(lambda: gs.belief_propagation(model, schedule="sweep", max_iterations=1, progress=False))
        first = time.process_time() - begun
        begun = time.process_time()
        _quietly(lambda: gs.belief_propagation(model, schedule="sweep", max_iterations=11, tolerance=0, progress=False))
        seconds.append((time.process_time() - begun - first) / 10)
    sweep = Spread.of(seconds[1:])
    rows.append([f"a sweep of {side:,} x {side:,}", f"{1000 * sweep.median:,.1f} ms", _range(sweep, 1000)])
    rows.append(["its messages", f"{one.messages:,}", ""])
    data["lattice"] = {"sites": side * side, "seconds": sweep.to_dict()}
    return [Target.of(f"lattice {side:,} x {side:,}, seconds of a sweep", sweep, 0.15, "s", least=False)]


def _quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.ConvergenceWarning)
        return call()


def _until_settled(rows: list[list[str]], data: dict[str, Any]) -> list[Target]:
    cases = {
        "lattice, couplings 0.5": random_lattice(50, 0.5, 0.3),
        "lattice, couplings 0.7": random_lattice(50, 0.7, 0.5),
        "sparse pairs": random_tables(2000, 2, 2, 3000, 0.7),
        "triples": random_tables(1000, 3, 2, 700, 1.0),
        "alarm": gs.read_model(example_path("alarm")).observe(LEAVES),
    }
    gains = []
    for name, model in cases.items():
        graph, order = arrays_of(model)
        counts = {
            schedule: _quietly(
                lambda schedule=schedule, model=model: gs.belief_propagation(
                    model, schedule=schedule, tolerance=_SETTLED, max_iterations=_MOST, progress=False
                )
            )
            for schedule in ("residual", "sweep")
        }
        textbook = MessageReference(graph, order, at_once=True)
        rounds, change = 0, np.inf
        while change > _SETTLED and rounds < _MOST:
            before = textbook.message.copy()
            textbook.run(1)
            rounds += 1
            change = float(np.abs(textbook.message - before).max())
        residual, sweep = counts["residual"], counts["sweep"]
        in_rounds = [one.messages / one.edges for one in (residual, sweep)] + [float(rounds)]
        ends = [one.settled for one in (residual, sweep)] + [change <= _SETTLED]
        said = [f"{n:.1f}{'' if end else ' (not settled)'}" for n, end in zip(in_rounds, ends, strict=True)]
        rows.append([f"messages by edges, {name}", f"residual {said[0]}, sweeps {said[1]}, all at once {said[2]}", ""])
        data[f"settled, {name}"] = dict(zip(("residual", "sweep", "at once"), in_rounds, strict=True))
        if all(ends):
            gains.append(in_rounds[2] / in_rounds[0])
    return [Target.of("messages until settled, all at once by residual", Spread.of(gains), 3.0)]


def _peers(repetitions: int, rows: list[list[str]], data: dict[str, Any]) -> list[Target]:
    targets = []
    for name, contest in (("pyagrum", _pyagrum), ("pgmpy", _pgmpy), ("pgmax", _pgmax)):
        if importlib.util.find_spec(name) is None:
            rows.append([f"{name}", "not installed", ""])
            continue
        try:
            what, ours, theirs = contest()
        except (ImportError, AttributeError) as reason:  # of other versions of what it is made of
            rows.append([name, f"does not run here: {reason}", ""])
            continue
        seen = race(
            [Contestant("ours", ours, 1, least=1), Contestant("theirs", theirs, 1, least=1)],
            repetitions=repetitions,
            seconds=0.2,
        )
        ratio = seen["ours"].against(seen["theirs"])
        cost = [1000 * Spread.of(seen[who].cpu).median for who in ("ours", "theirs")]
        rows.append([f"{what}, {name}", f"{cost[0]:.4g} ms, theirs {cost[1]:.4g} ms", _range(ratio)])
        data[name] = {"ratio": ratio.to_dict(), "ms": cost}
        targets.append(Target.of(f"{what}, against {name}", ratio, 20.0))
    return targets


Contest = tuple[str, Callable[[int], Any], Callable[[int], Any]]


def _repeat(call: Callable[[], Any]) -> Callable[[int], Any]:
    def run(rounds: int) -> None:
        for _ in range(rounds):
            call()

    return run


def _pyagrum() -> Contest:
    import pyagrum

    network = pyagrum.loadBN(str(example_path("alarm")))
    model = gs.read_model(example_path("alarm")).observe(LEAVES)
    engine = pyagrum.LoopyBeliefPropagation(network)
    engine.setEvidence(LEAVES)
    engine.setEpsilon(_SETTLED)

    def theirs() -> Any:
        engine.eraseAllEvidence()
        engine.setEvidence(LEAVES)
        engine.makeInference()
        return [engine.posterior(site).tolist() for site in model.sites]

    ours = {s: list(p.values()) for s, p in gs.belief_propagation(model, progress=False).marginals.items()}
    for site, seen in zip(model.sites, theirs(), strict=True):
        labels = network.variable(site).labels()
        mine = [ours[site][model.labels(model.sites.index(site)).index(label)] for label in labels]
        assert np.abs(np.array(seen) - mine).max() < 1e-2, "another model"
    answer = _repeat(lambda: gs.belief_propagation(model, tolerance=_SETTLED, progress=False).marginals.to_array())
    return "marginals of alarm", answer, _repeat(theirs)


def _pgmpy() -> Contest:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagationWithMessagePassing
    from pgmpy.models import FactorGraph

    rng = np.random.default_rng(3)
    n, graph, factors = 40, FactorGraph(), []
    sites = [f"x{i}" for i in range(n)]
    graph.add_nodes_from(sites)
    for i in range(1, n):
        table, pair = np.exp(rng.normal(size=(2, 2))), [sites[rng.integers(i)], sites[i]]
        factors.append((tuple(pair), table))
        factor = DiscreteFactor(pair, [2, 2], table.ravel())
        graph.add_factors(factor)
        graph.add_edges_from([(site, factor) for site in pair])
    model = gs.FactorGraph(dict.fromkeys(sites, 2), factors)

    def theirs() -> Any:
        return BeliefPropagationWithMessagePassing(graph).query(sites)

    seen, mine = theirs(), gs.belief_propagation(model, progress=False).marginals
    for site in sites:
        assert np.abs(seen[site].values - list(mine[site].values())).max() < 1e-6, "another model"
    answer = _repeat(lambda: gs.belief_propagation(model, progress=False).marginals.to_array())
    return f"marginals of a tree of {n} sites", answer, _repeat(theirs)


def _pgmax() -> Contest:
    import jax
    from pgmax import fgraph, fgroup, infer, vgroup

    side, rounds = 100, 20
    coupling, field = 0.2, 0.1
    variables = vgroup.NDVarArray(num_states=2, shape=(side, side))
    graph = fgraph.FactorGraph(variable_groups=variables)
    pairs = [[variables[i, j], variables[i + 1, j]] for i in range(side - 1) for j in range(side)]
    pairs += [[variables[i, j], variables[i, j + 1]] for i in range(side) for j in range(side - 1)]
    table = coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=pairs, log_potential_matrix=table))
    engine = infer.build_inferer(graph.bp_state, backend="bp")
    evidence = np.zeros((side, side, 2)) + np.array([-field, field])
    arrays = engine.init(evidence_updates={variables: evidence})

    def theirs() -> Any:
        return jax.block_until_ready(engine.run(arrays, num_iters=rounds, damping=0.0, temperature=1.0))

    model = gs.ising_grid((side, side), coupling=coupling, field=field)

    def ours() -> Any:
        return gs.belief_propagation(model, schedule="sweep", max_iterations=rounds, tolerance=0, progress=False)

    beliefs = infer.get_marginals(engine.get_beliefs(theirs()))[variables]
    exact = gs.belief_propagation(model, progress=False).marginals.to_array()
    assert np.abs(np.asarray(beliefs).reshape(-1, 2) - exact).max() < 1e-4, "another model"
    return (f"{rounds} rounds of all messages, {side} x {side}", _repeat(lambda: _quietly(ours)), _repeat(theirs))


def _range(spread: Spread, unit: float = 1.0) -> str:
    return f"{unit * spread.low:.3g} .. {unit * spread.high:.3g}"
