"""Accuracy of labels: precision, recall and F1 of entities as in CoNLL, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.learn.crf.labels import Span, find_spans

_REPEATS = 1000


@dataclass(frozen=True)
class Figures:
    """Precision, recall and F1, with 95 % intervals from resampled documents."""

    precision: float  # 0 if nothing was found; likewise recall is 0 if there is nothing to find
    recall: float
    f1: float
    intervals: dict[str, tuple[float, float]]  # figure -> (low, high)
    true: int  # number of entities in the text
    found: int  # number of entities that were found
    right: int  # number of entities that were found and are right

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return asdict(self) | {"intervals": {name: list(pair) for name, pair in self.intervals.items()}}


@dataclass(frozen=True)
class Score:
    """All figures of a comparison."""

    total: Figures  # of all classes together
    classes: dict[str, Figures]  # by class
    # (true class, found class) -> number of entities with the same place; "-" stands for none
    confusion: dict[tuple[str, str], int]
    tokens: float  # share of tokens with the right label

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data: precision, recall, f1, classes, confusion, and more."""
        names = sorted({name for pair in self.confusion for name in pair})
        return {
            **self.total.to_dict(),
            "classes": {name: one.to_dict() for name, one in self.classes.items()},
            "confusion": {a: {b: self.confusion.get((a, b), 0) for b in names} for a in names},
            "token_accuracy": self.tokens,
        }

    def text(self) -> str:
        """Return the figures as text tables."""
        lines = [f"{'':14}precision           recall              F1                     true  found"]
        for name, one in [*self.classes.items(), ("all", self.total)]:
            cells = [
                f"{getattr(one, key):.4f} ({low:.3f}-{high:.3f})"
                for key, (low, high) in ((k, one.intervals[k]) for k in ("precision", "recall", "f1"))
            ]
            lines.append(f"{name:<14}" + "  ".join(cells) + f"  {one.true:5d}  {one.found:5d}")
        names = [*sorted({name for pair in self.confusion for name in pair} - {"-"}), "-"]
        width = max(len(name) for name in names) + 2
        lines += ["", "entities of the same place: true class (rows), found class (columns)"]
        lines.append(" " * width + "".join(f"{name:>{width}}" for name in names))
        for a in names:
            lines.append(f"{a:<{width}}" + "".join(f"{self.confusion.get((a, b), 0):>{width}}" for b in names))
        return "\n".join(lines)


@checked
def score_labels(
    true: Sequence[Sequence[Sequence[str]]],
    found: Sequence[Sequence[Sequence[str]]],
    *,
    repeats: int = _REPEATS,
    rng: int = 1,
) -> Score:
    """Compare labels of documents with the true ones.

    Parameters
    ----------
    true, found : labels by document, sentence and token
        Labels of any scheme. An entity is right if both its place and its class are right.
    repeats : int
        Number of bootstrap samples of documents; 0: no intervals.
    rng : int
        Seed of the bootstrap.

    Examples
    --------
    >>> score = score_labels([[["B-X", "O", "B-Y"]]], [[["B-X", "O", "B-X"]]], repeats=10)
    >>> score.total.f1, score.classes["Y"].recall, score.confusion["Y", "X"]
    (0.5, 0.0, 1)
    """
    repeats, rng = check_integer("repeats", repeats, 0), check_integer("rng", rng, 0)
    _compare_shapes(true, found)
    names: list[str] = []
    rows: list[dict[str, list[int]]] = []
    confusion: dict[tuple[str, str], int] = {}
    good = many = 0
    for one, two in zip(true, found, strict=True):
        row: dict[str, list[int]] = {}
        for gold, guess in zip(one, two, strict=True):
            good += sum(a == b for a, b in zip(gold, guess, strict=True))
            many += len(gold)
            here, there = set(find_spans(gold)), set(find_spans(guess))
            for span in here | there:
                cells = row.setdefault(span.label, [0, 0, 0])
                cells[0] += span in here
                cells[1] += span in there
                cells[2] += span in here and span in there
            _confuse(here, there, confusion)
        rows.append(row)
        names += [name for name in row if name not in names]
    names.sort()
    counts = np.array([[row.get(name, [0, 0, 0]) for name in names] for row in rows], float)
    counts = counts.reshape(len(rows), len(names), 3)
    stream = np.random.default_rng(rng)
    draws = stream.integers(0, len(rows), (repeats, len(rows))) if rows else np.zeros((0, 0), int)
    samples = np.array([counts[draw].sum(axis=0) for draw in draws]).reshape(len(draws), len(names), 3)
    classes = {name: _figures(counts[:, k].sum(axis=0), samples[:, k]) for k, name in enumerate(names)}
    total = _figures(counts.sum(axis=(0, 1)), samples.sum(axis=1))
    return Score(total, classes, confusion, good / max(many, 1))


