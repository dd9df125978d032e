"""Colours and helpers for the figures of experiments; matplotlib is imported only when a figure is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from gibbsite._common.arrays import Array
from gibbsite.results.plots._canvas import COLORS as COLORS
from gibbsite.results.plots._canvas import FAINT as FAINT
from gibbsite.results.plots._canvas import INK as INK
from gibbsite.results.plots._canvas import tidy as tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes: TypeAlias = Any
    Figure: TypeAlias = Any


def show_picture(axes: Axes, picture: Array, title: str, span: tuple[float, float]) -> None:
    """Show a picture in grey, without ticks."""
    axes.imshow(picture, cmap="gray", vmin=span[0], vmax=span[1], interpolation="nearest")
    tidy(axes, title)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set(visible=True, color=FAINT)
