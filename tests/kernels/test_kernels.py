"""Small functions of kernels on examples that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.kernels.batched.board import toward_neighbours
from gibbsite.kernels.batched.checkered import pack_checkerboard
from gibbsite.kernels.batched.checkered_potts import pack_potts_checkerboard
from gibbsite.kernels.batched.cut import color_starts, cut_positions
from gibbsite.kernels.batched.herded_board import _degrees, pack_counted
from gibbsite.kernels.blocks.cover import Limit, choose_rest, cover_sites, grow_block, tie_factors, tied_groups
from gibbsite.kernels.blocks.tables import Interactions
from gibbsite.kernels.continuous.interpolated import make_ladder
from gibbsite.kernels.density.tuning import read_shape
from gibbsite.kernels.ensemble import to_all
from gibbsite.kernels.herded.herding import herd_entry
from gibbsite.kernels.herded.theory import holds_all
from gibbsite.kernels.minibatch.factors import shares_of
from gibbsite.kernels.tempered.ladder import Ladder, check_ladder, first_betas, read_betas
from gibbsite.kernels.tempered.paired import pairing_pays
from gibbsite.kernels.tempered.rungs import even_reference, level_of

RING = Interactions(np.array([0, 2, 4, 6, 8]), np.array([1, 3, 0, 2, 1, 3, 0, 2]))


def compiled(model: gs.FactorGraph, kind: str | None = None) -> gs.graphs.Graph:
    return gs.graphs.compile_graph(model, kind)


def test_layouts_of_lattices() -> None:
    couplings = [np.ones(1), np.ones(1), np.array([5.0, 6.0, 7.0])]
    before, after, *_ = toward_neighbours(couplings, (1, 1, 3), (0, 0, 0))
    assert (before.tolist(), after.tolist()) == ([[[0.0, 5.0, 6.0]]], [[[5.0, 6.0, 0.0]]])
    packed = pack_checkerboard(compiled(gs.ising_grid((4, 4), coupling=0.25, field=1.0)))
    assert packed is not None
    assert (packed.arrays.coupling_2, packed.arrays.field, packed.order.shape) == (1.0, 2.0, (1, 4, 4))
    assert pack_checkerboard(compiled(gs.ising_grid((3, 3), coupling=0.25, periodic=True))) is None
    model = gs.potts_grid((4, 6), 3, coupling=np.log(2.0), field=[0.0, -np.inf, 0.0])
    packed = pack_potts_checkerboard(model, compiled(model))
    assert packed is not None
    assert packed.arrays.factor_2 == pytest.approx(2.0)
    assert (packed.arrays.weight.all.tolist(), packed.order.shape) == ([1.0, 0.0, 1.0], (1, 4, 6))
    packed = pack_counted(compiled(gs.ising_grid((4, 4), coupling=0.25)))
    assert packed is not None
    assert (packed.arrays.share[4] / 2.0**32).round(3).tolist() == [0.119, 0.269, 0.5, 0.731, 0.881]
    assert _degrees((1, 2, 3), (0, 0, 0)).tolist() == [[[2.0, 3.0, 2.0], [2.0, 3.0, 2.0]]]


def test_layouts_are_cut_between_rows() -> None:
    three, four = (pack_checkerboard(compiled(gs.ising_grid((rows, 3)))) for rows in (3, 4))
    assert three is not None and four is not None
    assert color_starts(three.arrays).tolist() == [0, 5, 9]
    assert cut_positions(four, 2).tolist() == [[0, 3, 6], [6, 9, 12]]


def test_blocks_of_a_ring() -> None:
    none, two = np.zeros(4, bool), np.full(4, 2, np.int32)
    assert sorted(grow_block(RING, np.ones(4), Limit(2.0), ~none, none, np.zeros(4)).tolist()) == [0, 1, 2]
    blocks = cover_sites(RING, two, Limit(2.0), np.zeros(4))
    assert [sorted(block.tolist()) for block in blocks] == [[0, 1, 2], [0, 2, 3]]
    assert sorted(choose_rest(RING, two, 2.0, np.zeros(4)).tolist()) == [0, 1, 2]


def test_ties_of_factors() -> None:
    equal, alike = (("a", "b"), [[1, 0], [0, 1]]), (("b", "c"), [[2, 1], [1, 2]])
    arrays = compiled(gs.FactorGraph({"a": 2, "b": 2, "c": 2}, [equal, alike]), "table").arrays
    assert tie_factors(arrays).round(2).tolist() == [1.0, 0.17]
    assert tied_groups(arrays, 0.9).tolist() == [0, 0, 1]


def test_numbers_of_continuous_kernels() -> None:
    ladder = make_ladder([2], gridded=False)
    assert ladder.node.tolist() == pytest.approx([1.0, 0.0, -1.0])
    assert (np.array([9.0, 1.0, 1.0]) @ ladder.matrix.reshape(3, 3)).tolist() == [3.0, 4.0, 2.0]
    assert read_shape([4.0, 9.0], 2, "the preconditioner").tolist() == [2.0, 3.0]


def test_herding_by_hand() -> None:
    entry, chosen = np.uint64((1 << 63) | (1 << 30)), []
    for _ in range(8):
        entry, up = herd_entry(entry)
        chosen.append(int(up))
    assert chosen == [0, 1, 0, 0, 0, 1, 0, 0]
    assert holds_all(np.array([0, 1, 2], np.uint32), np.array([1, 0], np.uint32))


def test_shares_of_factors() -> None:
    bound, share = shares_of(np.array([1.0, 3.0, 2.0, 2.0]), np.array([2, 0, 0]))
    assert (bound.tolist(), share.tolist()) == ([0.0, 2.0, 2.0], [0.0, 1.0, 0.0, 0.0])


def test_ladders_and_references() -> None:
    assert first_betas()[[0, 1, -1]].tolist() == [0.0, 0.002, 1.0]
    assert read_betas([0, 0.5, 1]).tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="inverse temperatures do not rise to 1"):
        check_ladder(Ladder(np.array([0.5, 0.0, 1.0]), np.zeros(0), np.zeros(2)))
    graph = compiled(gs.FactorGraph({"a": 2, "b": 3}, [("b", [1, 0, 2])]))
    assert np.exp(even_reference(graph)).round(3).tolist() == [0.5, 0.5, 0.5, 0.0, 0.5]
    graph = compiled(gs.ising_grid((2, 2)))
    assert level_of(even_reference(graph), graph) == pytest.approx(4 * np.log(0.5))


def test_pairs_of_replicas_pay_on_spin_glasses() -> None:
    glass = gs.ising_grid((4, 4), coupling=np.random.default_rng(1).normal(size=(2, 4, 4)))
    assert pairing_pays(compiled(glass))
    assert not pairing_pays(compiled(gs.ising_grid((4, 4), coupling=1.0)))


def test_messages_to_all_others() -> None:
    assert [(m.sender, m.receiver) for m in to_all(1, 3, np.zeros(2))] == [(1, 0), (1, 2)]
