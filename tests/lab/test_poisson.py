"""The experiments of the Poisson-Gibbs paper in quick mode: known figures are found again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.lab.chains import fit_slope
from gibbsite.lab.occupancy import error_at, watch
from gibbsite.lab.poisson import cost as poisson_cost
from gibbsite.lab.poisson import mixture as poisson_mixture
from gibbsite.lab.poisson import spin as poisson_spin
from gibbsite.lab.poisson.potts import distance_from_uniform
from tests.lab.quick_runs import check_what_it_says_and_saves, claims, family, findings

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", family("poisson"))
def test_experiments_say_what_they_are_and_save_what_they_found(name: str, tmp_path: Path) -> None:
    check_what_it_says_and_saves(name, tmp_path)


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
    assert said["L = 5.09"] == "holds"
    assert said["DoubleMIN fails with a second minibatch of L^2"] == "holds"
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
    draws = np.concatenate([np.zeros((1, 6), int), result.draws[0]])
    for counts, length in zip(seen, updates.tolist(), strict=True):
        expected = np.zeros((6, 3), int)
        for i in range(6):
            for t in range(length):
                expected[i, draws[min((t - i) // 6 + 1, len(draws) - 1), i]] += 1
        if length <= 996:
            np.testing.assert_array_equal(counts, expected)
        assert (counts.sum(axis=1) == length).all()
    assert distance_from_uniform(np.array([[4, 0], [0, 9]])) == pytest.approx(np.sqrt(0.5))


def test_spins_are_those_found_by_others() -> None:
    settings = findings("poisson-spin").settings
    assert (round(settings["L"], 3), round(settings["L of the paper"], 3)) == (6.854, 13.708)
    # equilibrium means, known to a last digit; those of 200 draws of 400 sites are ten times as good
    assert settings["known"]["mean"] == pytest.approx(0.802, abs=0.005)
    assert settings["known"]["slope"] == pytest.approx(5.08, abs=0.05)
    report = settings["report"]
    # 182 in equilibrium; at the start, where spins are 0, ten less
    assert 175 < report[poisson_spin.UNSHIFTED]["minibatch"] < 184
    assert report["PGDA"]["acceptance"] > 0.999
    assert report[poisson_spin.UNSHIFTED]["acceptance"] > 0.999
    assert 0.85 < report["PGITS"]["acceptance"] < 0.97  # 0.884 with the bounds of the paper


def test_spins_all_methods_go_the_same_way_and_interpolated_densities_a_bit_slower() -> None:
    found = findings("poisson-spin")
    arrays = found.arrays
    exact = arrays[f"{poisson_spin.EXACT}: errors"].mean(axis=0)
    for name in ("Gibbs-DA", "PGDA", "Gibbs-ITS", "PGITS"):
        errors = arrays[f"{name}: errors"].mean(axis=0)
        # divergences of single chains differ by 0.02 at the end: means of two by less than 0.12, 6 sigma
        low, high = (-0.12, 0.12) if "DA" in name else (0.0, 0.6)
        assert low < errors[-1] - exact[-1] < high
    assert claims("poisson-spin")["PGDA converges faster than PGITS with equal degrees"] == "holds"


def test_spins_true_marginals_are_those_of_a_long_run() -> None:
    weights = 0.7 * (1 - np.eye(3))
    truth, slopes = poisson_spin.true_marginals(gs.models.continuous_spins(weights), weights, 4_000, 1)
    assert slopes.shape == (4_000, 3)
    # the joint law of three spins on a fine grid
    x = (np.arange(100) + 0.5) / 100
    a, b, c = np.meshgrid(x, x, x, indexing="ij")
    p = np.exp(0.7 * (a * b + b * c + a * c))
    exact = (p.sum(axis=(1, 2)) / p.sum()).reshape(poisson_spin.CELLS, -1).sum(axis=1)
    # conditional probabilities of a cell vary by at most 0.6 of it, draws are all but independent: 8 sigma
    np.testing.assert_allclose(truth, np.broadcast_to(exact, truth.shape), rtol=8 * 0.6 / np.sqrt(4_000))


def test_mixture_truth_is_that_of_all_numbers_one_by_one() -> None:
    data = poisson_mixture.draw_data(3_000, np.random.default_rng(5))
    x = (np.arange(12) + 0.5) - 6.0
    log_p = np.zeros((12, 12))
    for i, first in enumerate(x):
        for j, second in enumerate(x):
            near, far = ((data - mean) ** 2 / 4 for mean in (first, first + second))
            log_p[i, j] = np.logaddexp(-near, -far).sum() * 100 / data.size - first**2 / 20 - second**2 / 2
    p = np.exp(log_p - log_p.max())
    found = poisson_mixture.true_probabilities(data, 12, 1)
    np.testing.assert_allclose(found, p / p.sum(), atol=1e-4)


def test_mixture_posterior_is_found_from_minibatches_and_not_by_rejection() -> None:
    found = findings("poisson-mixture")
    settings, truth = found.settings, found.arrays["truth"]
    assert settings["L"] == pytest.approx(1410, rel=0.02)
    centre = (np.arange(truth.shape[0]) + 0.5) / 4 - 6.0
    both = centre[:, None] + centre / 2  # the mean of the numbers: its posterior is narrow, and one piece
    for name in ("PGITS", "PGDA", poisson_mixture.FREE):
        # lambda and the energy, 1355 at the mode
        assert settings["report"][name]["minibatch"] == pytest.approx(500 + 1355, rel=0.03)
    # deviation 0.16, at least 40 independent draws among 400: 6 sigma
    assert abs(((found.arrays[poisson_mixture.FREE] - truth) * both).sum()) < 6 * 0.16 / np.sqrt(40)
    assert claims("poisson-mixture")["rejection sampling completely fails, given the budget"] == "holds"


def test_mixture_posterior_is_found_by_moves_of_both_numbers() -> None:
    found = findings("poisson-mh")
    truth = found.arrays["truth"]
    centre = (np.arange(truth.shape[0]) + 0.5) / 4 - 6.0
    off = (found.arrays["Poisson-MH"] - truth) * (centre[:, None] + centre / 2)
    assert abs(off.sum()) < 6 * 0.16 / np.sqrt(40)  # as above


def test_costs_grow_as_the_theorems_say() -> None:
    found = findings("poisson-cost")
    arrays = found.arrays
    for name in ("Poisson-Gibbs", "Poisson-Gibbs, Potts"):
        for axis, expected in (("D", 0.0), ("Delta", 0.0), ("L", 2.0)):
            slope = fit_slope(arrays[axis], arrays[f"{name}: factors against {axis}"])
            # draws are (L^2 + L) or fewer, of which the second part is not asymptotic
            assert expected - 0.25 < slope < expected + 0.1
    for name, (_, degree, _) in (("MIN-Gibbs", (1, 2, 2)), ("DoubleMIN", (1, 2, 2)), ("Gibbs", (1, 1, 0))):
        slope = fit_slope(arrays["Delta"], arrays[f"{name}: factors against Delta"])
        assert degree - 0.25 < slope < degree + 0.1
    said = claims("poisson-cost")
    for claim in ("Poisson-Gibbs does not depend on Delta", "MIN-Gibbs and DoubleMIN take Psi^2"):
        assert said[claim] == "holds"
    assert set(arrays) >= {f"{name}: seconds against L" for name in poisson_cost.METHODS}


def test_logistic_regressions_agree_with_all_rows() -> None:
    table = findings("poisson-logistic").table("Posterior of drawn")
    apart = [value for value in table.column("largest difference, standard errors") if value is not None]
    # six coefficients of three kernels, six standard errors: false alarms below 1e-7
    assert len(apart) == 3
    assert max(apart) < 6.0
