"""Marginals one by one: a row for each state of a few sites, or a row for each of up to a hundred sites."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, shorten, tidy
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

STATES = 160  # states shown one by one
SITES = 120  # sites shown one by one
_ROWS = 42  # of a column
_OF_A_SITE = 12  # states shown of a site that has very many
_GAP = 0.6  # between sites, in rows


class Row(NamedTuple):
    """A line of a listing; ``head`` is the name of a site, in its first row."""

    label: str
    value: float
    error: float
    reference: float
    head: str = ""


class Listing(NamedTuple):
    """Rows by column, the name of the axis, and what is left out."""

    columns: list[list[Row]]
    axis: str
    note: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height that it needs, in inches."""
        heads = any(row.head for column in self.columns for row in column)
        height = max((len(c) + _GAP * sum(bool(row.head) for row in c) for c in self.columns), default=1)
        width = 6.6 if len(self.columns) == 1 else 4.4 if heads else 3.9
        return width * len(self.columns), 1.1 + 0.19 * height


def list_states(
    table: SiteTable, errors: SiteTable | None, other: SiteTable | None, shown: list[int]
) -> Listing | None:
    """Return one row for each state; None if there are too many for that."""
    blocks: list[list[Row]] = []
    hidden = 0
    for site in shown:
        name = table.domains.names[site]
        states = list(table[site].items())
        if len(states) > 2 * _OF_A_SITE:
            hidden += len(states) - _OF_A_SITE
            states = sorted(states, key=lambda state: -state[1])[:_OF_A_SITE]
        blocks.append(
            [
                Row(
                    shorten(state, 16),
                    p,
                    _error(errors, site, state),
                    np.nan if other is None else other[name][state],
                    "" if number else shorten(name, 22),
                )
                for number, (state, p) in enumerate(states)
            ]
        )
    total = sum(map(len, blocks))
    if total > STATES:
        return None
    note = f"{hidden:,} rarer states are not shown" if hidden else ""
    return Listing(_fill_columns(blocks, total), "probability", note)


def list_sites(
    table: SiteTable, errors: SiteTable | None, other: SiteTable | None, shown: list[int], most: int = SITES
) -> Listing:
    """Return one row for each site: of the state all sites have in common, or of the most probable one.

    Of more than ``most`` sites the least certain are shown: their most probable state is least probable.
    """
    hidden = len(shown) - most
    if hidden > 0:
        top = {site: max(table[site].values()) for site in shown}
        shown = sorted(sorted(shown, key=lambda site: top[site])[:most])
    kinds = {table.domains.kind(site) for site in shown}
    common = next(iter(kinds)) if len(kinds) == 1 else ()
    state = common[1] if isinstance(common, tuple) and len(common) == 2 else None
    rows = []
    for site in shown:
        name, states = table.domains.names[site], table[site]
        at = state if state is not None else max(states, key=lambda each: states[each])
        label = shorten(name, 22) if state is not None else f"{shorten(name, 16)} = {shorten(at, 10)}"
        reference = np.nan if other is None else other[name][at]
        rows.append([Row(label, states[at], _error(errors, site, at), reference)])
    what = f"of state {state}" if state is not None else "of the most probable state"
    note = f"the {most:,} least certain sites; {hidden:,} others are not shown" if hidden > 0 else ""
    return Listing(_fill_columns(rows, len(rows)), f"probability {what}", note)


def _error(errors: SiteTable | None, site: int, state: Any) -> float:
    error = np.nan if errors is None else errors[site][state]
    return 2.0 * error if np.isfinite(error) else 0.0


def _fill_columns(blocks: list[list[Row]], total: int) -> list[list[Row]]:
    """Spread blocks of rows over columns of about equal length."""
    each = math.ceil(total / math.ceil(total / _ROWS))
    columns: list[list[Row]] = [[]]
    for block in blocks:
        if columns[-1] and len(columns[-1]) + len(block) > each + 2:
            columns.append([])
        columns[-1] += block
    return columns


def draw_listing(figure: Figure | SubFigure, listing: Listing, known: bool, compared: bool) -> None:
    """Draw a listing, with error bars if errors are ``known`` and markers if it is ``compared``."""
    panels = np.atleast_1d(figure.subplots(1, len(listing.columns)))
    bottom = max(_heights(rows)[-1] for rows in listing.columns) + 0.8
    for axes, rows in zip(panels, listing.columns, strict=True):
        draw_column(axes, rows, listing.axis, known, compared)
        axes.set_ylim(bottom, -0.8)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", fontsize=8, frameon=False, ncols=2, reverse=True)
    if listing.note:
        figure.supxlabel(listing.note, fontsize=8, color=INK)


def _heights(rows: list[Row]) -> Floats:
    """Return where rows are, with gaps between sites."""
    starts = np.array([bool(row.head) for row in rows])
    at: Floats = np.arange(len(rows)) + _GAP * np.maximum(np.cumsum(starts) - 1, 0)
    return at


def draw_column(axes: Axes, rows: list[Row], axis: str, known: bool, compared: bool) -> None:
    """Draw rows of a listing on one panel."""
    at = _heights(rows)
    p = [row.value for row in rows]
    axes.barh(at, p, height=0.72, color=COLORS[0], alpha=0.25, lw=0)
    said = "estimate ± 2 standard errors" if known else "estimate"
    error = [row.error for row in rows]
    axes.errorbar(p, at, xerr=error, fmt="o", ms=3.5, lw=1.4, color=COLORS[0], label=said)
    if compared:
        q = [row.reference for row in rows]
        axes.plot(q, at, "D", ms=6, mfc="none", mec=COLORS[5], mew=1.2, label="reference")
    axes.set_yticks(at, [row.label for row in rows])
    axes.set_ylim(float(at[-1]) + 0.8, -0.8)
    axes.set_xlim(0.0, 1.0)
    axes.grid(axis="x", color=FAINT, lw=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    tidy(axes, xlabel=axis)
    axes.tick_params(axis="y", length=0)
    left = -14.0 - 5.0 * max(len(row.label) for row in rows)  # in points: clear of the state labels
    for height, row in zip(at, rows, strict=True):
        if row.head:
            axes.annotate(
                row.head,
                (0.0, float(height)),
                (left, 0.0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8.5,
                fontweight="bold",
                color=INK,
                annotation_clip=False,
            )
