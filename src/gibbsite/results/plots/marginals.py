"""Marginal probabilities, means of numbers, and a lattice of them as an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked, read_sizes
from gibbsite._common.arrays import Array
from gibbsite.errors import ArgumentError
from gibbsite.results.compare import HasMarginals, compare, read_errors, read_table
from gibbsite.results.plots._canvas import finish_panels, new_figure, positions, split_figure
from gibbsite.results.plots._listing import SITES, draw_column, draw_listing, list_sites, list_states
from gibbsite.results.plots._numbers import Numbers
from gibbsite.results.plots._survey import Survey, draw_image
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


@checked
def plot_marginals(
    result: SiteTable | HasMarginals,
    sites: Sequence[str | int] | None = None,
    reference: SiteTable | HasMarginals | None = None,
    *,
    shape: tuple[int, int] | None = None,
    ax: Axes | None = None,
    figure: Figure | SubFigure | None = None,
    path: str | Path | None = None,
) -> Array:
    """Show marginal probabilities with their standard errors, and what numbers are like.

    Up to 160 states are shown one by one, with bars of two standard errors, and up to 120 sites by one state
    each. Of more sites there are distributions, an image if the shape of the lattice is given, and the least
    certain ones by name. Sites that are numbers have a panel each, with the density of recorded draws or an
    interval of two standard deviations, or a row each where there are more than 12 of them.

    Parameters
    ----------
    result : Result or any other answer with marginals
        What to show.
    sites : sequence of sites, optional
        Which; by default all.
    reference : answer with marginals, optional
        What to compare with, for example ``gs.solve_exact(model)``; it needs the sites of the result.
    shape : (rows, columns), optional
        Show all sites as an image, row by row.
    ax : matplotlib Axes, optional
        Where to draw a single panel: the image if a shape is given, otherwise one list of states, sites or numbers.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw all panels; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    array of matplotlib.axes.Axes
        The panels from left to right.

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, a site is unknown, or the shape does not fit.

    See Also
    --------
    plots.plot_comparison : Two answers against each other.
    plot_convergence : Is a run good enough?

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
    >>> result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    >>> axes = plot_marginals(result, reference=gs.solve_exact(model))
    >>> grid = gs.sample(gs.ising_grid((8, 9), coupling=0.3), sweeps=500, rng=1, progress=False)
    >>> image = plot_marginals(grid, shape=(8, 9), ax=axes[0])
    """
    if shape is not None:
        rows, columns = read_sizes("shape", shape, 2, largest=10**9)
        shape = rows, columns
    table, errors = read_table(result), read_errors(result)
    other = None if reference is None else read_table(reference)
    if other is not None:
        compare(table, other)  # refuses other sites or states, and names them
    shown = list(range(table.domains.n_sites)) if sites is None else positions(table.domains, sites)
    if not shown:
        raise ArgumentError("All sites are observed: there are no marginals to show.")
    real = table.domains.numbers
    parts: list[Any] = []
    states = [site for site in shown if not real[site]]
    if states:
        parts.append(_StatesPart(table, errors, other, states, shape))
    numbers = [site for site in shown if real[site]]
    if numbers:
        parts.append(Numbers(table, errors, other, numbers, _draws(result), shape))
    if ax is not None:
        if len(parts) > 1:
            raise ArgumentError("Sites with states and numbers need two panels; leave ax= out, or choose sites=.")
        parts[0].draw_single(ax)
        return finish_panels([ax], path)
    widths, heights = zip(*(part.size for part in parts), strict=True)
    place = new_figure(sum(widths), max(heights), path, figure)
    before = len(place.axes)
    if len(parts) == 1:
        parts[0].draw(place)
    else:
        for part, where in zip(parts, split_figure(place, widths), strict=True):
            part.draw(where)
    return finish_panels(place.axes[before:], path)


def _draws(result: Any) -> dict[int, Array]:
    """Return recorded draws of each site, where a result has any."""
    sites = getattr(result, "draw_sites", np.zeros(0, np.int32)).tolist()
    return {site: result.draws[:, :, k].ravel() for k, site in enumerate(sites)}


class _StatesPart:
    """Sites with states: state by state, site by site, or surveyed, as their number allows."""

    def __init__(
        self,
        table: SiteTable,
        errors: SiteTable | None,
        other: SiteTable | None,
        shown: list[int],
        shape: tuple[int, int] | None,
    ) -> None:
        self.known, self.compared = errors is not None, other is not None
        self.tables, self.shown, self.shape = (table, errors, other), shown, shape
        self.survey = None
        listing = None
        if shape is None and len(shown) <= SITES:
            listing = list_states(table, errors, other, shown) or list_sites(table, errors, other, shown)
        if listing is None:
            self.survey = Survey(table, errors, other, shown, shape)
        else:
            self.listing = listing

    @property
    def size(self) -> tuple[float, float]:
        return self.listing.size if self.survey is None else self.survey.size

    def draw(self, figure: Any) -> None:
        if self.survey is None:
            draw_listing(figure, self.listing, self.known, self.compared)
        else:
            self.survey.draw(figure)

    def draw_single(self, ax: Any) -> None:
        if self.shape is not None:
            draw_image(ax, self.tables[0], self.tables[0].to_array()[self.shown], self.shape)
            return
        listing = self.listing if self.survey is None else self.survey.listing
        rows = [row for column in listing.columns for row in column]
        draw_column(ax, rows, listing.axis, self.known, self.compared)
        if self.known or self.compared:
            ax.legend(fontsize=8, frameon=False, loc="lower right", reverse=True)
        if listing.note:
            ax.set_title(listing.note, fontsize=8, loc="left")
