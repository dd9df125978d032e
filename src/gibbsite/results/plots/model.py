"""A picture of a model: its sites and factors as a graph, or a lattice as an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import check_sites, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.graphs.color import color_sites
from gibbsite.graphs.graph import compile_graph
from gibbsite.models import FactorGraph, Gaussian, Model
from gibbsite.models.lattice import LatticeFactors
from gibbsite.results.compare import read_table
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, finish, new_axes, shorten, tidy
from gibbsite.results.plots._layout import Edge, lay_out_distances, lay_out_layers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NODES = 600  # of a picture with nodes
_NAMED = 150  # of sites whose names are written
_LATTICE = 900  # sites of a lattice that is drawn node by node
_PAPER, _LINE = "#f4f6f8", "#6d7680"


class _Structure(NamedTuple):
    """Sites that are drawn, and what joins them, by their numbers in the picture."""

    sites: list[int]
    arrows: list[Edge]
    lines: dict[Edge, float]
    factors: list[tuple[int, ...]]


@checked
def plot_model(
    model: Model,
    *,
    sites: Sequence[str | int] | None = None,
    color: Any = None,
    blocks: Sequence[Iterable[str | int]] | None = None,
    names: bool | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Draw a model: a Bayesian network with arrows, a factor graph with squares, a lattice as it lies.

    Sites are circles. A table of a Bayesian network is drawn as arrows from the causes to the effect, a factor of two
    sites as a line (blue where equal states are favoured, orange where they are not, if that is known), and a
    factor of three or more sites as a square. Lattices of more than 900 sites are drawn as an image. Models in
    BUGS language are drawn with a plate around what a loop repeats.

    Parameters
    ----------
    model : Model
        The model; sites that were observed are not part of it any more.
    sites : sequence of sites, optional
        Draw only these, and the factors between them.
    color : optional
        "scan": the colors of a chromatic scan; an answer with marginals: the probability of the last of two states, or
        of the most probable state; or a mapping from sites to numbers or to names of groups.
    blocks : sequence of sequences of sites, optional
        Sites that are updated together get a color for each block.
    names : bool, optional
        Whether to write the names of sites; by default of up to 150.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, the model has no factors to draw, or too many sites are asked for.

    See Also
    --------
    plot_marginals : The marginals of a model.

    Examples
    --------
    >>> import gibbsite as gs
    >>> axes = plot_model(gs.example("asia"), color=gs.infer(gs.example("asia")))
    >>> [text.get_text() for text in axes.texts][:2]
    ['asia', 'tub']
    """
    draw = getattr(model, "plot", None)
    if draw is not None and (sites, color, blocks, names) == (None,) * 4:
        own: Axes = draw(ax=ax, path=path)
        return own
    if color is not None and blocks is not None:
        raise ArgumentError("Give color= or blocks=, not both.")
    shape = None if sites is not None else _lattice_shape(model)
    chosen = list(range(model.n_sites)) if sites is None else [model.index(site) for site in sites]
    if not chosen:
        raise ArgumentError("There is no site to draw: all are observed, or sites= is empty.")
    values, groups = _read_color(model, color) if blocks is None else (None, _read_blocks(model, blocks))
    if shape is not None and len(chosen) > _LATTICE:
        return _draw_image(model, shape, values, groups, ax, path)
    if len(chosen) > _MOST_NODES and shape is None:
        raise ArgumentError(
            f"{len(chosen):,} sites are too many for one picture; name up to {_MOST_NODES} in {argument('sites')}."
        )
    found = _find_structure(model, chosen)
    named = len(chosen) <= _NAMED if names is None else names
    labels = [shorten(model.domains.names[site], 14) if named else "" for site in chosen]
    places, routes = _place(found, shape, labels)
    boxed = routes is not None and named
    pad = np.array([0.09 * max(map(len, labels)), 0.6]) if boxed else np.array([0.7, 0.8])
    low, high = places.min(axis=0) - 0.5 * pad, places.max(axis=0) + 0.5 * pad
    spread = high - low
    unit = float(np.clip((15.0 if boxed else 10.0) / spread.max(), 0.2, 1.0))  # inches
    axes = new_axes(max(3.0, unit * spread[0]), max(1.2, unit * spread[1]), path, ax)
    if ax is not None:
        extent = np.asarray(ax.get_window_extent().size) / ax.figure.dpi
        unit = float((extent / spread).min())
    size = float(np.clip((0.4 * 72.0 * unit) ** 2, 4.0, 320.0))  # of nodes, in square points
    half = 8.0 if boxed else 0.5 * size**0.5
    _draw_edges(axes, found, places, routes, half)
    marks = _Marks(values, groups, size, labels, boxed)
    _draw_nodes(axes, found, places, marks, _name_values(model, color))
    if shape is not None or routes is None:
        axes.set_aspect("equal")
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_axis_off()
    return finish(axes, path)


