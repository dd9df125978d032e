"""Functions of ``gibbsite.lab.herded.entities`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.herded.entities import make_news


def test_make_news_makes_up_news_in_which_names_are_ambiguous_but_mean_the_same_all() -> None:
    document = make_news(1, 1)[0]
    assert (len(document.sentences), document.sentences[0].labels is None) == (6, False)
