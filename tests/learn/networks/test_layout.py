"""Tables are counted alike, whichever way cases are counted."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.learn.networks.layout import count_families, make_layout


@pytest.mark.parametrize("kind", ["complete", "weighted", "missing"])
@pytest.mark.parametrize("rows", [1, 7, 8, 500])
def test_counts_of_all_tables(kind: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    cards = np.array([2, 3, 4, 2])
    parents = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("c",)}
    layout = make_layout(list("abcd"), parents, cards)
    codes = (rng.random((4, rows)) * cards[:, None]).astype(np.int16)
    weights = rng.random(rows) if kind == "weighted" else np.ones(rows)
    if kind == "missing":
        codes[rng.random(codes.shape) < 0.3] = -1
    found = count_families(layout, codes, weights)
    wanted = []
    for family in ([0], [0, 1], [0, 1, 2], [2, 3]):
        table = np.zeros(tuple(cards[family]))
        whole = (codes[family] >= 0).all(axis=0)
        np.add.at(table, tuple(codes[family][:, whole]), weights[whole])
        wanted.append(table.ravel())
    np.testing.assert_allclose(found, np.concatenate(wanted), rtol=1e-12)