class _Marks(NamedTuple):
    """How sites look: a number for each, or a group; size in square points; names below circles or in boxes."""

    values: Floats | None
    groups: list[str] | None
    size: float
    labels: list[str]
    boxed: bool


def _lattice_shape(model: Model) -> tuple[int, int] | None:
    """Return rows and columns of a model on a lattice of two dimensions."""
    if isinstance(model, FactorGraph):
        for group in model.groups:
            if isinstance(group, LatticeFactors) and len(group.shape) == 2:
                return group.shape[0], group.shape[1]
    return None


def _read_color(model: Model, color: Any) -> tuple[Floats | None, list[str] | None]:
    """Return a number for each site, or the name of its group."""
    if color is None:
        return None, None
    if isinstance(color, str):
        if color != "scan":
            raise ArgumentError(f"{argument('color')} must be 'scan', an answer or a mapping, got {color!r}.")
        return None, [f"color {code + 1}" for code in color_sites(compile_graph(model)).tolist()]
    if isinstance(color, Mapping):
        given: list[Any] = [None] * model.n_sites
        for site, value in color.items():
            given[model.index(site)] = value
        if all(value is None or isinstance(value, (int, float, np.number)) for value in given):
            return np.array([np.nan if value is None else float(value) for value in given]), None
        return None, ["" if value is None else str(value) for value in given]
    try:
        table = read_table(color)
    except ArgumentError:
        raise ArgumentError(
            f"{argument('color')} must be 'scan', an answer with marginals or a mapping, got {describe(color)}."
        ) from None
    found = np.full(model.n_sites, np.nan)
    for site, name in enumerate(model.domains.names.all()):
        states = list(table[name].values())
        found[site] = states[-1] if len(states) == 2 else max(states)
    return found, None


def _name_values(model: Model, color: Any) -> str:
    """Return what colors stand for where they show probabilities; nothing where they show other numbers."""
    if color is None or isinstance(color, str | Mapping):
        return ""
    kinds = {model.domains.kind(site) for site in range(model.n_sites)}
    kind = next(iter(kinds))
    if len(kinds) == 1 and isinstance(kind, tuple) and len(kind) == 2:
        return f"probability of state {shorten(kind[1], 14)}"
    return "probability of the last of two states, or of the most probable state"


def _read_blocks(model: Model, blocks: Sequence[Iterable[str | int]]) -> list[str]:
    groups = [""] * model.n_sites
    for number, block in enumerate(blocks, 1):
        for site in check_sites(f"block {number}", block):
            at = model.index(site)
            groups[at] = f"{groups[at]}, {number}" if groups[at] else f"block {number}"
    return groups


def _find_structure(model: Model, chosen: list[int]) -> _Structure:
    """Return what joins the chosen sites."""
    number = {site: k for k, site in enumerate(chosen)}
    found = _Structure(chosen, [], {}, [])
    if isinstance(model, Gaussian):
        matrix = model.precision
        rows, columns = matrix.nonzero()
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
            if i < j and i in number and j in number:
                found.lines[number[i], number[j]] = -float(matrix[i, j])
        return found
    groups = getattr(model, "groups", None)
    if groups is None:
        raise ArgumentError(f"A {type(model).__name__} is given by functions of all sites: it has no factors to draw.")
    for group in groups:
        scopes = np.atleast_2d(group.scopes)
        weights = _pair_weights(group)
        for row, scope in enumerate(scopes.tolist()):
            if not all(site in number for site in scope):
                continue
            at = [number[site] for site in scope]
            if getattr(group, "directed", False):
                found.arrows.extend((parent, at[-1]) for parent in at[:-1])
            elif len(at) == 2:
                key = (min(at), max(at))
                found.lines[key] = found.lines.get(key, 0.0) + (0.0 if weights is None else float(weights[row]))
            elif len(at) > 2:
                found.factors.append(tuple(at))
    return found


