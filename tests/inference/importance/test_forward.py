"""Forward draws: their law, their weights, what is recognised, what is refused."""

from __future__ import annotations

import math
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.inference.importance.base import BLOCK, SourceSettings
from gibbsite.inference.importance.forward import ForwardSource, _Prepared, bound_sum
from gibbsite.inference.importance.network import find_network
from gibbsite.inference.importance.tables import draw_blocks, make_scratch
from tests.inference.importance.networks import random_network

pytestmark = pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")


def prepare(model: gs.FactorGraph, query: Any = None) -> _Prepared:
    asked = np.ones(model.n_sites, np.bool_) if query is None else query
    setting = SourceSettings(7, asked, math.inf, None, lambda: 0.0, 1, lambda: False)
    return _Prepared(find_network(model).keep(asked), model, setting, None, 1 << 10)


def draw(source: ForwardSource, blocks: int) -> tuple[Any, Any]:
    """Return states (drawn sites in order) and log-weights of the first blocks."""
    ready = source.ready
    scratch = make_scratch(ready.structure)
    x, logs = [], []
    for block in range(blocks):
        tally = source.make_tally(ready.structure.card)
        draw_blocks(ready.structure, source.tables, source.key, block, 1, 1, scratch, tally, 0)
        x.append(scratch.x.copy())
        logs.append(scratch.log_weights.copy())
    return np.concatenate(x, axis=1), np.concatenate(logs)


def chi_squared(counts: Any, expected: Any) -> float:
    """Return the probability of so large a difference, states expected less than five times put together."""
    from scipy.stats import chi2

    assert not counts[expected == 0.0].any()
    few = expected < 5.0
    observed = np.append(counts[~few], counts[few].sum())
    wanted = np.append(expected[~few], expected[few].sum())
    used = wanted > 0.0
    squared = ((observed - wanted)[used] ** 2 / wanted[used]).sum()
    return float(chi2.sf(squared, max(used.sum() - 1, 1)))


def all_states(cards: Any) -> Any:
    return np.stack(np.unravel_index(np.arange(math.prod(cards.tolist())), tuple(cards.tolist())))


@pytest.mark.parametrize("number", [3, 4, 8])
def test_forward_draws_have_the_law_of_the_network(number: int) -> None:
    """All states against enumeration; a false alarm has probability 1e-7."""
    model = random_network(number, most_sites=6)
    model = gs.FactorGraph({"a": 3, "b": 2, "c": 4}, NETWORK, directed=True) if number == 3 else model
    if model.evidence:
        model = model.observe({})
    ready = prepare(model)
    if ready.network.likelihoods:
        ready.network.likelihoods.clear()  # the law of the draws is that of the network without them
    source = ForwardSource("prior", ready, [ready.prior()], [1.0])
    x, _ = draw(source, 400)
    cards = ready.structure.card
    states = all_states(cards)
    law = np.zeros(states.shape[1])
    for k in range(law.size):
        state = {site: int(states[t, k]) for t, site in enumerate(ready.network.order)}
        law[k] = sum(one.logs[tuple(state[i] for i in one.sites)] for one in ready.network.laws)
    counts = np.bincount(np.ravel_multi_index(tuple(x), tuple(cards.tolist())), minlength=law.size)
    assert chi_squared(counts, x.shape[1] * np.exp(law)) > 1e-7


NETWORK = [
    ("a", [0.2, 0.5, 0.3]),
    (("a", "b"), [[0.9, 0.1], [0.0, 1.0], [0.5, 0.5]]),
    (("a", "b", "c"), np.array([[[1, 2, 3, 4], [0, 0, 1, 0]]] * 3) / np.array([[[10], [1]]] * 3)),
]


