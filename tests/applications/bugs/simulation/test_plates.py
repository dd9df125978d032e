"""The picture of a model has its variables in their plates, which hold nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.applications.bugs.simulation.plates import find_graph, lay_out

FOLDER = Path(__file__).parents[4] / "examples" / "bugs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.bug"))


def read(name: str) -> Any:
    return gs.bugs(FOLDER / f"{name}.bug", FOLDER / f"{name}-data.json")


@pytest.mark.parametrize("name", NAMES)
def test_plates_hold_their_variables_alone(name: str) -> None:
    graph = find_graph(read(name))
    box = lay_out(graph)
    assert set(box.nodes) == set(graph)
    for title, x, y, width, height in box.plates:
        inside = {node for node, (a, b) in box.nodes.items() if x < a < x + width and y < b < y + height}
        assert inside
        for node in graph.values():
            assert (node.name in inside) <= (title in node.plate)
        depth = {graph[node].plate.index(title) for node in inside}
        mine = next(graph[node].plate[: depth.copy().pop() + 1] for node in inside)
        assert inside == {node.name for node in graph.values() if node.plate[: len(mine)] == mine}
    spots = list(box.nodes.values())
    assert all(abs(a[0] - b[0]) > 0.3 or abs(a[1] - b[1]) > 0.3 for k, a in enumerate(spots) for b in spots[:k])


def test_kinds_and_parents() -> None:
    graph = find_graph(read("capture"))
    assert graph["alive"].plate == ("i in 1:animals", "t in (first[i] + 1):occasions")
    assert graph["first"].plate == ("i in 1:animals",)
    assert {name: node.kind for name, node in graph.items()} == {
        "alive": "observed",
        "caught": "observed",
        "phi": "unknown",
        "p": "unknown",
        "first": "data",
    }
    assert graph["alive"].parents == {"phi", "alive", "first"}
    assert find_graph(read("mixture"))["mean.of"].kind == "unknown"


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model = read("occupancy")
    axes = gs.plot_model(model, path=tmp_path / "graph.png")
    assert {"z", "seen", "i in 1:sites", "j in 1:visits"} <= {text.get_text() for text in axes.texts}
    assert (tmp_path / "graph.png").stat().st_size > 1000
    assert model.plot(ax=axes) is axes
