"""Functions of ``gibbsite.lab.notes.ula_bias`` on small inputs whose results are known."""

from __future__ import annotations

from gibbsite.lab.notes.ula_bias import corrected


def test_corrected_returns_the_stationary_variance_of_ula_with_step_g() -> None:
    assert corrected(1.0) == 2.6666666666666665
