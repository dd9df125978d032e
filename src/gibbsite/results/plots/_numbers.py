"""Sites that are numbers: densities from draws, or means with intervals of two standard deviations."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Array, Positions
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Angle
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, shorten, tidy
from gibbsite.results.plots._listing import SITES
from gibbsite.results.quantiles import unroll
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_PANELS = 12  # numbers with a panel of their own
_ACROSS = 4  # panels side by side
_ROWS = 40  # of a column of intervals
_LEAST_KNOWN = 30  # of very many numbers


def _go_round(kind: Angle, value: float, position: int | None = None) -> str:
    """Return the tick of an angle: axes go on beyond a turn, angles do not."""
    return f"{kind.low + (value - kind.low) % kind.period:.3g}"


class Numbers:
    """What is drawn of numbers: their positions, tables, and recorded draws by position."""

    def __init__(
        self,
        table: SiteTable,
        errors: SiteTable | None,
        other: SiteTable | None,
        shown: list[int],
        draws: dict[int, Array],
        shape: tuple[int, int] | None,
    ) -> None:
        self.table, self.errors, self.other, self.draws, self.shape = table, errors, other, draws, shape
        self.shown = shown
        self.names = [shorten(table.domains.names[site], 22) for site in shown]
        self.mean, self.sd = np.array([list(table[site].values()) for site in shown]).reshape(-1, 2).T
        self.error = np.array([np.nan if errors is None else errors[site]["mean"] for site in shown])
        for k, site in enumerate(shown):
            kind = table.domains.kind(site)
            if isinstance(kind, Angle):  # the standard deviation of a wrapped normal law of that resultant
                length = min(max(float(self.sd[k]), 1e-300), 1.0)
                spread = math.sqrt(-2.0 * math.log(length)) * kind.period / (2.0 * math.pi)
                self.sd[k] = min(spread, 0.25 * kind.period)

    @property
    def many(self) -> bool:
        """Whether there are too many to be named one by one."""
        return len(self.shown) > SITES or self.shape is not None

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that they need, in inches."""
        n = len(self.shown)
        if n <= _PANELS and self.shape is None:
            across = min(n, _ACROSS)
            height = 2.1 if any(site in self.draws for site in self.shown) else 1.3
            return max(2.9 * across, 4.0), 0.5 + height * math.ceil(n / across)
        if self.many:
            return 4.1 * (2 + (self.shape is not None)) + 4.0, 0.7 + 0.19 * min(n, _LEAST_KNOWN) + 0.4
        columns = math.ceil(n / _ROWS)
        return max(4.4 * columns, 6.6), 1.1 + 0.19 * math.ceil(n / columns)

    def draw(self, figure: Figure | SubFigure) -> None:
        """Draw them."""
        if self.many:
            self._survey(figure)
        elif len(self.shown) <= _PANELS:
            self._panels(figure)
        else:
            columns = math.ceil(len(self.shown) / _ROWS)
            parts = np.array_split(np.arange(len(self.shown)), columns)
            for axes, part in zip(np.atleast_1d(figure.subplots(1, columns)), parts, strict=True):
                self._intervals(axes, part)
            self._explain(figure)

    def _panels(self, figure: Figure | SubFigure) -> None:
        across = min(len(self.shown), _ACROSS)
        panels = np.atleast_1d(figure.subplots(math.ceil(len(self.shown) / across), across)).ravel()
        for axes in panels[len(self.shown) :]:
            axes.set_visible(False)
        for k, site in enumerate(self.shown):
            texts = self.table.texts(site, self.errors)
            axes = panels[k]
            draws, kind = self.draws.get(site), self.table.domains.kind(site)
            if isinstance(kind, Angle):
                axes.xaxis.set_major_formatter(partial(_go_round, kind))
            if draws is not None and draws.size:
                draws = unroll(draws, kind) if isinstance(kind, Angle) else draws
                axes.hist(draws, bins=60, density=True, color=COLORS[0], alpha=0.35, histtype="stepfilled")
                axes.set_ylim(bottom=0.0)
                axes.axvline(self.mean[k], color=COLORS[0], lw=1.2)
            else:
                self._interval(axes, k, 0.0)
                axes.set_ylim(-1.0, 1.0)
            if self.other is not None:
                axes.axvline(self._reference(site), color=COLORS[5], lw=1.2, ls=(0, (4, 3)))
            axes.set_yticks([])
            axes.locator_params(axis="x", nbins=4)
            tidy(axes, "\n".join([self.names[k], *(f"{moment} {text}" for moment, text in texts.items())]))
            axes.spines["left"].set_visible(False)
        drawn = sum(site in self.draws for site in self.shown)
        words = "density of draws, line at the mean" if drawn else ""
        words += ("; " if drawn else "") + "mean ± 2 sd" if drawn < len(self.shown) else ""
        words += "; reference dashed" if self.other is not None else ""
        figure.supxlabel(words, fontsize=8, color=INK)

    def _reference(self, site: int) -> float:
        assert self.other is not None
        value, kind = self.other[self.table.domains.names[site]]["mean"], self.table.domains.kind(site)
        if not isinstance(kind, Angle):
            return value
        half, center = 0.5 * kind.period, self.mean[self.shown.index(site)]
        return float(center + (value - center + half) % kind.period - half)

    def _interval(self, axes: Axes, k: int, at: float) -> None:
        axes.plot([self.mean[k] - 2 * self.sd[k], self.mean[k] + 2 * self.sd[k]], [at, at], color=COLORS[4], lw=1.4)
        if np.isfinite(self.error[k]):
            reach = 2 * self.error[k]
            axes.plot([self.mean[k] - reach, self.mean[k] + reach], [at, at], color=COLORS[0], lw=3.5)
        axes.plot(self.mean[k], at, "o", ms=3.5, color=COLORS[0])

    def _intervals(self, axes: Axes, part: Positions) -> None:
        """Draw one row for each number, on one axis."""
        for row, k in enumerate(part.tolist()):
            self._interval(axes, k, row)
            if self.other is not None:
                at = self._reference(self.shown[k])
                axes.plot(at, row, "D", ms=6, mfc="none", mec=COLORS[5], mew=1.2)
        axes.set_yticks(range(len(part)), [self.names[k] for k in part.tolist()])
        axes.set_ylim(len(part) - 0.2, -0.8)
        axes.grid(axis="x", color=FAINT, lw=0.4, alpha=0.6)
        axes.locator_params(axis="x", nbins=5)
        tidy(axes, xlabel="value")
        axes.tick_params(axis="y", length=0)

    def _explanation(self) -> str:
        words = "point: mean, dark: ± 2 standard errors, light: ± 2 sd"
        return words + ("; diamonds: reference" if self.other is not None else "")

    def _explain(self, figure: Figure | SubFigure, before: str = "") -> None:
        figure.suptitle(f"{before}{self._explanation()}", fontsize=8, color=INK, ha="left", x=0.01)

    def _survey(self, figure: Figure | SubFigure) -> None:
        """Draw distributions over sites, an image if they lie in rows, and the least known one by one."""
        panels = iter(figure.subplots(1, 3 + (self.shape is not None)))
        if self.shape is not None:
            self._image(next(panels))
        axes = next(panels)
        axes.hist(self.mean, bins=60, color=COLORS[0], alpha=0.85)
        tidy(axes, f"{len(self.shown):,} numbers", "mean", "sites")
        axes = next(panels)
        axes.plot(self.mean, self.sd, ".", ms=3, color=COLORS[0], alpha=0.5)
        tidy(axes, "standard deviations", "mean", "standard deviation")
        with np.errstate(divide="ignore", invalid="ignore"):
            unsure = np.nan_to_num(self.error / self.sd, nan=-1.0, posinf=np.inf)
        part = np.sort(np.argsort(-unsure, kind="stable")[:_LEAST_KNOWN])
        self._intervals(next(panels), part)
        hidden = len(self.shown) - part.size
        self._explain(figure, f"right: the {part.size} least known, {hidden:,} others are not shown by name; ")

    def _image(self, axes: Axes) -> None:
        """Draw the means of sites that lie in rows and columns as an image."""
        assert self.shape is not None
        if len(self.shape) != 2 or self.shape[0] * self.shape[1] != len(self.shown):
            raise ArgumentError(
                f"The shape {self.shape} does not hold {len(self.shown):,} sites; give rows and columns."
            )
        image = axes.imshow(self.mean.reshape(self.shape), cmap="viridis")
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
        bar.ax.tick_params(labelsize=8)
        bar.outline.set_visible(False)
        tidy(axes, "mean")
        axes.spines[:].set_visible(False)

    def draw_single(self, axes: Axes) -> None:
        """Draw them on one panel: an image, or one row for each number."""
        if self.shape is not None:
            self._image(axes)
            return
        self._intervals(axes, np.arange(min(len(self.shown), SITES)))
        axes.set_title(self._explanation(), fontsize=8, color=INK, loc="left")
