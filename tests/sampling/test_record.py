"""What is recorded: the layout of the cells, and batches that are merged on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.sampling.record import TapeLayout, lay_out, read_recorders

MODEL = gs.FactorGraph(
    {"a": 2, "b": 3, "c": 2, "d": 4},
    [(("a", "b"), np.ones((2, 3))), (("c", "b"), np.ones((2, 3))), (("a", "c", "d"), np.ones((2, 2, 4)))],
)
GRID = gs.ising_grid((3, 3), coupling=0.2, field=0.1)


def layout(record: Any, model: gs.FactorGraph = MODEL) -> TapeLayout:
    return lay_out(model, gs.graphs.compile_graph(model), gs.Gibbs(), record)


def test_names_and_values_are_the_same() -> None:
    by_name = read_recorders(["marginals", "draws", "pairs", "energy", "best"])
    assert by_name == (
        gs.Marginals(),
        gs.Draws(),
        gs.recorders.PairMoments(),
        gs.recorders.Energy(),
        gs.recorders.BestState(),
    )
    assert read_recorders("energy") == read_recorders(gs.recorders.Energy()) == (gs.recorders.Energy(),)
    assert read_recorders(None) == (gs.Marginals(),)
    assert read_recorders([]) == ()


def test_cells_follow_each_other_without_gaps() -> None:
    found = layout(["marginals", gs.recorders.Joint([("d", "a"), ("b",)]), "pairs"])
    assert found.n_marginal == 2 + 3 + 2 + 4
    sizes = [8, 3, 6, 6]  # (d, a), (b), and the two factors of two sites
    assert found.set_cell.tolist() == [11, 19, 22, 28]
    assert found.n_cells == 11 + sum(sizes)
    assert found.n_joint == 2
    assert found.set_member.tolist() == [3, 0, 1, 0, 1, 2, 1]
    assert found.set_stride.tolist() == [2, 1, 1, 3, 1, 3, 1]


def test_what_is_not_asked_for_takes_no_memory() -> None:
    tape = layout("energy").empty_tape(gs.graphs.compile_graph(MODEL))
    for part in (tape.total, tape.open_batch, tape.trace, tape.values, tape.best, tape.best_x):
        assert part.size == 0
    assert not layout("energy").conditional
    assert layout(None).conditional
    assert not layout(gs.Marginals(rao_blackwell=False)).conditional


def test_pairs_by_name_by_position_and_as_array() -> None:
    by_name = layout(gs.recorders.PairMoments([("a", "d"), ("c", "b")]))
    for pairs in ([(0, 3), (2, 1)], np.array([[0, 3], [2, 1]]), np.array([[0, 3], [2, 1]], np.uint8)):
        assert (
            layout(gs.recorders.PairMoments(pairs)).set_member.tolist() == by_name.set_member.tolist() == [0, 3, 2, 1]
        )


def test_edges_of_a_lattice() -> None:
    assert layout("pairs", GRID).set_cell.size == 12


def test_sets_have_a_largest_size() -> None:
    model = gs.FactorGraph({str(i): 2 for i in range(20)}, [])
    assert layout(gs.recorders.Joint([tuple(map(str, range(16)))]), model).n_cells == 1 << 16
    with pytest.raises(gs.errors.ModelError, match="65536 configurations; record smaller sets"):
        layout(gs.recorders.Joint([tuple(map(str, range(17)))]), model)


def test_draws_have_the_order_of_the_question() -> None:
    whole = gs.sample(GRID, sweeps=20, rng=1, record="draws", progress=False)
    some = gs.sample(GRID, sweeps=20, rng=1, record=gs.Draws(["7", 2, "0"]), progress=False)
    assert some.draw_sites.tolist() == [7, 2, 0]
    np.testing.assert_array_equal(some.draws, whole.draws[:, :, [7, 2, 0]])


def test_recording_does_not_change_the_chain() -> None:
    plain = gs.sample(GRID, sweeps=50, rng=1, record="draws", progress=False)
    more = ["marginals", "draws", "pairs", "energy", "best", gs.recorders.Joint([("0", "1", "2")])]
    full = gs.sample(GRID, sweeps=50, rng=1, record=more, progress=False)
    np.testing.assert_array_equal(plain.draws, full.draws)


@pytest.mark.parametrize("draws", [1, 2, 511, 512, 513, 1023, 1024, 1500, 5000])
def test_batches_are_means_of_the_draws(draws: int) -> None:
    record = [gs.Marginals(rao_blackwell=False), "draws"]
    result = gs.sample(GRID, sweeps=draws, warmup=0, rng=2, chains=2, record=record, progress=False)
    length, batches = result._length, result._trace.shape[1]
    assert batches <= 512
    assert length.bit_count() == 1
    assert 0 <= draws - length * batches < length
    closed = result.draws[:, : length * batches].reshape(2, batches, length, 9)
    np.testing.assert_allclose(result._trace, closed.mean(axis=2), atol=1e-6)
    np.testing.assert_array_equal(result.totals, result.draws.sum(axis=1))


def test_the_trace_of_many_cells_is_short() -> None:
    # memory is bounded, whatever the length of the run, but there are always batches enough to judge by
    for side, least, most in ((3, 512, 512), (100, 256, 512), (600, 16, 64)):
        model = gs.ising_grid((side, side))
        graph = gs.graphs.compile_graph(model)
        batches, cells = lay_out(model, graph, gs.Gibbs(), None).empty_tape(graph).trace.shape
        assert cells == side * side
        assert least <= batches <= most
        assert batches % 2 == 0, "batches are merged in pairs"


def test_tapes_grow_with_the_draws() -> None:
    found = layout(["draws", "energy"])
    tape = found.empty_tape(gs.graphs.compile_graph(MODEL))
    tape = found.grow(tape, 10)
    tape.values[:] = 1
    tape.energy[:] = 2.0
    grown = found.grow(tape, 11)
    assert grown.values.shape[0] == grown.energy.shape[0] >= 11
    assert (grown.values[:10] == 1).all()
    assert (grown.energy[:10] == 2.0).all()
    assert found.grow(grown, 5) is grown
