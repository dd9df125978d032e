"""Marginals of very many sites: an image, and distributions over sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import ModelError
from gibbsite.report._canvas import COLORS, name_states, new_figure, shorten, state_colors, tidy
from gibbsite.result.compare import same_layout
from gibbsite.result.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def survey_marginals(
    table: SiteTable,
    errors: SiteTable | None,
    other: SiteTable | None,
    shape: tuple[int, int] | None,
) -> Figure:
    """Show very many sites: an image if they lie in rows, and distributions over sites."""
    p = table.to_array()
    real = np.arange(p.shape[1]) < np.asarray(table.domains.cards)[:, None]
    parts = (shape is not None) + 1 + (errors is not None or other is not None)
    figure = new_figure(4.1 * parts, 3.6)
    axes = iter(np.atleast_1d(figure.subplots(1, parts)))
    if shape is not None:
        _draw_image(next(axes), table, p, shape)
    _draw_histogram(next(axes), table, p)
    if other is not None:
        q = _aligned(other, table)
        panel = next(axes)
        _draw_density(panel, q[real], p[real])
        ends = [min(q[real].min(), p[real].min()), max(q[real].max(), p[real].max())]
        panel.plot(ends, ends, color=COLORS[5], lw=0.8)
        tidy(panel, f"{int(real.sum()):,} states", "reference", "estimate")
    elif errors is not None:
        panel = next(axes)
        size = errors.to_array()
        known = real & np.isfinite(size)
        _draw_density(panel, p[known], size[known])
        panel.set_ylim(bottom=0.0)
        tidy(panel, "standard errors", "probability", "standard error")
    return figure


def _draw_image(axes: Axes, table: SiteTable, p: NDArray[np.float64], shape: tuple[int, int]) -> None:
    if len(shape) != 2 or shape[0] * shape[1] != len(p):
        raise ModelError(f"The shape {shape} does not hold {len(p):,} sites; give rows and columns.")
    if p.shape[1] == 2:
        reach = max(float(np.abs(p[:, 1] - 0.5).max()), 1e-3)
        image = axes.imshow(p[:, 1].reshape(shape), cmap="PuOr_r", vmin=0.5 - reach, vmax=0.5 + reach)
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
        tidy(axes, f"probability of state {_state_name(table, 1)}")
    else:
        colors = state_colors(p.shape[1])
        axes.imshow(colors[p.argmax(axis=1)].reshape(*shape, 3))
        name_states(axes, [_state_name(table, code) for code in range(p.shape[1])], colors)
        tidy(axes, "most probable state")
    axes.spines[:].set_visible(False)


def _state_name(table: SiteTable, code: int) -> str:
    """Return the label of a state if all sites share their labels, or else its number."""
    domains = table.domains
    return shorten(domains.labels(0)[code] if len(domains.kinds) == 1 else f"number {code}", 14)


def _draw_histogram(axes: Axes, table: SiteTable, p: NDArray[np.float64]) -> None:
    """Show how the probability of each state is distributed over sites."""
    cards = np.asarray(table.domains.cards)
    codes = [1] if p.shape[1] == 2 else list(range(min(p.shape[1], len(COLORS))))
    names = [_state_name(table, code) for code in codes]
    values = [p[cards > code, code] for code in codes]
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    edges = np.linspace(low, max(high, low + 1e-6), 81)
    alpha = 0.85 if len(codes) == 1 else 0.4
    for code, name in enumerate(names):
        axes.hist(
            values[code], edges.tolist(), histtype="stepfilled", alpha=alpha, color=COLORS[code], label=name
        )
    if len(codes) > 1:
        axes.legend(title="state", fontsize=8, title_fontsize=8, frameon=False)
    state = f" of state {names[0]}" if len(codes) == 1 else ""
    tidy(axes, f"{len(p):,} sites", f"probability{state}", "sites")


def _draw_density(axes: Axes, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    if x.size <= 2000:
        axes.plot(x, y, ".", ms=3, color=COLORS[0], alpha=0.5)
    else:
        axes.hexbin(x, y, gridsize=60, bins="log", cmap="Blues", mincnt=1, lw=0)


def _aligned(other: SiteTable, table: SiteTable) -> NDArray[np.float64]:
    """Return the numbers of another table in the order of this one."""
    if same_layout(table, other):
        return other.to_array()
    width = int(table.domains.cards.max(initial=1))
    aligned = np.zeros((table.domains.n_sites, width))
    for k, name in enumerate(table.domains.names.all()):
        states = other[name]
        labels = table.domains.labels(k)
        aligned[k, : len(labels)] = [states[label] for label in labels]
    return aligned
