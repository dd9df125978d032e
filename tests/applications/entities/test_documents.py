"""Functions of ``gibbsite.applications.entities.documents`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.documents import tokenize


def test_tokenize_returns_where_the_tokens_of_a_text_begin_and_end() -> None:
    text = "Mr. O'Neill's U.S. visit cost $1,200.50, didn't it?"
    assert [text[a:b] for a, b in tokenize(text)] == [
        "Mr.",
        "O'Neill",
        "'s",
        "U.S.",
        "visit",
        "cost",
        "$",
        "1,200.50",
        ",",
        "did",
        "n't",
        "it",
        "?",
    ]


def test_letters_stay_with_the_number_before_them() -> None:
    text = "In the 1940s the 20th man ran 50K at 5.30pm, 3M and 1/2-inch."
    assert " ".join(text[a:b] for a, b in tokenize(text)) == (
        "In the 1940s the 20th man ran 50K at 5.30pm , 3M and 1/2 - inch ."
    )
