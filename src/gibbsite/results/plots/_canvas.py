"""What all plots share: a figure without global state, colours, and saving."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError, FormatError, GibbsiteError, UnknownFormatError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gibbsite.models.domain import Domains
    from gibbsite.results.result import Result

# Okabe and Ito's colours, told apart by colour-blind readers too; blue and orange come first.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
INK, FAINT = "#333333", "#b8b8b8"


def new_figure(width: float, height: float) -> Figure:
    """Make a figure; notebooks show it.

    Where a program has loaded ``matplotlib.pyplot``, it becomes the current figure, so that ``plt.savefig``
    and ``plt.show`` mean it. Otherwise it belongs to no window and need not be closed. In notebooks that show
    figures inline, it stays outside of pyplot, because it would be shown twice.
    """
    shape: dict[str, Any] = {"figsize": (width, height), "layout": "constrained", "facecolor": "white"}
    kind, pyplot = _picture(), _pyplot()
    return kind(**shape) if pyplot is None else pyplot.figure(FigureClass=kind, **shape)


def _pyplot() -> Any:
    """Return pyplot if it has been loaded and shows no figures by itself, otherwise None."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return None
    import matplotlib

    return None if "inline" in str(matplotlib.get_backend()).lower() else pyplot


def _picture() -> type[Figure]:
    """Return the class of figures that show themselves in notebooks."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GibbsiteError(
            "Plots need matplotlib, which is not installed; run: pip install gibbsite[report]"
        ) from None

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png", dpi=100)
            return buffer.getvalue()

    return Picture


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


def finish(figure: Figure, path: str | Path | None) -> Figure:
    """Save the figure if a path is given; it is then no longer the current one of pyplot."""
    if path is not None:
        check_picture(path)
        try:
            figure.savefig(path, dpi=150)
        except OSError as reason:
            raise FormatError(f"Cannot write {path}: {reason.strerror or reason}.") from None
        finally:
            if (pyplot := _pyplot()) is not None:
                pyplot.close(figure)
    return figure


def check_picture(path: str | Path) -> None:
    """Refuse a file whose suffix is none of a plot."""
    figure = _picture()(figsize=(1, 1))
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
