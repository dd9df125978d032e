"""Aspect models: EM against a direct one, the likelihood never falls and ends where its gradient is zero."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sparse

import gibbsite as gs

RNG = np.random.default_rng(5)
SIZES = (4, 3)
TOKENS = [np.stack([RNG.integers(0, size, many) for size in SIZES], axis=1) for many in (7, 5, 9, 6)]
SETS = [["a", "b"], ["b", "c"], ["a", "c"], ["a", "b", "c"]]


def direct_value(tokens, theta, tables, allowed, smoothing) -> float:
    """The penalised log-likelihood, written down token by token."""
    total = 0.0
    for d, document in enumerate(tokens):
        for token in document:
            p = sum(
                theta[d, a] * np.prod([tables[k][a, token[k]] for k in range(len(tables))])
                for a in np.flatnonzero(allowed[d])
            )
            total += np.log(p)
    total += smoothing[0] * np.log(theta[allowed]).sum()
    return total + smoothing[1] * sum(np.log(table).sum() for table in tables)


def direct_step(tokens, theta, tables, allowed, smoothing):
    """One iteration of EM with dense arrays."""
    counts, words = np.zeros_like(theta), [np.zeros_like(table) for table in tables]
    for d, document in enumerate(tokens):
        for token in document:
            r = theta[d] * np.prod([tables[k][:, token[k]] for k in range(len(tables))], axis=0)
            r = r / r.sum()
            counts[d] += r
            for k, table in enumerate(words):
                table[:, token[k]] += r
    counts = np.where(allowed, counts + smoothing[0], 0.0)
    words = [table + smoothing[1] for table in words]
    return counts / counts.sum(1, keepdims=True), [table / table.sum(1, keepdims=True) for table in words]


def mask(model) -> np.ndarray:
    return np.array([[one in each for one in model.classes_.tolist()] for each in SETS])


@pytest.mark.parametrize("smoothing", [(0.0, 0.0), (0.01, 0.01), (0.7, 0.2)])
def test_iterations_are_those_of_direct_em_and_values_never_fall(smoothing) -> None:
    runs = [
        gs.learn.AspectModel(smoothing=smoothing, iterations=n, tolerance=0.0).fit(TOKENS, SETS, sizes=SIZES)
        for n in (1, 2, 40)
    ]
    allowed = mask(runs[0])
    theta, tables = runs[0].mixtures_, list(runs[0].words_)
    if min(smoothing) > 0:
        assert runs[0].values_[1] == pytest.approx(direct_value(TOKENS, theta, tables, allowed, smoothing))
    theta, tables = direct_step(TOKENS, theta, tables, allowed, smoothing)
    np.testing.assert_allclose(runs[1].mixtures_, theta, atol=1e-14)
    for found, expected in zip(runs[1].words_, tables, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    values = np.array(runs[2].values_)
    assert (np.diff(values) >= -1e-12 * np.abs(values[1:])).all()
    assert values[-1] > values[0] + 1


def test_values_never_fall_on_many_random_problems() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(rng.gamma(0.3, 3.0, (6, 9)))
        smoothing = (float(rng.choice([0.0, 0.01, 0.5])), float(rng.choice([0.0, 0.01, 0.5])))
        model = gs.learn.AspectModel(
            topics=3, smoothing=smoothing, rng=seed, starts=2, iterations=60, tolerance=0.0
        ).fit(counts)
        values = np.array(model.values_)
        assert (np.diff(values) >= -1e-11 * np.abs(values[1:])).all()
        np.testing.assert_allclose(model.components_.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(model.mixtures_.sum(axis=1), 1.0, atol=1e-12)


def test_em_ends_where_the_gradient_is_zero() -> None:
    smoothing = (0.5, 0.5)
    model = gs.learn.AspectModel(smoothing=smoothing, iterations=20_000, tolerance=0.0).fit(TOKENS, SETS, sizes=SIZES)
    allowed, step = mask(model), 1e-5

    def value(log_theta, logs) -> float:
        theta = np.where(allowed, np.exp(log_theta), 0.0)
        tables = [np.exp(part) / np.exp(part).sum(1, keepdims=True) for part in logs]
        return direct_value(TOKENS, theta / theta.sum(1, keepdims=True), tables, allowed, smoothing)

    theta, logs = np.log(np.where(allowed, model.mixtures_, 1.0)), [np.log(table) for table in model.words_]
    for array in (theta, *logs):
        for at in np.ndindex(array.shape):
            old = array[at]
            array[at] = old + step
            high = value(theta, logs)
            array[at] = old - step
            low = value(theta, logs)
            array[at] = old
            assert abs(high - low) / (2 * step) < 1e-5


def test_tables_sparse_tables_and_lists_are_the_same_documents() -> None:
    counts = np.random.default_rng(1).poisson(0.8, (8, 6))
    counts[3] = 0  # an empty document
    lists = [np.repeat(np.arange(6), row) for row in counts]
    models = [
        gs.learn.AspectModel(topics=2, rng=3, tolerance=0.0, iterations=30).fit(X, sizes=[6])
        for X in (counts, sparse.csr_array(counts), sparse.coo_array(counts), lists)
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.components_, models[0].components_, atol=1e-12)
    np.testing.assert_allclose(models[0].mixtures_[3], 0.5)
    np.testing.assert_allclose(models[0].transform(counts), models[3].transform(lists), atol=1e-12)
    assert models[0].score(counts) == pytest.approx(models[3].score(lists))
    assert [len(p) for p in models[0].posterior(counts)] == (counts > 0).sum(axis=1).tolist()


def test_topics_are_found_again() -> None:
    """Three topics with words of their own: probabilities are recovered up to the noise of 40,000 tokens."""
    rng = np.random.default_rng(2)
    true = np.full((3, 12), 0.02)
    for a in range(3):
        true[a, 4 * a : 4 * a + 4] = 0.21
    theta = rng.dirichlet([0.5] * 3, 200)
    counts = np.array([rng.multinomial(200, mixture @ true) for mixture in theta])
    model = gs.learn.AspectModel(topics=3, starts=3, rng=1, tolerance=1e-8).fit(counts)
    order = model.components_[:, ::4].argmax(axis=1)
    assert sorted(order.tolist()) == [0, 1, 2]
    assert np.abs(model.components_ - true[order]).max() < 0.03
    assert np.abs(model.mixtures_ - theta[:, order]).mean() < 0.05


def test_weak_labels_restrict_topics_and_place_them() -> None:
    """Classes of whole documents are enough to tell the words of each class."""
    rng = np.random.default_rng(3)
    names, documents, sets = ["sky", "grass", "cow"], [], []
    for _ in range(60):
        chosen = rng.permutation(3)[:2]
        documents.append(5 * rng.choice(chosen, 50) + rng.integers(0, 5, 50))
        sets.append({names[k] for k in chosen})
    model = gs.learn.AspectModel().fit(documents, sets)
    assert model.classes_.tolist() == sorted(names)
    for document, mixture in zip(sets, model.mixtures_, strict=True):
        assert {model.classes_[k] for k in np.flatnonzero(mixture)} == document
    for document, p in zip(documents, model.posterior(documents), strict=True):
        assert model.classes_[p.argmax(axis=1)].tolist() == [names[w // 5] for w in document]
    known = model.transform(documents[:1], [["sky"]])
    assert known[0, model.classes_.tolist().index("sky")] == 1.0


def test_background_topics_may_be_in_every_document() -> None:
    """What is in documents of all classes, in some of them not at all, is background."""
    rng = np.random.default_rng(4)
    documents = [
        np.concatenate([k % 3 * 3 + rng.integers(0, 3, 40), 9 + rng.integers(0, 3, 15 * (k % 4))]) for k in range(24)
    ]
    model = gs.learn.AspectModel(background=1, tolerance=1e-9, iterations=2000).fit(
        documents, [f"c{k % 3}" for k in range(24)]
    )
    assert model.classes_.tolist() == ["c0", "c1", "c2", "background 0"]
    assert model.components_[3, 9:].sum() > 0.95
    assert (model.components_[:3, 9:].sum(axis=1) < 0.05).all()


def test_several_starts_keep_the_best() -> None:
    counts = np.random.default_rng(7).poisson(1.0, (20, 15))
    values = [gs.learn.AspectModel(topics=4, starts=n, rng=2).fit(counts).values_[-1] for n in (1, 6)]
    assert values[1] >= values[0]
    again = gs.learn.AspectModel(topics=4, starts=6, rng=2).fit(counts)
    assert again.values_[-1] == values[1]


def test_it_passes_the_checks_of_scikit_learn() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimator AspectModel does not inherit")
        found = checks.check_estimator(gs.learn.AspectModel(topics=2), on_fail=None, on_skip=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []


def test_it_can_be_cloned_changed_and_shown() -> None:
    model = gs.learn.AspectModel(topics=3)
    assert repr(model.set_params(starts=2)) == "AspectModel(topics=3, starts=2)"
    assert gs.learn.AspectModel(**model.get_params()).get_params() == model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        model.set_params(nonsense=1)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        ([[0, 1]], [["a"], ["b"]], "X has 1 documents, but y has classes of 2"),
        ([[0, 1], [1]], [["a"], []], "document 1 has no class"),
        ([["a"]], None, "document 0 must be"),
        ([[[0, 1]], [[0, 1, 2]]], None, "2 and 3 kinds"),
        ([[-1]], None, "numbered from 0"),
        ([], None, "X has no documents"),
        (np.array([[1.0, -2.0]]), None, "Negative values"),
        (np.array([[1.0, np.nan]]), None, "NaN"),
    ],
)
def test_mistakes_are_named(x, y, said: str) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.learn.AspectModel(topics=2).fit(x, y)


def test_arguments_are_checked() -> None:
    for wrong, said in (({"smoothing": -1}, "smoothing"), ({"starts": 0}, "starts"), ({"topics": 0}, "topics")):
        with pytest.raises(gs.errors.ArgumentError, match=f"{said} must be"):
            gs.learn.AspectModel(**wrong).fit([[0, 1]])
    with pytest.raises(gs.errors.ModelError, match="is not fitted"):
        gs.learn.AspectModel().transform([[0]])
    model = gs.learn.AspectModel(topics=2).fit([[0, 1]])
    with pytest.raises(gs.errors.ModelError, match="word 5 of kind 0"):
        model.transform([[5]])
    bare = gs.learn.AspectModel(topics=2, smoothing=0.0).fit([[0, 0]], sizes=[2])
    with pytest.raises(gs.errors.ModelError, match="no topic has"):
        bare.transform([[1]])
