"""Where nodes of graphs are drawn."""

from __future__ import annotations

import numpy as np

from gibbsite.results.plots._layout import lay_out_distances, lay_out_layers


def random_arrows(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    order = rng.permutation(n)
    return [(int(order[i]), int(order[j])) for j in range(n) for i in range(j) if rng.random() < 2.5 / n]


def test_children_are_below_their_parents_and_nodes_of_a_layer_do_not_overlap() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 9, 40):
        arrows = random_arrows(rng, n)
        widths = rng.uniform(0.5, 2.0, n)
        places, routes = lay_out_layers(widths.tolist(), arrows, 0.5, 0.2)
        for (parent, child), route in zip(arrows, routes, strict=True):
            assert places[parent, 1] > places[child, 1]
            assert np.array_equal(route[[0, -1]], places[[parent, child]])
            assert np.allclose(np.diff(route[:, 1]), -0.5), "one bend in each layer"
        for height in np.unique(places[:, 1]):
            row = np.flatnonzero(places[:, 1] == height)
            row = row[np.argsort(places[row, 0])]
            gaps = np.diff(places[row, 0])
            assert (gaps >= 0.5 * (widths[row][1:] + widths[row][:-1]) - 1e-9).all()


def test_a_tree_has_no_crossing() -> None:
    arrows = [((k - 1) // 2, k) for k in range(1, 15)]
    places, _ = lay_out_layers([1.0] * 15, arrows, 1.0, 0.2)
    for depth in range(1, 4):
        row = [k for k in range(15) if places[k, 1] == -depth]
        row.sort(key=lambda k: places[k, 0])
        parents = [places[(k - 1) // 2, 0] for k in row]
        assert parents == sorted(parents)


def test_distances_are_those_of_paths() -> None:
    ring = [(k, (k + 1) % 12) for k in range(12)]
    places = lay_out_distances(12, ring)
    sides = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1)
    assert np.ptp(sides) < 0.02 * sides.mean(), "a ring is a regular polygon"
    path = lay_out_distances(6, [(k, k + 1) for k in range(5)])
    assert np.allclose(np.linalg.norm(np.diff(path, axis=0), axis=1), 1.0, atol=0.01)
    assert np.ptp(path[:, 1]) < 0.05, "a path lies horizontally"


def test_components_do_not_overlap() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (6, 7), (7, 8)]
    places = lay_out_distances(10, edges)
    boxes = [places[part] for part in ([0, 1, 2], [3, 4], [5, 6, 7, 8], [9])]
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            apart = (one.min(axis=0) > other.max(axis=0)) | (other.min(axis=0) > one.max(axis=0))
            assert apart.any()


def test_the_same_graph_is_drawn_alike() -> None:
    edges = [(0, 1), (1, 2), (0, 3), (3, 2), (2, 4)]
    assert np.array_equal(lay_out_distances(5, edges), lay_out_distances(5, edges))