def _pair_weights(group: Any) -> Floats | None:
    """Return how much each factor of two sites favours equal states; None where that is not known."""
    if group.arity != 2:
        return None
    weights = group.edge_weights() if hasattr(group, "edge_weights") else getattr(group, "weights", None)
    if not isinstance(weights, np.ndarray):
        return None
    if weights.ndim == 1:
        return np.broadcast_to(weights, (group.size,))
    if weights.ndim == 3 and weights.shape[1] == weights.shape[2]:
        finite = np.clip(weights, -50.0, 50.0)
        same = np.trace(finite, axis1=1, axis2=2) / weights.shape[1]
        return np.asarray(same - finite.mean(axis=(1, 2)))
    return None


def _place(found: _Structure, shape: tuple[int, int] | None, labels: list[str]) -> tuple[Floats, list[Floats] | None]:
    """Return the places of sites and then of factors, in inches if there is space, and the ways of arrows."""
    n = len(found.sites)
    if shape is not None:
        rows, columns = np.divmod(np.arange(n), shape[1])
        places = 0.6 * np.column_stack([columns, -rows])
        centers = [places[list(factor)].mean(axis=0) for factor in found.factors]
        return np.vstack([places, *centers]) if centers else places, None
    if found.arrows and not found.lines and not found.factors:
        widths = [0.3 + 0.075 * len(label) for label in labels]
        layers = lay_out_layers(widths, found.arrows, 0.62, 0.25)
        return layers.places, layers.routes
    edges: list[Edge] = [*found.arrows, *found.lines]
    for k, factor in enumerate(found.factors):
        edges += [(n + k, site) for site in factor]
    return 0.8 * lay_out_distances(n + len(found.factors), edges), None


