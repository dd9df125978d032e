"""Chains against enumeration of all labellings, and gradients against finite differences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.learn.crf.chain import Chain, Objective, Weights, fit_chain, prune
from gibbsite.learn.crf.labels import SCHEMES, Span, allowed_moves, find_fault, find_spans, span_sets, write_spans
from gibbsite.learn.crf.quasi_newton import minimise
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.learn.crf.structure import Structure
from gibbsite.sampling.executor import Threads

FEATURES, LENGTHS = 7, (4, 1, 5, 3)
LABELS = {
    "bio": ["O", "B-X", "I-X", "B-Y", "I-Y"],
    "bioes": ["O", "B-X", "I-X", "E-X", "S-X"],
    "io": ["O", "I-X", "I-Y"],
    None: ["a", "b", "c"],
}
KINDS = [(scheme, order) for scheme in LABELS for order in (1, 2)]


def sequences(rng: np.random.Generator, values: bool = False) -> Sequences:
    begin = np.concatenate([[0], np.cumsum(LENGTHS)])
    many = rng.integers(0, 4, begin[-1])
    first = np.concatenate([[0], np.cumsum(many)])
    feature = rng.integers(0, FEATURES, first[-1]).astype(np.int32)
    return Sequences(begin, first, feature, rng.normal(size=first[-1]) if values else np.zeros(0))


def make(scheme: str | None, order: int, seed: int = 1, values: bool = False) -> tuple[Chain, Sequences]:
    rng = np.random.default_rng(seed)
    labels = LABELS[scheme]
    seen = rng.random((FEATURES, len(labels))) < 0.7
    start = np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    structure = Structure(*allowed_moves(labels, scheme), order=order)
    weights = Weights(start, np.nonzero(seen)[1].astype(np.uint8), structure)
    return Chain(tuple(labels), weights, rng.normal(size=weights.size)), sequences(rng, values)


def naive_score(chain: Chain, data: Sequences, sequence: int, y: tuple[int, ...]) -> float:
    """Add up all weights, straight from the definition."""
    structure, weights = chain.weights.structure, chain.weights
    pairs, triples, first, last = structure.tables(weights.split(chain.x)[1])
    total = first[y[0]] + last[y[-1]]
    for t, label in enumerate(y):
        at = data.begin[sequence] + t
        for j in range(data.first[at], data.first[at + 1]):
            for k in range(weights.start[data.feature[j]], weights.start[data.feature[j] + 1]):
                if weights.label[k] == label:
                    total += chain.x[k] * (data.value[j] if data.value.size else 1.0)
        if t:
            total += pairs[y[t - 1], label]
        if t > 1 and triples is not None:
            total += triples[y[t - 2], y[t - 1], label]
    return float(total)


def enumerate_all(chain: Chain, data: Sequences, sequence: int) -> tuple[list[tuple[int, ...]], np.ndarray]:
    n = int(data.begin[sequence + 1] - data.begin[sequence])
    every = list(product(range(len(chain.labels)), repeat=n))
    return every, np.array([naive_score(chain, data, sequence, y) for y in every])


@pytest.mark.parametrize(("scheme", "order"), KINDS)
def test_passes_agree_with_enumeration(scheme: str | None, order: int) -> None:
    chain, data = make(scheme, order, values=order == 2)
    found, log_z = chain.marginals(data)
    best, score = chain.best(data)
    several = chain.several_best(data, 6)
    for s in range(len(data)):
        every, scores = enumerate_all(chain, data, s)
        top = scores.max()
        p = np.exp(scores - top)
        assert log_z[s] == pytest.approx(top + np.log(p.sum()), abs=1e-9)
        p /= p.sum()
        here = slice(data.begin[s], data.begin[s + 1])
        for t in range(len(every[0])):
            exact = [p[[y[t] == k for y in every]].sum() for k in range(len(chain.labels))]
            np.testing.assert_allclose(found[here][t], exact, atol=1e-9)
        assert score[s] == pytest.approx(top, abs=1e-9)
        assert tuple(best[here].tolist()) == every[int(scores.argmax())]
        ranked = np.argsort(-scores, kind="stable")[:6]
        ranked = ranked[np.isfinite(scores[ranked])]
        np.testing.assert_allclose(several[s][1], scores[ranked], atol=1e-9)
        assert [tuple(row.tolist()) for row in several[s][0]] == [every[k] for k in ranked]
    np.testing.assert_allclose(chain.score(data, best), score, atol=1e-9)


@pytest.mark.parametrize(("scheme", "order"), KINDS)
def test_chains_are_factor_graphs(scheme: str | None, order: int) -> None:
    chain, data = make(scheme, order)
    exact = gs.solve_exact(chain.factor_graph(data))
    found, log_z = chain.marginals(data)
    for t in range(data.n_positions):
        np.testing.assert_allclose(list(exact.marginals[str(t)].values()), found[t], atol=1e-9)
    assert exact.log_z == pytest.approx(log_z.sum(), abs=1e-9)


@pytest.mark.parametrize(("scheme", "order"), [(s, o) for s, o in KINDS if s is not None])
def test_spans_have_their_joint_probability(scheme: str, order: int) -> None:
    chain, data = make(scheme, order, seed=3)
    classes = sorted({label[2:] for label in chain.labels if label != "O"})
    sets = np.array([span_sets(chain.labels, name, scheme) for name in classes])
    asked = [
        (s, low, high, c)
        for s, n in enumerate(LENGTHS)
        for low in range(n)
        for high in range(low + 1, n + 1)
        for c in range(len(classes))
    ]
    s, low, high, c = np.array(asked).T
    found = chain.probabilities_of(data, s, low, high - low, c, sets)
    # forbidden labellings have probability zero, whatever spans they show
    law = {}
    for sequence in range(len(LENGTHS)):
        every, scores = enumerate_all(chain, data, sequence)
        p = np.exp(scores - scores.max())
        law[sequence] = p / p.sum(), [set(find_spans([chain.labels[v] for v in y])) for y in every]
    for k, (sequence, start, end, name) in enumerate(asked):
        p, spans = law[sequence]
        having = [Span(start, end, classes[name]) in shown for shown in spans]
        assert found[k] == pytest.approx(p[having].sum(), abs=1e-9)


@pytest.mark.parametrize(("scheme", "order"), KINDS)
@pytest.mark.parametrize("values", [False, True])
def test_gradients_agree_with_finite_differences(scheme: str | None, order: int, values: bool) -> None:
    chain, data = make(scheme, order, values=values)
    codes = chain.best(data)[0]  # an allowed labelling
    with Threads(1) as executor:
        objective = Objective(chain.weights, data, codes, 0.3, executor)
        x = 0.5 * chain.x
        value, gradient = objective(x)
        h = 1e-4
        for k in range(x.size):
            ends = []
            for step in (-2 * h, -h, h, 2 * h):
                moved = x.copy()
                moved[k] += step
                ends.append(objective(moved)[0])
            slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
            assert gradient[k] == pytest.approx(slope, abs=1e-9)
    there = Chain(chain.labels, chain.weights, x)
    assert value == pytest.approx(0.3 * x @ x - there.log_likelihood(data, codes), abs=1e-9)


def test_numbers_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 9, 50)
    begin = np.concatenate([[0], np.cumsum(lengths)])
    first = np.arange(begin[-1] + 1) * 3
    feature = rng.integers(0, 40, first[-1]).astype(np.int32)
    data = Sequences(begin, first, feature, np.zeros(0))
    codes = rng.integers(0, 3, begin[-1]).astype(np.uint8)
    fits = [fit_chain(data, codes, ["a", "b", "c"], 40, threads=threads, iterations=20) for threads in (1, 2)]
    assert fits[0].chain.x.tobytes() == fits[1].chain.x.tobytes()
    for threads in (1, 3):
        assert fits[0].chain.marginals(data, threads)[0].tobytes() == fits[0].chain.marginals(data)[0].tobytes()


def test_an_l1_penalty_leaves_the_subgradient_at_zero() -> None:
    rng = np.random.default_rng(2)
    chain, data = make("bio", 1)
    codes = chain.best(data)[0]
    training = fit_chain(
        data, codes, chain.labels, FEATURES, scheme="bio", l1=0.4, l2=0.1, iterations=500, tolerance=1e-9, flatness=0
    )
    x = training.chain.x
    with Threads(1) as executor:
        _, gradient = Objective(training.chain.weights, data, codes, 0.1, executor)(x)
    assert (x == 0).any()
    assert (x != 0).any()
    np.testing.assert_allclose(gradient[x != 0], -0.4 * np.sign(x[x != 0]), atol=1e-6)
    assert (np.abs(gradient[x == 0]) <= 0.4 + 1e-9).all()
    small, left = prune(training.chain)
    kept = {int(k): new for new, k in enumerate(left)}
    keep = np.isin(data.feature, left)
    first = np.concatenate([[0], np.cumsum(keep)])[data.first]
    trimmed = Sequences(data.begin, first, np.array([kept[int(f)] for f in data.feature[keep]], np.int32), np.zeros(0))
    np.testing.assert_allclose(small.marginals(trimmed)[0], training.chain.marginals(data)[0], atol=1e-12)
    assert rng is not None


def test_smooth_and_penalised_searches_agree_on_a_quadratic() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(6, 6))
    a = a @ a.T + np.eye(6)
    b = rng.normal(size=6)

    def bowl(x: Any) -> Any:
        return float(0.5 * x @ a @ x - b @ x), a @ x - b

    exact = np.linalg.solve(a, b)
    np.testing.assert_allclose(minimise(bowl, np.zeros(6), tolerance=1e-12).x, exact, atol=1e-8)
    almost = minimise(bowl, np.zeros(6), l1=1e-12, tolerance=1e-12, iterations=500)
    np.testing.assert_allclose(almost.x, exact, atol=1e-8)


def test_labels_that_are_not_allowed_are_refused() -> None:
    _, data = make("bio", 1)
    codes = np.zeros(data.n_positions, np.uint8)
    codes[1] = 2
    with pytest.raises(gs.errors.ModelError, match="'I-X' follows 'O' in sequence 0"):
        fit_chain(data, codes, LABELS["bio"], FEATURES, scheme="bio")
    codes[:] = 0
    codes[0] = 2
    with pytest.raises(gs.errors.ModelError, match="'I-X' is the first label of sequence 0"):
        fit_chain(data, codes, LABELS["bio"], FEATURES, scheme="bio")
    with pytest.raises(gs.errors.ArgumentError, match="order must be 1 or 2"):
        fit_chain(data, codes * 0, LABELS["bio"], FEATURES, order=3)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_spans_survive_every_scheme(scheme: str) -> None:
    spans = [Span(0, 2, "PER"), Span(3, 4, "LOC"), Span(5, 9, "PER")]
    labels = write_spans(spans, 10, scheme)
    assert find_spans(labels) == spans
    assert find_fault(labels, scheme) is None


def test_faults_are_found_where_they_are() -> None:
    assert find_fault(["O", "B-X", "I-Y"]) == (2, "'I-Y' follows 'B-X', but only 'B-Y' or 'I-Y' may precede it")
    assert find_fault(["B-X", "O"], "bioes") == (1, "'O' follows 'B-X', whose span has not ended")
    assert find_fault(["O", "B-X"], "bioes") == (1, "the last label is 'B-X', whose span has not ended")
    assert find_fault(["S-X"]) == (0, "'S-X' is no label of the scheme bio")
    fault = find_fault(["PER"])
    assert fault is not None
    assert "neither" in fault[1]


def test_the_optimum_is_that_of_crfsuite(tmp_path: Any) -> None:
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(8)
    rows = [[[f"w{k}", f"s{k % 3}"] for k in rng.integers(0, 12, 7)] for _ in range(40)]
    labels = [[str(rng.choice(["a", "b", "c"])) for _ in row] for row in rows]
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    for row, label in zip(rows, labels, strict=True):
        trainer.append(row, label)
    trainer.set_params({"c1": 0.0, "c2": 0.5, "max_iterations": 1000, "epsilon": 1e-9, "delta": 0.0, "period": 1000})
    trainer.train(str(tmp_path / "model"))
    ours = gs.learn.ChainCRF(
        l2=0.5, all_states=False, all_pairs=False, boundaries=False, bias=False, tolerance=1e-9, flatness=0.0
    ).fit(rows, labels)
    value = 0.5 * float(ours.chain_.x @ ours.chain_.x) - ours.log_likelihood_
    assert value == pytest.approx(trainer.logparser.last_iteration["loss"], abs=1e-4)
