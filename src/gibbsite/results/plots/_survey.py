"""Marginals of many sites: an image, distributions over sites, and the least certain by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.results.compare import same_layout
from gibbsite.results.plots._canvas import COLORS, name_states, shorten, split_figure, state_colors, tidy
from gibbsite.results.plots._listing import draw_listing, list_sites
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_LEAST_CERTAIN = 24


class Survey:
    """What is drawn of many sites with states."""

    def __init__(
        self,
        table: SiteTable,
        errors: SiteTable | None,
        other: SiteTable | None,
        shown: list[int],
        shape: tuple[int, int] | None,
    ) -> None:
        self.table, self.errors, self.other, self.shape = table, errors, other, shape
        self.shown = np.array(shown)
        self.p = table.to_array()[self.shown]
        self.listing = list_sites(table, errors, other, _least_certain(self.p, shown), _LEAST_CERTAIN)
        self.panels = (shape is not None) + 1 + (errors is not None or other is not None)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that it needs, in inches."""
        return 4.1 * self.panels + 4.6, max(3.6, self.listing.size[1])

    def draw(self, figure: Figure | SubFigure) -> None:
        """Draw it."""
        left, right = split_figure(figure, [4.1 * self.panels, 4.6])
        p, cards = self.p, np.asarray(self.table.domains.cards)[self.shown]
        real = np.arange(p.shape[1]) < cards[:, None]
        axes = iter(np.atleast_1d(left.subplots(1, self.panels)))
        if self.shape is not None:
            draw_image(next(axes), self.table, p, self.shape)
        _draw_histogram(next(axes), self.table, p)
        if self.other is not None:
            q = _aligned(self.other, self.table)[self.shown]
            panel = next(axes)
            _draw_density(panel, q[real], p[real])
            ends = [min(q[real].min(), p[real].min()), max(q[real].max(), p[real].max())]
            panel.plot(ends, ends, color=COLORS[5], lw=0.8)
            tidy(panel, f"{int(real.sum()):,} states", "reference", "estimate")
        elif self.errors is not None:
            panel = next(axes)
            size = self.errors.to_array()[self.shown]
            known = real & np.isfinite(size)
            _draw_density(panel, p[known], size[known])
            panel.set_ylim(0.0, max(1.1 * float(size[known].max(initial=0.0)), 1e-6))
            tidy(panel, "standard errors", "probability", "standard error")
        hidden = len(p) - min(_LEAST_CERTAIN, len(p))
        note = f"the least certain; {hidden:,} sites are not shown by name" if hidden else ""
        listing = self.listing._replace(note=note)
        draw_listing(right, listing, self.errors is not None, self.other is not None)


def _least_certain(p: Floats, shown: list[int]) -> list[int]:
    """Return the sites whose most probable state is least probable, in their order."""
    order = np.argsort(p.max(axis=1), kind="stable")[:_LEAST_CERTAIN]
    return [shown[k] for k in np.sort(order).tolist()]


def draw_image(axes: Axes, table: SiteTable, p: Floats, shape: tuple[int, int]) -> None:
    """Draw sites that lie in rows and columns as an image."""
    if len(shape) != 2 or shape[0] * shape[1] != len(p):
        raise ArgumentError(f"The shape {shape} does not hold {len(p):,} sites; give rows and columns.")
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


def _draw_histogram(axes: Axes, table: SiteTable, p: Floats) -> None:
    """Show how a probability is spread over sites: of the second of two states, or of the most probable."""
    two = p.shape[1] == 2
    values = p[:, 1] if two else p.max(axis=1)
    low, high = float(values.min()), float(values.max())
    edges = int(np.clip(np.sqrt(len(values)), 10, 80)) + 1
    axes.hist(values, np.linspace(low, max(high, low + 1e-6), edges).tolist(), color=COLORS[0], alpha=0.85)
    state = f"state {_state_name(table, 1)}" if two else "the most probable state"
    tidy(axes, f"{len(p):,} sites", f"probability of {state}", "sites")
    axes.locator_params(axis="x", nbins=5)


def _draw_density(axes: Axes, x: Floats, y: Floats) -> None:
    if x.size <= 2000:
        axes.plot(x, y, ".", ms=3, color=COLORS[0], alpha=0.5)
    else:
        axes.hexbin(x, y, gridsize=60, bins="log", cmap="Blues", mincnt=1, lw=0)
    axes.locator_params(axis="x", nbins=5)


def _aligned(other: SiteTable, table: SiteTable) -> Floats:
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