def _compare_shapes(true: Any, found: Any) -> None:
    """Refuse labels that are not lists of documents of sentences of texts, and two lists that differ in length."""
    shapes = []
    for name, labels in (("true", true), ("found", found)):
        try:
            shapes.append([[len(sentence) for sentence in document] for document in labels])
            texts = all(isinstance(label, str) for document in labels for sentence in document for label in sentence)
        except (TypeError, RecursionError):
            texts = False
        if not texts:
            raise ArgumentError(
                f"{argument(name)} must be the labels by document, sentence and token, got {describe(labels)}."
            )
    if shapes[0] != shapes[1]:
        raise ArgumentError("true and found must have the same numbers of documents, sentences and labels.")


def _confuse(here: set[Span], there: set[Span], confusion: dict[tuple[str, str], int]) -> None:
    old = {(span.start, span.end): span.label for span in here}
    new = {(span.start, span.end): span.label for span in there}
    for place in old.keys() | new.keys():
        pair = old.get(place, "-"), new.get(place, "-")
        confusion[pair] = confusion.get(pair, 0) + 1


def _figures(counts: Floats, samples: Floats) -> Figures:
    precision, recall, f1 = (float(x) for x in _ratios(counts[None])[0])
    intervals = {}
    drawn = _ratios(samples)
    for k, name in enumerate(("precision", "recall", "f1")):
        ends = np.quantile(drawn[:, k], [0.025, 0.975]) if len(drawn) else np.full(2, np.nan)
        intervals[name] = float(ends[0]), float(ends[1])
    true, found, right = (int(x) for x in counts)
    return Figures(precision, recall, f1, intervals, true, found, right)


def _ratios(counts: Floats) -> Floats:
    true, found, right = counts[:, 0], counts[:, 1], counts[:, 2]
    precision, recall = right / np.maximum(found, 1), right / np.maximum(true, 1)
    return np.stack([precision, recall, 2 * right / np.maximum(true + found, 1)], axis=1)


def paired_difference(
    true: Sequence[Any], first: Sequence[Any], second: Sequence[Any], *, repeats: int = _REPEATS
) -> tuple[float, float, float]:
    """Return the difference of F1 (second less first), and a 95 % bootstrap interval over documents."""
    tables = []
    for labels in (first, second):
        table = np.zeros((len(true), 3))
        for d, (one, two) in enumerate(zip(true, labels, strict=True)):
            for gold, guess in zip(one, two, strict=True):
                here, there = set(find_spans(gold)), set(find_spans(guess))
                table[d] += len(here), len(there), len(here & there)
        tables.append(table)
    draws = np.random.default_rng(1).integers(0, len(true), (repeats, len(true)))
    old, new = (_ratios(np.array([t[draw].sum(axis=0) for draw in draws]))[:, 2] for t in tables)
    low, high = np.quantile(new - old, [0.025, 0.975])
    plain = [float(_ratios(t.sum(axis=0)[None])[0, 2]) for t in tables]
    return plain[1] - plain[0], float(low), float(high)
