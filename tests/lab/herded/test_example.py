"""Functions of ``gibbsite.lab.herded.example`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.applications import EntityRecognizer
from gibbsite.lab.herded.example import LINKED, PAPER, PARAGRAPH, Name, _differ, _Text


def test_names_are_read_with_their_genitive() -> None:
    text = _Text(EntityRecognizer.shipped(), PARAGRAPH)
    best, scores = text.chain.best(text.data)
    names = text.names(best)
    assert [text.read(name) for name in names] == list(PAPER)
    assert len(text.document.sentences) == 4
    right = [PAPER[text.read(name)] == name.label for name in names]
    assert right == [True] * 8 + [False]  # the recogniser takes "McDonald" for a person
    wrong = best.copy()
    vega = next(name for name in names if text.read(name) == "Vincent Vega")
    wrong[vega.first], wrong[vega.first + 1] = text.chain.labels.index("B-ORG"), text.chain.labels.index("I-ORG")
    gap = scores.sum() - text.chain.score(text.data, wrong).sum()
    assert gap > 1.0
    said = _differ(text, best, [best, wrong], np.array([0.0, gap]))
    assert said == ("1 of 2", gap / 2, "Vincent Vega: ORG (1)")


def test_links_are_between_equal_names() -> None:
    text = _Text(EntityRecognizer.shipped(), LINKED, links=True)
    assert [text.tokens[k] for k in text.pairs.ravel()] == ["Vega", "Vega"]
    assert text.skip is not None
    assert text.skip.weights[0] == 0.0
    assert text.asked(Name(8, 9, "PER"), "PER") == (1, 2, 3, "PER")
