"""Products and sums of the tables of a clique, against one NumPy array with all of its entries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gibbsite.graphs.elimination.rings import LogSum, Max, Ring, Sum
from gibbsite.inference.exact import sweep as module
from gibbsite.inference.exact.sweep import ABSENT, INNER, MIXED, OUTER, WHOLE, SweepWorkspace, split, sweep

pytestmark = pytest.mark.usefixtures("plain")

RINGS = [Sum(), Max(), LogSum()]
CARDS = [(2,), (3, 2, 2), (2, 3, 2, 2), (3, 1, 2, 4, 2), (2, 2, 2, 2, 2, 2)]


def whole(cards: tuple[int, ...], mask: int, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a table with an axis for every site of the clique."""
    return table.reshape([card if mask >> a & 1 else 1 for a, card in enumerate(cards)])


def size(cards: tuple[int, ...], mask: int) -> int:
    return math.prod(card for a, card in enumerate(cards) if mask >> a & 1)


@pytest.mark.parametrize("slab", [1, 6, 4096])
@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: type(ring).__name__)
def test_every_table_onto_every_table(ring: Ring, slab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLAB", slab)
    rng = np.random.default_rng(slab)
    kinds: set[int] = set()
    for cards in CARDS:
        d = len(cards)
        every = list(range(1 << d))
        for _ in range(4):
            ins, outs = (rng.choice(every, 4).tolist() for _ in range(2))
            tables = [rng.random(size(cards, mask)) * (rng.random(size(cards, mask)) < 0.8) for mask in ins]
            product = np.ones(cards)
            for mask, table in zip(ins, tables, strict=True):
                product = product * whole(cards, mask, table)
            pool = np.concatenate([np.full(3, np.nan), *tables])
            ends = np.cumsum([0, *(size(cards, mask) for mask in outs)])
            out = np.full(ends[-1], ring.zero)
            if not isinstance(ring, Sum):
                with np.errstate(divide="ignore"):
                    pool = np.log(pool)
            starts = 3 + np.cumsum([0, *map(len, tables)])[:-1]
            workspace = SweepWorkspace(
                card=np.array([*cards, 99]),
                digit=np.zeros(d + 1, np.int64),
                slab=np.full(max(slab, *cards), np.nan),
                mask=np.array(ins + outs),
                base=np.concatenate([starts, ends[:-1]]).astype(np.uintp),
                kind=np.full(8, -1),
                inner=np.zeros(8, np.uintp),
                stride=np.zeros(8 * d, np.int64),
                position=np.zeros(8 * max(slab, *cards), np.uint32),
                result=np.zeros(0),
            )
            sweep(ring, workspace, d, 4, 4, pool, out)
            kinds |= set(workspace.kind.tolist())
            for k, mask in enumerate(outs):
                away = tuple(a for a in range(d) if not mask >> a & 1)
                truth = product.max(axis=away) if isinstance(ring, Max) else product.sum(axis=away)
                found = out[ends[k] : ends[k + 1]]
                found = found if isinstance(ring, Sum) else np.exp(found)
                assert found == pytest.approx(truth.ravel(), rel=1e-12, abs=0.0)
    if slab == 4096:
        assert kinds == {ABSENT, WHOLE, OUTER, INNER, MIXED}


@pytest.mark.parametrize(
    ("cards", "first", "entries"),
    [((2, 3), 0, 6), ((5000,), 0, 5000), ((2, 5000), 1, 5000), ((2, 64, 64), 1, 4096), ((3,) * 8, 1, 3**7)],
)
def test_slabs_are_as_large_as_the_cache_allows(cards: tuple[int, ...], first: int, entries: int) -> None:
    assert split(np.array(cards), len(cards)) == (first, entries)
