"""What all plots share: figures and axes, colours, and saving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite._common.wording import missing
from gibbsite.errors import ArgumentError, FormatError, GibbsiteError, UnknownFormatError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gibbsite.models.domain import Domains
    from gibbsite.results.result import Result

# The colours of Okabe and Ito, which colour-blind readers can distinguish; blue and orange come first.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
INK, FAINT = "#333333", "#b8b8b8"


def new_figure(width: float, height: float, path: str | Path | None, figure: Figure | SubFigure | None = None) -> Any:
    """Return the figure to draw in: the given one, or a new one of pyplot, or a bare one if it is only saved."""
    if figure is not None:
        return figure
    shape: dict[str, Any] = {"figsize": (width, height), "layout": "constrained", "facecolor": "white"}
    if path is not None:
        return _load_figure()(**shape)
    _load_figure()
    from matplotlib import pyplot

    return pyplot.figure(**shape)


def new_axes(width: float, height: float, path: str | Path | None, ax: Axes | None) -> Axes:
    """Return the axes to draw in: the given ones, or those of a new figure."""
    axes: Axes = new_figure(width, height, path).add_subplot() if ax is None else ax
    return axes


def _load_figure() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GibbsiteError(missing("Plots need", "matplotlib", "report")) from None
    return Figure


def split_figure(figure: Figure | SubFigure, widths: Sequence[float]) -> list[SubFigure]:
    """Divide a figure into parts side by side."""
    parts = figure.subfigures(1, len(widths), width_ratios=list(widths))
    return list(np.atleast_1d(np.asarray(parts, object)))


def tidy(axes: Axes, title: str = "", xlabel: str = "", ylabel: str = "") -> None:
    """Give axes the common look."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(which="both", labelsize=8, color=FAINT, labelcolor=INK)
    axes.set_title(title, fontsize=9, color=INK, loc="left")
    axes.set_xlabel(xlabel, fontsize=8, color=INK)
    axes.set_ylabel(ylabel, fontsize=8, color=INK)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure to a file."""
    check_picture(path)
    try:
        figure.savefig(path, dpi=150)
    except OSError as reason:
        raise FormatError(f"Cannot write {path}: {reason.strerror or reason}.") from None


def finish(axes: Axes, path: str | Path | None) -> Axes:
    """Return axes; save their figure if a path is given."""
    if path is not None:
        save_figure(axes.figure.figure, path)
    return axes


def finish_panels(panels: Sequence[Axes], path: str | Path | None) -> Array:
    """Return several axes as an array; save their figure if a path is given."""
    found = np.empty(len(panels), object)
    found[:] = panels
    finish(found[0], path)
    return found


def check_picture(path: str | Path) -> None:
    """Refuse a file whose suffix is none of a plot."""
    figure = _load_figure()(figsize=(1, 1))
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix and suffix not in figure.canvas.get_supported_filetypes():
        raise UnknownFormatError(str(path), "plots end in .png, .svg or .pdf", writing=True)


def state_colors(count: int) -> Floats:
    """Return one colour (red, green, blue) per state."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if count <= len(COLORS):
        return np.array([to_rgb(color) for color in COLORS[:count]])
    return np.asarray(colormaps["viridis"](np.linspace(0, 1, count)))[:, :3]


def positions(domains: Domains, sites: Sequence[str | int] | str | int) -> list[int]:
    """Return the positions of the sites to show."""
    if isinstance(sites, str | int | np.integer):
        sites = [sites]
    found = [domains.position(site) for site in sites]
    if not found:
        raise ArgumentError("There is no site to show; leave sites= out or name at least one.")
    return found


def shorten(text: Any, most: int = 28) -> str:
    """Cut long names, and keep dollar signs from being read as formulas."""
    plain = str(text)
    plain = plain if len(plain) <= most else plain[: most - 1] + "…"
    return plain.replace("$", r"\$")


def cell_title(result: Result, cell: int) -> str:
    """Return what a cell is: a probability, or mean or standard deviation of a number."""
    name = shorten(result._cell_name(cell))
    return name if cell in result._moment_cells else f"P({name})"


def name_states(axes: Axes, names: Sequence[str], colors: Floats) -> None:
    """Explain the colours beside the axes, of very many states only some."""
    picked = np.unique(np.linspace(0, len(names) - 1, min(len(names), 6)).round().astype(int))
    for code in picked.tolist():
        axes.plot([], [], "s", color=colors[code], ms=6, label=names[code])
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False, handlelength=1)
