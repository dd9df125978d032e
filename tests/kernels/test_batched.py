"""Batched updates: the registry, one of a user, and one graph in every run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import gibbsite as gs
from gibbsite._common.loading import load_modules
from gibbsite._numba.jit import implement
from gibbsite.graphs.local import log_potential
from gibbsite.kernels.base import MOST_MEMBERS, Nothing, Span
from gibbsite.kernels.batched import base
from gibbsite.kernels.batched.base import PackedModel, Permutation
from gibbsite.sampling.layout import choose_scan_and_layout
from gibbsite.sampling.record import lay_out


class FlipParameters(NamedTuple):
    unused: int = 0


class FlipArrays(NamedTuple):
    unused: int = 0


@dataclass(frozen=True)
class Flip(gs.kernels.Kernel):
    """Flips every site, by a batched update only."""

    conditional = False

    def parameters(self, graph: gs.graphs.Graph) -> FlipParameters:
        return FlipParameters()


@implement(log_potential, FlipArrays)
def _nothing(arrays: FlipArrays, x: Any) -> float:
    return 0.0


def _flip(
    parameters: Any, arrays: Any, schedule: Any, memory: Any, x: Any, span: Span, rng: Any, cond: Any, keep: bool
) -> Any:
    for p in range(span.where, span.stop):
        x[p] = 1 - x[p]
    return rng


class FlipAll(base.BatchedUpdate):
    name, form, rank = "flips", "flipped", 5
    parameters = FlipParameters
    layouts = (FlipArrays,)
    move = staticmethod(_flip)

    def prepare(self, kernel: Any, model: Any, graph: Any) -> PackedModel | None:
        if not isinstance(kernel, Flip):
            return None
        return PackedModel(FlipArrays(), Permutation(np.arange(graph.n_sites)[::-1]), graph.n_sites, 0.0)

    def memory(self, kernel: Any, packed: PackedModel, streams: Any) -> Nothing:
        return Nothing()


@pytest.fixture
def own_update() -> Iterator[None]:
    before = list(base._REGISTERED)
    base.register_batched(kernel="Flip", kinds=("lattice",))(FlipAll)
    yield
    base._REGISTERED[:] = before


@pytest.mark.filterwarnings("ignore::gibbsite.ConvergenceWarning")
@pytest.mark.usefixtures("own_update")
def test_runs_take_a_registered_update() -> None:
    model = gs.ising_grid((16, 16), coupling=0.1)
    start = np.random.default_rng(1).integers(0, 2, model.n_sites)
    result = gs.sample(
        model,
        Flip(),
        scan=gs.Chromatic(),
        sweeps=3,
        warmup=0,
        chains=1,
        start=start,
        record="draws",
        criteria=gs.Criteria(dispersed_starts=False),
        progress=False,
    )
    assert result.plan.form == "flipped"
    np.testing.assert_array_equal(result.draws[0], [1 - start, start, 1 - start])


def test_updates_have_names_and_moves_of_their_own() -> None:
    load_modules("gibbsite.kernels.batched")
    names = [update.name for update in base._REGISTERED]
    assert len(set(names)) == len(names)
    moves = [(update.parameters, arrays) for update in base._REGISTERED for arrays in update.layouts]
    assert len(set(moves)) == len(moves)


def test_runs_have_one_graph_whatever_is_laid_out() -> None:
    """A lattice that needs a third color is moved in compressed rows, which are not visible elsewhere."""
    model = gs.ising_grid((15, 16), coupling=0.1, periodic=True)
    graph = gs.graphs.compile_graph(model)
    for kernel in (gs.Gibbs(), gs.HerdedGibbs()):
        layout = lay_out(model, graph, kernel, None)
        for chains in (1, 20):
            form = choose_scan_and_layout(model, graph, kernel, gs.Chromatic(), layout, chains)[1]
            assert form.name == "arranged"
            assert form.graph is graph and graph.kind == "lattice"
            assert form.log_offset == gs.graphs.compile_graph(model, "ising").log_offset


def test_memories_have_room_for_the_largest_team() -> None:
    """A member reads and writes its own row, unchecked."""
    models = [gs.ising_grid((16, 16), coupling=0.1), gs.potts_grid((16, 16), 3, coupling=0.1)]
    stream = np.arange(1, 5, dtype=np.uint64)
    for model in models:
        for kernel in (gs.Gibbs(), gs.HerdedGibbs(keys="shared")):
            found = base.find_batched_update(kernel, model, gs.graphs.compile_graph(model))
            if found is None:
                continue
            memory: Any = found[0].memory(kernel, found[1], [stream])
            for part in memory.room if isinstance(memory.room, tuple) else (memory.room, memory.words):
                assert len(part) == MOST_MEMBERS
