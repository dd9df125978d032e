"""Functions of ``gibbsite.applications.entities.attributes`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.attributes import is_capitalised, kind, match_phrases, shape


def test_shape_returns_the_kinds_of_letters_of_a_word_runs_shortened_to_two() -> None:
    assert (shape("McDonald"), shape("U.S."), shape("1,200")) == ("XxXxx", "X.X.", "d,dd")


def test_kind_returns_one_word_for_the_shape() -> None:
    assert (kind("Rome"), kind("NATO"), kind("of"), kind("1999"), kind("iPod"), kind("--")) == (
        "title",
        "upper",
        "lower",
        "number",
        "mixed",
        "sign",
    )


def test_is_capitalised_tells_whether_a_word_looks_like_a_name() -> None:
    assert (is_capitalised("Rome"), is_capitalised("A"), is_capitalised("iPod"), is_capitalised("of")) == (
        True,
        False,
        True,
        False,
    )


def test_match_phrases_returns_where_phrases_of_lists_stand_among_tokens_the_longest() -> None:
    assert match_phrases(["in", "New", "York"], {"new york": {"LOC"}}, 2) == [(), ("LOC first",), ("LOC later",)]
