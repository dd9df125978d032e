"""The experiments of the Poisson-Gibbs paper in quick mode: known figures are found again."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.lab.occupancy import watch
from gibbsite.lab.poisson_potts import distance_from_uniform, error_at
from tests.lab.quick_runs import findings


def claims(name: str) -> dict[str, str]:
    return {row[0]: row[2] for row in findings(name).table("Paper against ours").rows}


# errors after 1e3, 1e4 and 1e5 updates as measured by others, means of three chains
KNOWN = {
    "Gibbs": (0.8915, 0.5846, 0.1254),
    "Poisson-Gibbs 0.1 L^2": (0.9111, 0.6603, 0.1800),
    "Poisson-Gibbs L^2": (0.9019, 0.6197, 0.1353),
    "Poisson-Gibbs 5 L^2": (0.9000, 0.5854, 0.1287),
    "MGPMH L^2": (0.9091, 0.6585, 0.1580),
}
# the largest standard deviations of single chains, of 24 of each method
SPREADS = (0.009, 0.045, 0.016)


@pytest.mark.parametrize("name", KNOWN)
def test_potts_errors_are_those_found_by_others(name) -> None:
    found = findings("poisson-potts")
    for updates, known, spread in zip((1_000, 10_000, 100_000), KNOWN[name], SPREADS, strict=True):
        errors = error_at(found.arrays, name, updates)
        assert errors is not None
        # six standard errors of the difference of both means: false alarms of 2e-9
        assert abs(errors.mean() - known) < 6 * spread * np.sqrt(1 / errors.size + 1 / 3)


def test_potts_constants_and_minibatches_are_known() -> None:
    settings = findings("poisson-potts").settings
    assert (round(settings["L"], 4), round(settings["Psi"], 2)) == (5.0878, 957.13)
    # (lambda / L + 1) times the mean of L_i, known to a digit; means of 4e5 updates are good to 2e-3, 6 sigma
    for name, drawn in (("0.1 L^2", 7.2), ("L^2", 29.1), ("5 L^2", 126.5)):
        assert settings["report"][f"Poisson-Gibbs {name}"]["factors"] == pytest.approx(drawn, rel=0.01)
    assert settings["report"]["DoubleMIN L^2, L^2"]["acceptance"] < 0.01


def test_potts_claims_that_do_not_depend_on_time_hold() -> None:
    said = claims("poisson-potts")
    assert said["L = 5.09"] == "yes"
    assert said["DoubleMIN fails with a second minibatch of L^2"] == "yes"
    arrays = findings("poisson-potts").arrays
    for name in ("Gibbs", "DoubleMIN L^2, 1e4 L^2"):
        seconds = arrays[f"{name}: seconds"]
        assert (np.diff(seconds) >= 0).all()
    # the same chains, whichever way log-weights are computed, up to rounding that makes a draw differ
    np.testing.assert_allclose(arrays["Gibbs: errors"][:, 0], arrays["Gibbs, reading: errors"][:, 0])


def test_watched_chains_are_counted_after_every_update() -> None:
    model, updates = gs.potts_grid((3, 2), states=3, coupling=0.4), np.array([1, 5, 100, 1000])
    seen: list[np.ndarray] = []

    def keep(counts: np.ndarray) -> float:
        seen.append(counts.copy())
        return 0.0

    watch(model, gs.Gibbs(), updates, keep, cells=3, scan=gs.Systematic(), rng=3)
    result = gs.sample(
        model,
        gs.Gibbs(),
        scan=gs.Systematic(),
        sweeps=166,
        warmup=0,
        chains=1,
        rng=3,
        start=np.zeros(6, int),
        record="draws",
        progress=False,
    )
    # site i changes at updates i, i + 6, ...: its draw of a sweep lasts six updates
    draws = np.concatenate([np.zeros((1, 6), int), result.values[0]])
    for counts, length in zip(seen, updates.tolist(), strict=True):
        expected = np.zeros((6, 3), int)
        for i in range(6):
            for t in range(length):
                expected[i, draws[min((t - i) // 6 + 1, len(draws) - 1), i]] += 1
        if length <= 996:
            np.testing.assert_array_equal(counts, expected)
        assert (counts.sum(axis=1) == length).all()
    assert distance_from_uniform(np.array([[4, 0], [0, 9]])) == pytest.approx(np.sqrt(0.5))