def _draw_edges(axes: Axes, found: _Structure, places: Floats, routes: list[Floats] | None, half: float) -> None:
    """Draw what joins sites; ``half`` is half the height of a node in points."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyArrowPatch, PathPatch

    n = len(found.sites)
    segments = [places[list(pair)] for pair in found.lines]
    weights = np.array(list(found.lines.values()))
    size = np.abs(weights)
    colors = [COLORS[0] if w > 0 else COLORS[1] if w < 0 else _LINE for w in weights.tolist()]
    widths = 0.8 + 1.8 * size / size.max() if size.size and size.max() > 0 else np.full(size.size, 1.0)
    axes.add_collection(LineCollection(segments, colors=colors, linewidths=widths.tolist(), alpha=0.75, zorder=1))
    spokes = [places[[n + k, site]] for k, factor in enumerate(found.factors) for site in factor]
    axes.add_collection(LineCollection(spokes, colors=_LINE, linewidths=0.9, zorder=1))
    for k, (parent, child) in enumerate(found.arrows):
        points = places[[parent, child]] if routes is None else routes[k]
        begin = points[0]
        if len(points) > 2:  # a smooth way through the layers, and an arrow at its end
            begin = 0.5 * (points[-2] + points[-1])
            axes.add_patch(PathPatch(_bend(points, begin), fc="none", ec=_LINE, lw=0.9, zorder=1))
        head = FancyArrowPatch(
            (float(begin[0]), float(begin[1])),
            (float(points[-1][0]), float(points[-1][1])),
            arrowstyle="-|>",
            mutation_scale=9,
            shrinkA=0.0,
            shrinkB=half + 1.0,
            color=_LINE,
            lw=0.9,
            zorder=1,
        )
        axes.add_patch(head)


def _bend(points: Floats, end: Floats) -> Any:
    """Return a smooth way through some points, all but the last."""
    from matplotlib.path import Path as Way

    vertices, codes = [points[0]], [int(Way.MOVETO)]
    for k in range(1, len(points) - 1):
        vertices += [points[k], end if k == len(points) - 2 else 0.5 * (points[k] + points[k + 1])]
        codes += [int(Way.CURVE3)] * 2
    return Way(np.array(vertices), codes)


def _draw_nodes(axes: Axes, found: _Structure, places: Floats, marks: _Marks, meaning: str) -> None:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    n, size, values, groups = len(found.sites), marks.size, marks.values, marks.groups
    faces: list[Any] = [_PAPER] * n
    if values is not None:
        shown = values[found.sites]
        finite = shown[np.isfinite(shown)]
        low, high = (0.0, 1.0) if meaning else (float(finite.min(initial=0.0)), float(finite.max(initial=1.0)))
        norm = Normalize(low, high)
        shades = colormaps["Blues"]
        faces = [shades(0.85 * norm(value)) if np.isfinite(value) else _PAPER for value in shown.tolist()]
        scale = ScalarMappable(norm, shades.resampled(256))
        bar = axes.figure.colorbar(scale, ax=axes, shrink=0.6, pad=0.02)
        bar.set_label(meaning or "value", fontsize=8, color=INK)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
    elif groups is not None:
        kinds = list(dict.fromkeys(groups[site] for site in found.sites))
        shades_of = {kind: COLORS[k % len(COLORS)] if kind else _PAPER for k, kind in enumerate(kinds)}
        faces = [shades_of[groups[site]] for site in found.sites]
        if len(kinds) <= len(COLORS):
            for kind in kinds:
                axes.plot([], [], "o", ms=7, mec=INK, mew=0.8, color=shades_of[kind], label=kind or "no group")
            axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    at = places[:n]
    if marks.boxed:
        axes.plot(at[:, 0], at[:, 1], ",", alpha=0.0)
    else:
        axes.scatter(at[:, 0], at[:, 1], s=size, c=faces, edgecolors=INK, linewidths=0.8, zorder=2)
    if found.factors:
        axes.scatter(places[n:, 0], places[n:, 1], s=0.35 * size, c=INK, marker="s", zorder=2)
    below = 0.0 if marks.boxed else -0.5 * size**0.5 - 2.0
    for k, label in enumerate(marks.labels):
        box = {"boxstyle": "round,pad=0.35", "fc": faces[k], "ec": INK, "lw": 0.8} if marks.boxed else None
        dark = marks.boxed and not isinstance(faces[k], str) and sum(faces[k][:3]) < 1.6
        axes.annotate(
            label,
            (float(at[k, 0]), float(at[k, 1])),
            (0.0, below),
            textcoords="offset points",
            ha="center",
            va="center" if marks.boxed else "top",
            fontsize=7 if n > 40 else 8,
            color="white" if dark else INK,
            bbox=box,
            zorder=3,
        )


def _draw_image(
    model: Model,
    shape: tuple[int, int],
    values: Floats | None,
    groups: list[str] | None,
    ax: Axes | None,
    path: str | Path | None,
) -> Axes:
    """Draw a large lattice: given values or groups, otherwise its fields or, without fields, its couplings."""
    title = "given values"
    if groups is not None:
        kinds = list(dict.fromkeys(groups))
        values, title = np.array([kinds.index(group) for group in groups], float), f"{len(kinds)} groups"
    elif values is None:
        values, title = _fields(model)
    axes = new_axes(5.2, 4.4 * min(max(shape[0] / shape[1], 0.4), 1.6), path, ax)
    reach = max(float(np.nanmax(np.abs(values))), 1e-12)
    signed = bool(np.nanmin(values) < 0.0)
    how: dict[str, Any] = {"cmap": "PuOr_r", "vmin": -reach, "vmax": reach} if signed else {"cmap": "viridis"}
    image = axes.imshow(values.reshape(shape), interpolation="nearest", **how)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    bar.ax.tick_params(labelsize=8)
    bar.outline.set_visible(False)
    tidy(axes, f"lattice of {shape[0]:,} x {shape[1]:,} sites: {title}", "column", "row")
    axes.spines[:].set_visible(False)
    axes.grid(color=FAINT, lw=0.0)
    return finish(axes, path)


def _fields(model: Any) -> tuple[Floats, str]:
    """Return the field of each site, or the sum of its couplings where there are no fields."""
    fields, couplings = np.zeros(model.n_sites), np.zeros(model.n_sites)
    for group in model.groups:
        if group.arity == 1:
            tables = group.log_tables(model.cards)
            fields[group.scopes[:, 0]] += tables[:, -1] - tables[:, 0]
        elif group.arity == 2 and (weights := _pair_weights(group)) is not None:
            for end in range(2):
                np.add.at(couplings, group.scopes[:, end], weights)
    if np.ptp(fields) > 0.0 or not np.ptp(couplings) > 0.0:
        return fields, "log-odds of the last state by fields"
    return couplings, "sum of couplings"
