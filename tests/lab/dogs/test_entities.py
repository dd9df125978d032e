"""Functions of ``gibbsite.lab.dogs.entities`` on small inputs whose results are known."""

from __future__ import annotations

from functools import cache

import pytest

from gibbsite.applications.entities.documents import Document, Sentence
from gibbsite.applications.entities.recognizer import EntityRecognizer
from gibbsite.lab.dogs.entities import SHARES, most_repeated, study
from gibbsite.lab.herded.entities import make_news


def document(*sentences: str) -> Document:
    return Document("one", [Sentence(words.split(), None) for words in sentences])


def test_the_most_repeated_name_is_the_one_with_the_most_links() -> None:
    found = most_repeated(document("Ann met Bob .", "Bob saw Ann and bob .", "Bob left ."))
    assert found.tolist() == [2, 4, 10]
    assert most_repeated(document("Ann met Bob .")).size == 0


@cache
def recognizer() -> EntityRecognizer:
    return EntityRecognizer("document", scheme="io", links=True, min_count=1, iterations=20).fit(make_news(20, 1))


def test_long_scans_reach_the_exact_probabilities_and_short_ones_do_so_earlier_if_aimed() -> None:
    """After two sweeps both errors are those of independent draws, up to six times their standard deviation."""
    found = [study(each, recognizer(), 2000, 1) for each in make_news(4, 5)]
    cases = [case for case in found if case is not None]
    assert len(cases) >= 2
    for case in cases:
        assert (case.bounds[1] <= case.bounds[0] + 1e-12).all()
        if case.radius < 0.5:
            assert (case.errors[:, -1] <= case.bounds[:, -1] + 6 * case.noise + 1e-3).all()
        assert case.errors[1, SHARES.index(0.5)] <= case.errors[0, SHARES.index(0.5)] + 6 * case.noise + 1e-3


@pytest.mark.parametrize("text", ["nothing here", "Ann came ."])
def test_documents_without_repeated_names_are_left_out(text: str) -> None:
    assert study(document(text), recognizer(), 10, 1) is None
