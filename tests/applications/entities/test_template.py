"""Functions of ``gibbsite.applications.entities.template`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.applications.entities.template import parse_template, read_template


def test_parse_template_reads_a_template() -> None:
    assert [line.name for line in parse_template("word[0]\nlower[-1..1]\nkind[-1] & kind[0]")] == [
        "word[0]",
        "lower[-1]",
        "lower[0]",
        "lower[1]",
        "kind[-1]&kind[0]",
    ]


def test_read_template_returns_the_text_of_a_template() -> None:
    assert read_template("window").split()[0] == "word[0]"