def test_weights_are_model_over_proposal_and_below_their_bound() -> None:
    for number in range(12):
        model = random_network(number)
        ready = prepare(model)
        prior, guided = ready.prior(), ready.guided()
        learnt, _ = ready.learn([prior, guided])
        mixed = ForwardSource("mixture", ready, [prior, guided, learnt], [0.25, 0.5, 0.25])
        x, logs = draw(mixed, 2)
        rows = ready.structure.table
        for k in range(0, x.shape[1], 37):
            codes = np.zeros(model.n_sites, np.int64)
            codes[ready.network.order] = x[:, k]
            q = np.zeros(3)
            for t, law in enumerate(ready.network.laws):
                for c in range(3):
                    table = mixed.tables.log_proposal[c, rows[t] : rows[t + 1]].reshape(law.logs.shape)
                    q[c] += table[tuple(codes[list(law.sites)])]
            want = model.log_potential(codes) - np.log([0.25, 0.5, 0.25] @ np.exp(q))
            assert logs[k] == pytest.approx(want, abs=1e-9) or (logs[k] == want == -np.inf)
        assert logs.max() <= mixed.log_bound + 1e-9


def test_the_mean_weight_is_the_partition_function_exactly() -> None:
    """Sum over all states of proposal times weight, for every proposal: nothing is drawn."""
    for number in range(20, 30):
        model = random_network(number, most_sites=6)
        exact = gs.solve_exact(model)
        ready = prepare(model)
        for proposal in (ready.prior(), ready.guided()):
            source = ForwardSource("one", ready, [proposal], [1.0])
            total = 0.0
            for state in all_states(ready.structure.card).T:
                codes = np.zeros(model.n_sites, np.int64)
                codes[ready.network.order] = state
                log_q = sum(
                    source.tables.log_proposal[0][
                        ready.structure.table[t] + np.ravel_multi_index(tuple(codes[list(law.sites)]), law.logs.shape)
                    ]
                    for t, law in enumerate(ready.network.laws)
                )
                if log_q > -np.inf:
                    total += math.exp(model.log_potential(codes))
            assert math.log(total) == pytest.approx(exact.log_z, abs=1e-9)


def test_estimates_are_those_of_enumeration() -> None:
    """Every cell and log Z within 6.5 errors: false alarms have probability below 1e-7 in all."""
    for number in (1, 2, 5, 6):
        model = random_network(number)
        exact = gs.solve_exact(model)
        for name in ("auto", "prior"):
            found = gs.sample_weighted(model, gs.importance.Forward(name), draws=60_000, rng=number, progress=False)
            if found.diagnostics.effective < 1000 or found.diagnostics.pareto_k > 0.7:
                continue
            apart = np.abs(found.estimate.cells - exact.marginals.to_array()[mask(model)])
            assert (apart <= 6.5 * found.estimate.errors).all()
            assert abs(found.log_z - exact.log_z) <= 6.5 * found.log_z_error + 1e-9


def mask(model: gs.FactorGraph) -> Any:
    cards = np.asarray(model.cards)
    return np.arange(int(cards.max(initial=1))) < cards[:, None]


def test_trees_with_evidence_have_equal_weights() -> None:
    rng = np.random.default_rng(5)
    factors: list[Any] = [("v0", [0.3, 0.7])]
    factors += [((f"v{rng.integers(i)}", f"v{i}"), rng.dirichlet([1.0, 1.0], 2)) for i in range(1, 8)]
    model = gs.FactorGraph({f"v{i}": 2 for i in range(8)}, factors, directed=True)
    model = model.observe({"v7": 1, "v5": 0})
    ready = prepare(model)
    from gibbsite.inference.importance.guidance import guide, hear_evidence

    proposal = np.zeros_like(ready.laws)
    guide(ready.structure, ready.laws, hear_evidence(ready.network, ready.structure, 10), 0.0, proposal)
    _, logs = draw(ForwardSource("evidence", ready, [proposal], [1.0]), 1)
    np.testing.assert_allclose(logs, gs.solve_exact(model).log_z, atol=1e-9)


