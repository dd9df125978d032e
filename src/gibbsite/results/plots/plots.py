"""Pictures of what a run gave: traces of its chains, and marginals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Angle
from gibbsite.results.compare import HasMarginals, compare, read_errors, read_table
from gibbsite.results.plots._canvas import (
    COLORS,
    INK,
    cell_title,
    finish,
    name_states,
    new_figure,
    positions,
    shorten,
    split_figure,
    state_colors,
    tidy,
)
from gibbsite.results.plots._listing import SITES, draw_listing, list_sites, list_states
from gibbsite.results.plots._numbers import Numbers
from gibbsite.results.plots._survey import Survey
from gibbsite.results.quantiles import unroll
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gibbsite.results.result import Result

_TRACES = 6  # sites shown by default
_COLUMNS = 1200  # of a picture of draws: about what a screen resolves


@checked
def plot_trace(result: Result, sites: Sequence[str | int] | None = None, *, path: str | Path | None = None) -> Figure:
    """Show what the chains did over time.

    Recorded draws of states appear as one row of colours per chain, those of numbers as one line per chain.
    Where no draws of a site were recorded, the means over batches of a probability, or of a number, appear as
    one line per chain. Recorded energies come first.

    Parameters
    ----------
    result : Result
        A sampling result.
    sites : sequence of sites, optional
        Which; by default the first six with recorded draws, or else the six of worst R-hat.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, or nothing was recorded that has a trace.

    Examples
    --------
    >>> import gibbsite as gs
    >>> record = ["marginals", "energy", gs.Draws(["0"])]
    >>> result = gs.sample(gs.ising_grid((3, 3)), record=record, sweeps=1000, rng=1, progress=False)
    >>> len(plot_trace(result, sites=["0", "4"]).axes)
    3
    """
    drawn = {site: k for k, site in enumerate(result.draw_sites.tolist())}
    if sites is not None:
        shown = positions(result.domains, sites)
    elif drawn:
        shown = list(drawn)[:_TRACES]
    else:
        shown = _worst_sites(result)
    unseen = [site for site in shown if site not in drawn]
    if unseen and not (result.n_marginal and result.trace.shape[1]):
        raise ArgumentError(
            f"Site {result.domains.names[unseen[0]]!r} has no trace; record gs.Marginals() or gs.Draws."
        )
    rows = len(shown) + bool(result.energy.size)
    if not rows:
        raise ArgumentError("Nothing with a trace was recorded; add 'marginals', 'draws' or 'energy'.")
    figure = new_figure(9.0, 0.5 + 1.15 * rows)
    grid = np.atleast_1d(figure.subplots(rows, 1, sharex=True))
    axes = iter(grid)
    if result.energy.size:
        _draw_lines(next(axes), result.energy, "energy, one line per chain")
    for site in shown:
        if site in drawn and result.domains.numbers[site]:
            title = shorten(result.domains.names[site])
            kind, values = result.domains.kind(site), result.values[:, :, drawn[site]]
            _draw_lines(next(axes), unroll(values, kind) if isinstance(kind, Angle) else values, title)
        elif site in drawn:
            _draw_states(next(axes), result, site, result.values[:, :, drawn[site]])
        else:
            _draw_batches(next(axes), result, site)
    grid[-1].set_xlabel("draw", fontsize=8, color=INK)
    grid[-1].set_xlim(0, result.draws)
    return finish(figure, path)


def _worst_sites(result: Result) -> list[int]:
    if not (result.n_marginal and result.trace.shape[1]):
        return []
    worst = np.nan_to_num(result.rhat.to_array().max(axis=1), nan=0.0, posinf=np.inf)
    return sorted(int(site) for site in np.argsort(-worst, kind="stable")[:_TRACES])


def _draw_lines(axes: Axes, chains: Floats, title: str) -> None:
    step = max(-(-chains.shape[1] // _COLUMNS), 1)
    at = np.arange(0, chains.shape[1], step)
    for chain, values in enumerate(chains):
        means = np.add.reduceat(values, at) / np.diff(np.append(at, values.size))
        axes.plot(at + step / 2, means, color=COLORS[chain % len(COLORS)], lw=0.8, alpha=0.8)
    tidy(axes, title + (f" (means of {step})" if step > 1 else ""))


def _draw_states(axes: Axes, result: Result, site: int, codes: Array) -> None:
    labels = result.domains.labels(site)
    colors = state_colors(len(labels))
    chains, draws = codes.shape
    at = np.arange(0, draws, -(-draws // _COLUMNS))
    # Columns that stand for several draws get the mean of their colours.
    image = np.add.reduceat(colors[codes.astype(np.intp)], at, axis=1)
    image /= np.diff(np.append(at, draws))[:, None]
    axes.imshow(image, aspect="auto", interpolation="nearest", extent=(0, draws, chains - 0.5, -0.5))
    tidy(axes, shorten(result.domains.names[site]), ylabel="chain")
    axes.set_yticks(range(chains) if chains <= 8 else [0, chains - 1])
    name_states(axes, [shorten(label, 14) for label in labels], colors)


def _draw_batches(axes: Axes, result: Result, site: int) -> None:
    cell = site
    if not result.binary:
        first = int(np.sum(result.domains.cards[:site], dtype=np.int64))
        p = result.marginals.cells[first : first + int(result.domains.cards[site])]
        # the state that says most; of a number, its mean
        cell = first if result.domains.numbers[site] else first + int(np.argmin(np.abs(p - 0.5)))
    at = (np.arange(result.trace.shape[1]) + 0.5) * result.length
    means = result.batch_means(cell)
    for chain in range(result.chains):
        color = COLORS[chain % len(COLORS)]
        axes.plot(at, means[chain], color=color, lw=0.8, alpha=0.8)
    axes.axhline(float(result.marginals.cells[cell]), color=INK, lw=0.8, ls=(0, (4, 3)))
    batch = f", means of {result.length} draws" if result.length > 1 else ""
    tidy(axes, cell_title(result, cell) + batch)


@checked
def plot_marginals(
    result: SiteTable | HasMarginals,
    sites: Sequence[str | int] | None = None,
    reference: SiteTable | HasMarginals | None = None,
    *,
    shape: tuple[int, int] | None = None,
    path: str | Path | None = None,
) -> Figure:
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
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, a site is unknown, or the shape does not fit.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 3}, [(("a", "b"), [[4, 1, 2], [1, 2, 3]])])
    >>> result = gs.sample(model, sweeps=1000, rng=1, progress=False)
    >>> figure = plot_marginals(result, reference=gs.solve_exact(model))
    """
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
    widths, heights = zip(*(part.size for part in parts), strict=True)
    figure = new_figure(sum(widths), max(heights))
    if len(parts) == 1:
        parts[0].draw(figure)
    else:
        for part, place in zip(parts, split_figure(figure, widths), strict=True):
            part.draw(place)
    return finish(figure, path)


def _draws(result: Any) -> dict[int, Array]:
    """Return recorded draws of each site, where a result has any."""
    sites = getattr(result, "draw_sites", np.zeros(0, np.int32)).tolist()
    return {site: result.values[:, :, k].ravel() for k, site in enumerate(sites)}


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
