"""A model as a graph: circles for variables, and plates for the loops around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gibbsite.applications.bugs.language.parser import parse
from gibbsite.applications.bugs.language.syntax import Call, Logical, Loop, Stochastic, Variable
from gibbsite.applications.bugs.language.wording import unparse
from gibbsite.results.plots._canvas import FAINT, INK, finish, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsite.applications.bugs.model import BugsModel

#: The loops around a relation, from the outer one to the inner one, as the text has them.
Plate: TypeAlias = "tuple[str, ...]"
_GAP, _ROW, _PAD, _HEIGHT = 0.35, 0.55, 0.28, 0.55  # inches
_FILL = {"unknown": "white", "observed": "#d9dde2", "computed": "white", "data": "white"}


@dataclass
class Node:
    """A variable: its plate, what it is (unknown, observed, computed or data), and on what it depends."""

    name: str
    plate: Plate
    kind: str
    parents: set[str] = field(default_factory=set)


def find_graph(model: BugsModel) -> dict[str, Node]:
    """Return the variables of a model with their plates and parents.

    Examples
    --------
    >>> import gibbsite as gs
    >>> text = "model { for (i in 1:3) { y[i] ~ dnorm(mu + b * x[i], 1) }  mu ~ dnorm(0, 1)  b ~ dnorm(0, 1) }"
    >>> graph = find_graph(gs.bugs(text, {"y": [1, 2, 3], "x": [0, 1, 2]}))
    >>> [(node.name, node.plate, node.kind) for node in graph.values()]
    [('y', ('i in 1:3',), 'observed'), ('mu', (), 'unknown'), ('b', (), 'unknown'), ('x', ('i in 1:3',), 'data')]
    >>> sorted(graph["y"].parents)
    ['b', 'mu', 'x']
    """
    found: dict[str, Node] = {}
    inputs: dict[str, Plate] = {}
    relations = list(_relations(parse(model.text).model, ()))
    for relation, loops in relations:
        name = relation.target.name
        plate = tuple(f"{loop.counter} in {unparse(loop.range)}" for loop in loops)
        node = found.setdefault(name, Node(name, plate, _kind(model, relation)))
        if len(plate) > len(node.plate):
            node.plate = plate
        if isinstance(relation, Stochastic) and node.kind == "computed":
            node.kind = _kind(model, relation)
    for relation, loops in relations:
        given = [relation.value] if isinstance(relation, Logical) else [*relation.distribution.arguments]
        given += [] if isinstance(relation, Logical) else [each for each in (relation.lower, relation.upper) if each]
        counters = [loop.counter for loop in loops]
        for variable in _variables([*given, *(relation.target.indices or ())]):
            if variable.name in counters:
                continue
            found[relation.target.name].parents.add(variable.name)
            if variable.name not in found:
                used = {each.name for each in _variables(variable.indices or ())}
                inner = max((k + 1 for k, counter in enumerate(counters) if counter in used), default=0)
                plate = tuple(f"{loop.counter} in {unparse(loop.range)}" for loop in loops[:inner])
                inputs[variable.name] = max(inputs.get(variable.name, ()), plate, key=len)
    found |= {name: Node(name, plate, "data") for name, plate in inputs.items()}
    return found


def _relations(body: Iterable[Any], loops: tuple[Loop, ...]) -> Iterator[tuple[Logical | Stochastic, tuple[Loop, ...]]]:
    for each in body:
        if isinstance(each, Loop):
            yield from _relations(each.body, (*loops, each))
        else:
            yield each, loops


def _kind(model: BugsModel, relation: Logical | Stochastic) -> str:
    if isinstance(relation, Logical):
        return "computed"
    rules = [each for each in model.assembly.compiled if each.rule.name == relation.target.name]
    drawn = [each.targets for each in rules if each.rule.distribution is not None]
    return "observed" if any(not model.network.unknown[each].all() for each in drawn) else "unknown"


def _variables(expressions: Iterable[Any]) -> Iterator[Variable]:
    for each in expressions:
        if isinstance(each, Variable):
            yield each
            yield from _variables(each.indices or ())
        elif isinstance(each, Call):
            yield from _variables(each.arguments)


# ---- layout: a plate is laid out on its own, and is then one item of what is around it


@dataclass
class _Box:
    """A plate or the whole: places of its variables and of the plates inside, from its lower left corner."""

    width: float
    height: float
    nodes: dict[str, tuple[float, float]]
    plates: list[tuple[str, float, float, float, float]]


def _width(name: str) -> float:
    return max(_HEIGHT, 0.11 * len(name) + 0.28)


def lay_out(graph: dict[str, Node], plate: Plate = ()) -> _Box:
    """Return the layout of what a plate holds."""
    depth = len(plate)
    item_of: dict[str, str] = {}
    for node in graph.values():
        if node.plate[:depth] == plate:
            item_of[node.name] = node.name if len(node.plate) == depth else "[" + node.plate[depth]
    boxes: dict[str, _Box] = {}
    for item in dict.fromkeys(item_of.values()):
        if item.startswith("["):
            boxes[item] = lay_out(graph, (*plate, item[1:]))
        else:
            width = _width(item)
            boxes[item] = _Box(width, _HEIGHT, {item: (width / 2, _HEIGHT / 2)}, [])
    edges = {
        (item_of[parent], item_of[node.name])
        for node in graph.values()
        for parent in node.parents
        if node.name in item_of and parent in item_of and item_of[parent] != item_of[node.name]
    }
    return _stack(boxes, edges, "" if not plate else plate[-1])


def _levels(items: Iterable[str], edges: set[tuple[str, str]]) -> dict[str, int]:
    """Return the row of each item: above all that depend on it, as low as possible; edges of cycles are passed over."""
    level: dict[str, int] = {}

    def place(item: str, path: tuple[str, ...]) -> int:
        if item not in level:
            below = [place(b, (*path, item)) for a, b in sorted(edges) if a == item and b not in (*path, item)]
            level[item] = 1 + max(below, default=-1)
        return level[item]

    for item in items:
        place(item, ())
    top = max(level.values(), default=0)
    return {item: top - row for item, row in level.items()}


def _sort(row: list[str], edges: set[tuple[str, str]], x: dict[str, float]) -> None:
    """Sort a row by the mean place of what each item is joined with."""
    near = {item: [x[b if a == item else a] for a, b in edges if item in (a, b)] for item in row}
    row.sort(key=lambda item: float(np.mean(near[item] or [x[item]])))


def _stack(boxes: dict[str, _Box], edges: set[tuple[str, str]], title: str) -> _Box:
    """Put boxes into rows, from causes to effects, each near what it is joined with."""
    level = _levels(boxes, edges)
    rows = [[item for item in boxes if level[item] == row] for row in range(max(level.values()) + 1)]
    widths = [sum(boxes[item].width for item in row) + _GAP * (len(row) - 1) for row in rows]
    inner = max(max(widths), 0.11 * len(title) + 0.1)
    x: dict[str, float] = {}
    for turn in range(6):
        for row, width in zip(rows, widths, strict=True):
            if turn:
                near = {
                    item: [x[b if a == item else a] for a, b in edges if item in (a, b)] or [x[item]] for item in row
                }
                row.sort(key=lambda item: float(np.mean(near[item])))
            left = (inner - width) / 2
            for item in row:
                x[item] = left + boxes[item].width / 2
                left += boxes[item].width + _GAP
    pad, foot = (_PAD, _PAD + 0.12) if title else (0.0, 0.0)
    heights = [max(boxes[item].height for item in row) for row in rows]
    height = sum(heights) + _ROW * (len(rows) - 1) + pad + foot
    found = _Box(inner + 2 * pad, height, {}, [])
    bottom = height - pad
    for row, tall in zip(rows, heights, strict=True):
        bottom -= tall
        for item in row:
            box = boxes[item]
            left, low = pad + x[item] - box.width / 2, bottom + (tall - box.height) / 2
            found.nodes |= {name: (left + a, low + b) for name, (a, b) in box.nodes.items()}
            found.plates += [(text, left + a, low + b, w, h) for text, a, b, w, h in box.plates]
        bottom -= _ROW
    if title:
        found.plates.append((title, 0.0, 0.0, found.width, found.height))
    return found


def _bend(box: _Box, one: str, other: str) -> float:
    """Return how far the arrow between two variables is bent, so that it does not pass over another one."""
    a, b = np.array(box.nodes[one]), np.array(box.nodes[other])
    along = b - a
    for name, place in box.nodes.items():
        off = np.array(place) - a
        share = float(off @ along / max(along @ along, 1e-9))
        away = np.abs(off - share * along)
        if name not in (one, other) and 0.0 < share < 1.0 and away[0] < 0.4 * _width(name) and away[1] < 0.4 * _HEIGHT:
            return 0.3 if along[0] * off[1] - along[1] * off[0] >= 0.0 else -0.3
    return 0.0


def draw_plates(model: BugsModel, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
    """Draw the variables of a model and what they depend on, with a plate around what a loop repeats."""
    graph = find_graph(model)
    box = lay_out(graph)
    axes = new_axes(max(2.0, box.width + 0.3), max(1.5, box.height + 0.3), path, ax)
    from matplotlib import patches

    look: dict[str, Any]
    for title, x, y, width, height in box.plates:
        look = {"boxstyle": "Round,pad=0,rounding_size=0.1", "fill": False, "edgecolor": FAINT, "zorder": 0}
        axes.add_patch(patches.FancyBboxPatch((x, y), width, height, **look))
        axes.text(x + width - 0.08, y + 0.07, title, ha="right", va="bottom", fontsize=7.5, color="#6d7680")
    shapes: dict[str, Any] = {}
    for name, (x, y) in box.nodes.items():
        kind, width = graph[name].kind, _width(name)
        look = {"facecolor": _FILL[kind], "edgecolor": INK, "lw": 1, "zorder": 2}
        if kind == "data":
            shapes[name] = patches.Rectangle((x - width / 2, y - 0.16), width, 0.32, **look | {"edgecolor": FAINT})
        else:
            dashes = "--" if kind == "computed" else "-"
            shapes[name] = patches.Ellipse((x, y), width, _HEIGHT - 0.1, ls=dashes, **look)
        axes.add_patch(shapes[name])
        axes.text(x, y, name, ha="center", va="center", fontsize=8.5, color=INK, zorder=3)
    for name, node in graph.items():
        for parent in sorted(node.parents):
            if parent == name:
                x, y = box.nodes[name][0] + _width(name) / 2, box.nodes[name][1]
                ends: dict[str, Any] = {"posA": (x - 0.03, y + 0.1), "posB": (x - 0.03, y - 0.1)}
                ends |= {"connectionstyle": "arc3,rad=-1.6", "shrinkA": 0, "shrinkB": 0}
            else:
                ends = {"posA": box.nodes[parent], "posB": box.nodes[name], "shrinkA": 0, "shrinkB": 0}
                ends |= {"patchA": shapes[parent], "patchB": shapes[name]}
                ends["connectionstyle"] = f"arc3,rad={_bend(box, parent, name)}"
            look = {"arrowstyle": "-|>", "mutation_scale": 9, "color": "#6d7680", "lw": 0.9, "zorder": 1}
            axes.add_patch(patches.FancyArrowPatch(**look, **ends))
    axes.set_aspect("equal")
    axes.set_xlim(-0.1, box.width + 0.1)
    axes.set_ylim(-0.1, box.height + 0.1)
    axes.set_axis_off()
    return finish(axes, path)