def test_draws_without_evidence_or_with_evidence_on_roots_are_exact() -> None:
    asia = gs.example("asia")
    for model in (asia, asia.observe({"smoke": "yes", "asia": "no"})):
        found = gs.sample_weighted(model, draws=20_000, rng=1, progress=False)
        assert [one["name"] for one in found.sources] == ["likelihood weighting"]
        assert found.log_z_error == 0.0
        assert found.log_z == pytest.approx(gs.solve_exact(model).log_z, abs=1e-9)


def test_the_same_bytes_with_any_number_of_threads() -> None:
    model = gs.example("asia").observe({"dysp": "yes", "xray": "yes"})
    found = [gs.sample_weighted(model, draws=30_000, rng=3, threads=threads, progress=False) for threads in (1, 2, 5)]
    for other in found[1:]:
        assert other.estimate.cells.tobytes() == found[0].estimate.cells.tobytes()
        assert other.estimate.errors.tobytes() == found[0].estimate.errors.tobytes()
        assert (other.log_z, other.diagnostics) == (found[0].log_z, found[0].diagnostics)


def test_networks_are_recognised_under_other_names(tmp_path: Path) -> None:
    """A UAI file of type MARKOV, written from a network, is one."""
    asia = gs.example("asia")
    plain = gs.FactorGraph(
        {name: asia.labels(i) for i, name in enumerate(asia.sites)},
        log_factors=[
            (tuple(reversed(scope)), np.moveaxis(table, range(table.ndim), range(table.ndim)[::-1]))
            for group in asia.groups
            for scope, table in zip(group.scopes.tolist(), group.log_tables(asia.cards), strict=True)
        ],
    )
    assert not any(getattr(group, "directed", False) for group in plain.groups)
    assert {law.sites[-1] for law in find_network(plain).laws} == set(range(asia.n_sites))
    for suffix in ("uai", "bif", "xmlbif"):
        gs.write_model(asia, tmp_path / f"asia.{suffix}")
        model = gs.read_model(tmp_path / f"asia.{suffix}")
        observed = model.observe({model.sites[asia.sites.index("dysp")]: model.labels(0)[0]})
        exact = gs.solve_exact(observed)
        found = gs.sample_weighted(observed, draws=60_000, rng=1, progress=False)
        assert gs.compare(found, exact).max_abs < 0.02


def test_barren_sites_are_not_drawn() -> None:
    model = gs.example("asia").observe({"bronc": "yes"})
    asked = np.zeros(model.n_sites, np.bool_)
    asked[model.index("smoke")] = True
    ready = prepare(model, asked)
    assert [model.sites[i] for i in ready.network.order] == ["smoke"]
    found = gs.sample_weighted(model, criteria=gs.Criteria(query=["smoke"]), draws=30_000, rng=1, progress=False)
    want = gs.solve_exact(model).marginals["smoke"]["yes"]
    assert abs(found.marginals["smoke"]["yes"] - want) < 6 * found.mcse["smoke"]["yes"]
    assert math.isnan(found.marginals["asia"]["yes"])


def test_weight_bounds_hold_and_are_attained_without_splits() -> None:
    rng = np.random.default_rng(4)
    for _ in range(30):
        cards = rng.integers(2, 4, 6)
        tables = []
        for _ in range(7):
            sites = tuple(rng.permutation(6)[: rng.integers(1, 4)].tolist())
            tables.append((sites, rng.normal(size=tuple(cards[list(sites)]))))
        states = all_states(cards)
        sums = sum(table[tuple(states[list(sites)])] for sites, table in tables)
        assert bound_sum(tables, cards, 10**6) == pytest.approx(sums.max(), abs=1e-12)
        assert bound_sum(tables, cards, 4) >= sums.max() - 1e-12


