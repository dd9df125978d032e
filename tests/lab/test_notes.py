"""The experiments of the lecture notes in quick mode: corrected formulas hold, printed ones do not."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.lab.notes_ula_bias import KNOWN, STEPS, doubt
from tests.lab.quick_runs import findings


def claims(name: str) -> dict[str, str]:
    return {row[0]: row[2] for row in findings(name).table("Paper against ours").rows}


def test_ula_has_the_corrected_variance_and_not_the_printed_one() -> None:
    arrays = findings("notes-ula-bias").arrays
    # exact standard errors; nine steps: false alarms of 3e-8
    assert (np.abs(arrays["variance"] - arrays["corrected"]) < 6 * arrays["error"]).all()
    assert (np.abs(arrays["variance"] - arrays["printed"]) > 50 * arrays["error"]).all()
    # others had far longer runs, so that the error is ours
    draws = findings("notes-ula-bias").settings["draws"]
    for step, known in KNOWN.items():
        assert abs(arrays["variance"][STEPS.index(step)] - known) < 6 * np.sqrt(2) * doubt(step, draws)
    assert list(claims("notes-ula-bias").values()) == ["no", "yes", "yes", "yes", "in part", "no"]
    assert "try 2" in findings("notes-ula-bias").settings["refused step"]


def test_ula_errors_are_those_of_an_autoregressive_chain() -> None:
    rng, draws, step = np.random.default_rng(1), 1000, 1.0
    a, x, seen = 0.5, rng.normal(scale=np.sqrt(8 / 3), size=4000), np.zeros(4000)
    for _ in range(draws):
        x = a * x + np.sqrt(2 * step) * rng.normal(size=x.size)
        seen += x**2 / draws
    # the standard deviation of 4000 numbers is known to 1.1 %
    assert seen.std() == pytest.approx(doubt(step, draws), rel=0.07)


def test_gaussian_gibbs_has_the_autocorrelation_of_the_notes() -> None:
    arrays = findings("notes-gaussian-gibbs").arrays
    assert arrays["page 6, Gibbs: exact"][0] == pytest.approx(0.32)
    assert arrays["page 2, Gibbs: exact"][0] == pytest.approx(0.81)
    # errors from 16 chains: Student's t with 15 degrees is beyond 10 with probability 5e-8
    assert arrays["farthest"] < 10
    assert set(claims("notes-gaussian-gibbs").values()) == {"yes"}
    # functions of a user draw the same numbers as the kernel for normal targets, up to rounding
    np.testing.assert_allclose(
        arrays["page 6, conditionals: path"], arrays["page 6, Gibbs: path"], rtol=1e-9, atol=1e-12
    )


def test_scans_that_look_at_old_values_are_seen_to_be_wrong() -> None:
    found = findings("notes-scan")
    for name in ("systematic", "random", "there and back", "all at once", "random, from old values"):
        mean, error, exact = found.arrays[f"{name}: correlation"]
        assert abs(mean - exact) < 10 * error  # as above
    assert found.arrays["all at once: correlation"][2] == 0.0
    assert found.arrays["flows, systematic sweep"][0] == pytest.approx(0.0533, abs=1e-4)
    assert found.arrays["flows, all at once"][1] > 0.05
    assert list(found.table("Paper against ours").column("holds")) == [
        *("no", "yes", "no", "yes"),
        *("yes", "no", "yes", "yes"),
    ]
