"""The benchmark measures what it says: its C loops sample the right law, and its machinery runs."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import gibbsite as gs
from benchmarks import __main__ as command
from benchmarks import measure, memory, reference, report, speed, workloads
from gibbsite.testing import FALSE_ALARM, law_p_value

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def tiny_spins() -> workloads.Spins:
    rng = np.random.default_rng(3)
    pairs = np.array([[0, 1], [1, 2], [0, 2], [2, 3]], np.int32)
    return workloads.Spins("tiny", pairs, rng.normal(size=4), rng.normal(size=5))


def tiny_tables() -> workloads.Tables:
    rng = np.random.default_rng(4)
    cards = np.array([2, 3, 2, 2, 3], np.int32)
    groups = (
        (np.array([[0, 1, 2]], np.int32), rng.uniform(0.1, 1, (1, 2, 3, 2))),
        (np.array([[3, 1]], np.int32), rng.uniform(0.1, 1, (1, 2, 3))),
        (np.array([[2, 3], [0, 3]], np.int32), rng.uniform(0.1, 1, (2, 2, 2)) * [[1, 0], [1, 1]]),
        (np.array([[4]], np.int32), np.array([[0.2, 0.0, 0.8]])),
    )
    return workloads.Tables("tiny", cards, groups)


def tiny_agreements() -> workloads.Agreements:
    rng = np.random.default_rng(5)
    pairs = np.array([[0, 1], [1, 2], [0, 2], [2, 3]], np.int32)
    return workloads.Agreements("tiny", 3, 5, pairs, rng.normal(size=4))


CASES = {
    "spins": (tiny_spins, reference.SpinReference),
    "agreements": (tiny_agreements, reference.AgreementReference),
    "tables": (tiny_tables, reference.TableReference),
}


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_exact_draws_stay_in_law_under_the_c_loops(name):
    make, loop = CASES[name]
    workload = make()
    exact = gs.exact.enumerate(workload.model())
    c = loop(workload, seed=1)
    states = exact.draw(4000, np.random.default_rng(2))
    for k, start in enumerate(states):
        c.place(start)
        c.run(2)
        states[k] = c.codes
    p, worst = law_p_value(exact, states)
    assert p > FALSE_ALARM, worst


@needs_gcc
def test_the_law_test_notices_a_wrong_law():
    workload = tiny_spins()
    exact = gs.exact.enumerate(workload.model())
    wrong = reference.SpinReference(workload, seed=1)
    wrong.field += 0.2
    states = exact.draw(4000, np.random.default_rng(2))
    for k, start in enumerate(states):
        wrong.place(start)
        wrong.run(2)
        states[k] = wrong.codes
    assert law_p_value(exact, states)[0] < FALSE_ALARM


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_states_and_change_nothing(name):
    make, loop = CASES[name]
    workload = make()
    counting, plain = loop(workload, seed=5), loop(workload, seed=5)
    start = gs.exact.enumerate(workload.model()).draw(1, np.random.default_rng(1))[0]
    for c in (counting, plain):
        c.place(start)
    counting.run(50, count=True)
    seen = []
    for _ in range(50):
        plain.run(1)
        seen.append(plain.codes.copy())
    assert np.array_equal(counting.codes, seen[-1])
    if name == "spins":
        assert np.array_equal(counting.ups, np.sum(seen, axis=0))
    else:
        cells = np.array(seen) + counting.cell[:-1]
        assert np.array_equal(counting.visits, np.bincount(cells.ravel(), minlength=counting.cell[-1]))


@pytest.mark.parametrize("periodic", [False, True])
def test_a_grid_is_the_same_law_as_lattice_pairs_and_tables(periodic):
    grid = workloads.grid("small", 3, periodic=periodic)
    laws = [gs.exact.enumerate(m).law for m in (grid.model("lattice"), grid.model(), grid.tables().model())]
    assert np.allclose(laws[0], laws[1], atol=1e-14)
    assert np.allclose(laws[0], laws[2], atol=1e-14)


def test_agreements_are_the_same_law_as_tables():
    workload = workloads.load("tiny-potts")
    assert isinstance(workload, workloads.Agreements)
    small = workloads.potts_dense("small", 2, 3)
    laws = [gs.exact.enumerate(small.model(kind)).law for kind in ("potts", "pairwise")]
    assert np.allclose(*laws, atol=1e-14)
    matrix = np.zeros((9, 9))
    matrix[tuple(workload.pairs.T)] = workload.weights
    assert matrix[0, 1] == matrix[0, 3] == 4.6 * np.exp(-1.5)
    assert matrix[0, 8] == 4.6 * np.exp(-1.5 * 8)


def test_workloads_are_what_they_are_called():
    graph = workloads.regular3("r", 1000)
    assert (np.diff(graph.rows()[0]) == 3).all()
    assert len(np.unique(np.sort(graph.pairs, axis=1), axis=0)) == 1500
    network = workloads.network("n", 30)
    assert set(network.cards.tolist()) <= {2, 3, 4}
    assert max(scopes.shape[1] for scopes, _ in network.groups) <= 5
    assert all(np.allclose(tables.sum(axis=-1), 1) for _, tables in network.groups)


def test_alarm_is_read():
    alarm = workloads.load("alarm")
    assert alarm.n_sites == 37
    assert sum(tables.size for _, tables in alarm.groups) == 752
    assert all(np.allclose(tables.sum(axis=-1), 1) for _, tables in alarm.groups)


@needs_gcc
@pytest.mark.parametrize(
    ("workload", "kind"), [("tiny", "lattice"), ("tiny", "ising"), ("tiny-potts", "potts"), ("tiny-network", "table")]
)
def test_a_tiny_case_runs_through_the_machinery(workload, kind):
    case = speed.Case(workload, kind)
    section = speed.measure_case(case, repetitions=2, seconds=0.001, variants=False)
    assert section is not None
    assert [target.bound for target in section.targets] == [0.85 if kind == "table" else 1.0, 0.6, 0.6]
    assert all(len(row) == len(section.head) for row in section.rows)
    figures = json.loads(json.dumps(section.data))["contestants"]
    assert figures["C"]["ratio"] == {"median": 1.0, "low": 1.0, "high": 1.0}
    assert all(seen["rate"]["median"] > 0 for seen in figures.values())


def test_a_race_counts_rounds_and_forms_ratios_by_repetition():
    rounds: dict[str, list[int]] = {"a": [], "b": []}
    field = [measure.Contestant(name, made.append, 10, least=3) for name, made in rounds.items()]
    times = measure.race(field, repetitions=4, seconds=0.0)
    assert rounds == {"a": [1, 3, 3, 3, 3, 3], "b": [1, 3, 3, 3, 3, 3]}
    expected = [b / a for a, b in zip(times["a"].cpu, times["b"].cpu, strict=True)]
    assert times["a"].against(times["b"]).high == max(expected)


@pytest.mark.long
def test_memory_of_a_small_lattice():
    seen = memory.weigh("ising", "ising", 10)
    assert seen["sites"] == 100
    assert 60 <= seen["arrays"] < 61
    assert seen["kept"] >= seen["arrays"]


def test_targets_say_whether_they_are_met():
    assert report.Target("fast", 1.0, 1.0, least=True).met
    assert not report.Target("fast", 0.99, 1.0, least=True).met
    assert report.Target("small", 59.0, 60.0, least=False).row()[-1] == "ok"
    table = report.format_table(["what", "seen"], [["a", "1"], ["long name", "12"]])
    assert len({len(line) for line in table.splitlines()}) == 1


def test_a_missing_compiler_is_one_clear_sentence(monkeypatch, capsys):
    def absent() -> str:
        raise reference.NoCompilerError("no gcc on the PATH; install gcc.")

    monkeypatch.setattr(reference, "compiler_version", absent)
    monkeypatch.setattr(speed, "library", absent)
    assert command.main(["--only", "grid100"]) == 2
    assert "install gcc" in capsys.readouterr().err
