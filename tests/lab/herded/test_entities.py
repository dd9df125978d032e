"""Functions of ``gibbsite.lab.herded.entities`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite.lab.herded.entities import _claims, make_news


def test_make_news_makes_up_news_in_which_names_are_ambiguous_but_mean_the_same_all() -> None:
    document = make_news(1, 1)[0]
    assert (len(document.sentences), document.sentences[0].labels is None) == (6, False)


def test_equal_computation_is_that_of_no_more_time() -> None:
    gibbs, herded = np.zeros((2, 5, 3)), np.zeros((2, 1, 3))
    gibbs[:, :, 0], gibbs[:, :, 2] = 60.0 + np.arange(5) / 10, 3.0  # F1 60.2 (0.16) in 3 s
    herded[:, 0, 0], herded[:, 0, 2] = (62.0, 63.0), (2.0, 4.0)
    arrays = {"sweeps": np.array([400, 800]), "annealed Gibbs": gibbs, "herded Gibbs": herded}
    claim = _claims(arrays, (62.0, 0.0, 0.0), full=True)[1]
    assert claim.ours == (
        "F1 62.00 after 400 iterations against 60.20 (0.16) after 800, which take 1.5 (1.5 to 1.5) times as long"
    )
    assert claim.holds
    herded[0, 0, 0] = 60.3  # no better than chance may make it
    assert _claims(arrays, (62.0, 0.0, 0.0), full=True)[1].holds is None
    herded[:, 0, 2] = 5.0  # any run takes longer
    herded[0, 0, 0] = 62.0
    assert _claims(arrays, (62.0, 0.0, 0.0), full=True)[1].holds is False
    assert _claims(arrays, (62.0, 0.0, 0.0), full=False)[1].holds is None
