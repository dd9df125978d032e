"""Functions of ``gibbsite.learn.crf.labels`` on small inputs whose results are known."""

from __future__ import annotations

import pytest

from gibbsite.errors import ModelError
from gibbsite.learn.crf.labels import (
    Span,
    allowed_moves,
    check_labels,
    find_fault,
    find_spans,
    follows,
    span_sets,
    split_label,
    write_spans,
)


def test_a_span_ends_behind_its_last_position() -> None:
    assert Span(2, 4, "PERSON").end == 4


def test_check_labels_refuses_labels_that_a_scheme_does_not_have() -> None:
    with pytest.raises(ModelError, match="'S-PER' is no label of the scheme bio"):
        check_labels(["O", "S-PER"], "bio")


def test_split_label_returns_the_letter_of_a_label_and_its_class() -> None:
    assert (split_label("B-PERSON"), split_label("O")) == (("B", "PERSON"), ("O", ""))


def test_find_fault_returns_the_first_position_whose_label_breaks_a_scheme_and_what() -> None:
    assert find_fault(["O", "I-PER"]) == (1, "'I-PER' follows 'O', but only 'B-PER' or 'I-PER' may precede it")
    assert find_fault(["B-PER", "I-PER"]) is None


def test_follows_tells_whether_a_label_may_follow_another_o_stands_for_the_beginning() -> None:
    assert (follows("O", "I-LOC", "bio"), follows("B-LOC", "I-LOC", "bio"), follows("B-LOC", "O", "bioes")) == (
        False,
        True,
        False,
    )


def test_allowed_moves_returns_which_labels_may_follow_which_which_may_come_first() -> None:
    pairs, begins, ends = allowed_moves(["O", "B-X", "I-X"], "bio")
    assert pairs.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert (begins.tolist(), ends.tolist()) == ([True, True, False], [True, True, True])


def test_find_spans_returns_the_spans_of_a_row_of_labels_of_any_scheme_as_the_scoring() -> None:
    assert (
        repr(find_spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"]))
        == "[Span(start=0, end=2, label='PER'), Span(start=3, end=4, label='LOC'), Span(start=4, end=5, label='LOC')]"
    )


def test_write_spans_returns_the_labels_of_spans_that_do_not_overlap() -> None:
    assert write_spans([Span(0, 2, "PER"), Span(3, 4, "LOC")], 4, "bioes") == ["B-PER", "E-PER", "O", "S-LOC"]


def test_span_sets_returns_the_labels_that_make_a_span_of_a_class() -> None:
    assert span_sets(["O", "B-X", "I-X"], "X", "bio").astype(int).tolist() == [
        [1, 1, 1],
        [0, 1, 0],
        [0, 1, 0],
        [0, 0, 1],
        [0, 0, 1],
        [1, 1, 0],
    ]
