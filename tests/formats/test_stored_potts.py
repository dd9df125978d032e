"""Potts models in files: rows, conditionals, runs and answers are those of a model in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.formats import stored
from gibbsite.graphs.local import log_potential, weights
from gibbsite.kernels.minibatch.rows import agreement_rows

SITES, STATES = 70, 3
COUPLINGS = ("floats", "few", "equal")
FIELDS = ("of sites", "of all", "none")


def edges(couplings: str) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(4)
    i, j = np.triu_indices(SITES, 1)
    chosen = rng.permutation(i.size)[:300]
    values = {"floats": 0.4 * rng.normal(size=300), "few": rng.choice([-0.3, 0.1, 0.6], 300)}
    weight = np.asarray(values.get(couplings, np.full(300, 0.4)), np.float32)
    return i[chosen], j[chosen], weight


def field_of(fields: str) -> Any:
    rng = np.random.default_rng(5)
    given = {"of sites": rng.normal(size=(SITES, STATES)), "of all": rng.normal(size=STATES)}
    return given.get(fields, 0.0)


@pytest.fixture(params=[(c, f) for c in COUPLINGS for f in FIELDS], ids=lambda pair: ", ".join(pair))
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[gs.Model, gs.FactorGraph]:
    """Return a stored model, and the same in memory."""
    couplings, fields = request.param
    if couplings == "floats":
        monkeypatch.setattr(stored, "_MOST_VALUES", 1)
    a, b, weight = edges(couplings)
    field = field_of(fields)
    pieces = [(a[k : k + 50], b[k : k + 50], weight[k : k + 50]) for k in range(0, 300, 50)]
    model = gs.formats.store_edges(pieces, tmp_path / "model", sites=SITES, field=field, states=STATES)
    assert model.couplings == {"floats": "a float for each", "few": "3 distinct", "equal": "equal"}[couplings]
    return model, gs.potts((a, b, weight.astype(float)), STATES, None if fields == "none" else field)


def test_conditionals_and_log_potentials(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a model in memory, at random states; log-potentials also from the files alone."""
    monkeypatch.setattr("gibbsite.models.stored._SITES", 7)  # several pieces
    model, known = pair
    here, there = gs.graphs.compile_graph(known, "potts"), gs.graphs.compile_graph(model)
    assert (there.kind, there.n_cells, there.on_disk) == ("potts", STATES * SITES, True)
    rng = np.random.default_rng(6)
    for _ in range(5):
        x = rng.integers(0, STATES, SITES).astype(np.int16)
        expected = known.log_potential(x)
        assert model.log_potential(x) == pytest.approx(expected, abs=1e-9)
        assert log_potential(there.arrays, x) + there.log_offset == pytest.approx(expected, abs=1e-9)
        for i in range(SITES):
            laws = []
            for graph in (here, there):
                w = np.zeros(STATES)
                size, total = weights(graph.arrays, x, np.uintp(i), w)
                assert size == STATES
                laws.append(w / total)
            assert np.abs(laws[0] - laws[1]).max() < 1e-12


def test_runs(pair: Any) -> None:
    """Draws are the same: probabilities differ by rounding alone."""
    model, known = pair
    how: dict[str, Any] = {"scan": gs.Systematic(), "sweeps": 100, "rng": 1, "progress": False}
    here, there = (gs.sample(m, record=["marginals", "draws", "energy"], **how) for m in (known, model))
    assert (here.draws == there.draws).all()
    assert np.abs(here.marginals.to_array() - there.marginals.to_array()).max() < 1e-12
    assert np.abs(here.energy - there.energy).max() < 1e-9
    assert there.plan.form == "plain"


def test_minibatches_are_drawn_from_the_same_rows(pair: Any) -> None:
    model, known = pair
    here, there = (
        agreement_rows(gs.graphs.compile_graph(known, "potts")),
        agreement_rows(gs.graphs.compile_graph(model)),
    )
    assert np.allclose(here.local, there.local, atol=1e-12)
    # a model in memory has constants of single sites elsewhere
    one, two = (rows.log_unary.reshape(SITES, STATES) for rows in (here, there))
    assert np.allclose(one - one[:, :1], two - two[:, :1])
    assert (here.degree == there.degree).all()


def test_labels_and_colors(tmp_path: Path) -> None:
    ring = np.arange(60)
    labels = ["red", "green", "blue"]
    given = [(ring, (ring + 1) % 60, 0.5)]
    model = gs.formats.store_edges(given, tmp_path / "model", sites=60, states=labels, field=[0.0, 0.0, 1.0])
    result = gs.sample(model, sweeps=2000, rng=1, progress=False, scan=gs.Chromatic())
    assert list(result.marginals["7"]) == labels
    exact = gs.solve_exact(gs.potts((ring, (ring + 1) % 60, np.full(60, 0.5)), labels, [0.0, 0.0, 1.0]))
    # 60 sites alike: four chains of 2,000 draws, correlated over a few sites; six standard errors
    mean = np.mean([result.marginals[str(i)]["blue"] for i in range(60)])
    assert abs(mean - exact.marginals["7"]["blue"]) < 0.01
    other = gs.formats.store_edges(given, tmp_path / "other", sites=60, states=3, field=[0.0, 0.0, 1.0])
    assert other.digest != model.digest, "checkpoints belong to labels, too"
    assert gs.open_model(tmp_path / "other", verify=True).n_states == 3


def test_a_best_state(tmp_path: Path) -> None:
    a, b, weight = edges("few")
    field = field_of("of sites")
    model = gs.formats.store_edges([(a, b, weight)], tmp_path / "model", sites=SITES, field=field, states=STATES)
    found = gs.infer(model, "MAP", sweeps=3000, rng=1, progress=False)
    known = gs.infer(
        gs.potts((a, b, weight.astype(float)), STATES, field), "MAP", method="annealed", rng=1, progress=False
    )
    assert found.log_potential == pytest.approx(known.log_potential, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"states": "ab"}, "states needs a sequence of state labels or a number of states"),
        ({"states": 0}, "states has no states"),
        ({"states": ["a", "a"]}, "state label 'a' twice"),
        ({"states": 3, "field": [1.0, 2.0]}, "must be 3 finite numbers"),
        ({"states": 3, "field": [1.0, 2.0, np.inf]}, "must be finite numbers"),
        ({"states": 3, "field": "up"}, "must be numbers, got 'up'"),
        ({"field": np.zeros((4, 3))}, "one for each of 4 sites"),
    ],
)
def test_bad_arguments(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(gs.errors.ModelError, match=said):
        gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "model", sites=4, **given)
    assert not list(tmp_path.iterdir())
    model = gs.formats.store_edges([([0], [1], 1.0)], tmp_path / "good", sites=4, states=3)
    with pytest.raises(gs.errors.ModelError, match="4 codes from 0 to 2"):
        model.log_potential([0, 1, 2, 3])


@pytest.mark.parametrize(
    "kernel",
    [gs.BlockGibbs(), gs.CutsetGibbs(), gs.Tempered(), gs.SwendsenWang(), gs.Wolff(), gs.kernels.Perfect()],
    ids=lambda kernel: type(kernel).__name__,
)
def test_what_reads_the_whole_model_is_refused(kernel: gs.kernels.Kernel, tmp_path: Path) -> None:
    model = gs.formats.store_edges([edges("equal")], tmp_path / "model", sites=SITES, states=STATES)
    with pytest.raises(gs.errors.IncompatibleError, match=r"a stored one stays in its files.*gs\.potts"):
        gs.sample(model, kernel, sweeps=10, progress=False)