def test_bad_input_is_named() -> None:
    with pytest.raises(gs.errors.ModelError, match=r"not a Bayesian network: no factor is the conditional table of"):
        gs.sample_weighted(gs.ising_grid((2, 2), coupling=0.3), progress=False)
    for wrong in (
        {"draws": 0},
        {"seconds": -1},
        {"criteria": gs.Criteria(query=["unknown"])},
        {"criteria": gs.Criteria(dispersed_starts=False)},
        {"rng": -1},
    ):
        with pytest.raises(gs.errors.ModelError):
            gs.sample_weighted(gs.example("asia"), progress=False, **wrong)
    with pytest.raises(gs.errors.ArgumentError, match="proposal 'eager' is unknown"):
        gs.importance.Forward("eager")
    with pytest.raises(gs.errors.ArgumentError, match=r"gs.importance.Forward\(\)"):
        gs.sample_weighted(gs.example("asia"), gs.Gibbs(), progress=False)  # type: ignore[arg-type]
    with pytest.raises(gs.errors.ArgumentError, match="sweeps has no effect with method='forward'"):
        gs.infer(gs.example("asia"), method="forward", sweeps=10, progress=False)


def xor(sites: int) -> gs.FactorGraph:
    """Make coins whose parity is known twice, as different numbers."""
    names = [f"c{i}" for i in range(sites)]
    parity = np.indices((2,) * sites).sum(axis=0) % 2
    table = np.stack([parity == 0, parity == 1], axis=-1).astype(float)
    factors = [(name, [0.5, 0.5]) for name in names]
    factors += [((*names, "odd"), table), ((*names, "even"), 1.0 - table)]
    return gs.FactorGraph(dict.fromkeys((*names, "odd", "even"), 2), factors, directed=True)


def test_evidence_of_probability_zero_is_named() -> None:
    model = xor(3).observe({"odd": 1, "even": 1})
    with pytest.raises(gs.errors.SupportError, match=r"(?s)odd.*even"):
        gs.sample_weighted(model, progress=False)


def test_weights_that_all_vanish_leave_what_was_drawn() -> None:
    model = xor(8).observe({"odd": 1, "even": 1})
    ready = prepare(model)
    ready.bounds[0] = ready.prior(), 0.0

    class Blind(gs.importance.ImportanceProposal):
        def sources(self, model: gs.FactorGraph, setting: SourceSettings):  # type: ignore[no-untyped-def]
            source = ForwardSource.__new__(ForwardSource)
            from gibbsite.inference.importance.tables import proposal_tables

            source.name, source.ready, source.shares, source.exact = "blind", ready, [1.0], False
            source.tables = proposal_tables(ready.structure, ready.laws, ready.prior()[None], [1.0])
            source.key, source.log_bound = ready.next_key(), 0.0
            source._local = threading.local()
            yield 1.0, source

        def describe(self) -> dict[str, object]:
            return {"name": "Blind"}

    with pytest.warns(gs.ConvergenceWarning, match="the weights of all 1,024 draws are zero"):
        found = gs.sample_weighted(model, Blind(), draws=1000, rng=1, progress=False)
    assert (found.n_draws, found.diagnostics.positive, found.log_z) == (4 * BLOCK, 0, -math.inf)
    assert not found.converged and math.isnan(found.marginals["c0"][0])


def test_infer_uses_it_and_says_how_far_to_trust_it() -> None:
    model = gs.example("asia").observe({"dysp": "yes"})
    exact = gs.solve_exact(model)
    answer = gs.infer(model, method="forward", rng=1, progress=False)
    assert (answer.method, answer.kind, answer.converged) == ("forward", "estimate", True)
    assert gs.compare(answer.result, exact).max_abs < 0.01
    assert answer.to_dict()["diagnostics"]["unseen"] < 0.01
    z = gs.infer(model, "PR", method=gs.importance.Forward("prior"), draws=50_000, rng=1, progress=False)
    data = z.to_dict()
    assert abs(data["log_z"] - exact.log_z) < 6 * data["log_z_error"]


def test_an_interrupt_returns_partial_results() -> None:
    model = gs.example("asia").observe({"dysp": "yes"})

    def interrupt(status: object) -> None:
        if not seen:
            seen.append(1)
            signal.raise_signal(signal.SIGINT)

    seen: list[int] = []
    found = gs.sample_weighted(model, seconds=60, rng=1, threads=1, progress=interrupt)
    assert found.interrupted and found.n_draws > 0 and found.seconds < 30
