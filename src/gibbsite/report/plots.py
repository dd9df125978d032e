"""Pictures of what a run gave: traces of its chains, and marginals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import ModelError
from gibbsite.report._canvas import (
    COLORS,
    FAINT,
    INK,
    finish,
    name_states,
    new_figure,
    positions,
    shorten,
    state_colors,
    tidy,
)
from gibbsite.report._survey import survey_marginals
from gibbsite.result.compare import HasMarginals, compare, read_errors, read_table
from gibbsite.result.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gibbsite.result.result import Result

_TRACES = 6  # sites shown by default
_ROWS = 48  # states shown one by one; more are shown as a distribution
_COLUMNS = 1200  # of a picture of draws: about what a screen resolves


def plot_trace(
    result: Result, sites: Sequence[str | int] | None = None, *, path: str | Path | None = None
) -> Figure:
    """Show what the chains did over time.

    Recorded draws appear as one row of colours per chain; where no draws of a site were recorded, the
    means of its probability over batches appear as one line per chain. Recorded energies come first.

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
    if unseen and not result.n_marginal:
        raise ModelError(
            f"Site {result.domains.names[unseen[0]]!r} has no trace; record gs.Marginals() or gs.Draws."
        )
    rows = len(shown) + bool(result.energy.size)
    if not rows:
        raise ModelError("Nothing with a trace was recorded; add 'marginals', 'draws' or 'energy'.")
    figure = new_figure(9.0, 0.5 + 1.15 * rows)
    grid = np.atleast_1d(figure.subplots(rows, 1, sharex=True))
    axes = iter(grid)
    if result.energy.size:
        _draw_energy(next(axes), result.energy)
    for site in shown:
        if site in drawn:
            _draw_states(next(axes), result, site, result.values[:, :, drawn[site]])
        else:
            _draw_batches(next(axes), result, site)
    grid[-1].set_xlabel("draw", fontsize=8, color=INK)
    grid[-1].set_xlim(0, result.draws)
    return finish(figure, path)


def _worst_sites(result: Result) -> list[int]:
    if not result.n_marginal:
        return []
    worst = np.nan_to_num(result.rhat.to_array().max(axis=1), nan=0.0, posinf=np.inf)
    return sorted(int(site) for site in np.argsort(-worst, kind="stable")[:_TRACES])


def _draw_energy(axes: Axes, energy: NDArray[np.float64]) -> None:
    step = -(-energy.shape[1] // _COLUMNS)
    at = np.arange(0, energy.shape[1], step)
    for chain, values in enumerate(energy):
        means = np.add.reduceat(values, at) / np.diff(np.append(at, values.size))
        axes.plot(at + step / 2, means, color=COLORS[chain % len(COLORS)], lw=0.8, alpha=0.8)
    tidy(axes, "energy, one line per chain" + (f" (means of {step})" if step > 1 else ""))


def _draw_states(axes: Axes, result: Result, site: int, codes: NDArray[np.int16]) -> None:
    labels = result.domains.labels(site)
    colors = state_colors(len(labels))
    chains, draws = codes.shape
    at = np.arange(0, draws, -(-draws // _COLUMNS))
    # Columns that stand for several draws get the mean of their colours.
    image = np.add.reduceat(colors[codes], at, axis=1)
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
        cell = first + int(np.argmin(np.abs(p - 0.5)))  # the state that says most
    at = (np.arange(result.trace.shape[1]) + 0.5) * result.length
    for chain in range(result.chains):
        color = COLORS[chain % len(COLORS)]
        axes.plot(at, result.trace[chain, :, cell], color=color, lw=0.8, alpha=0.8)
    axes.axhline(float(result.marginals.cells[cell]), color=INK, lw=0.8, ls=(0, (4, 3)))
    batch = f", means of {result.length} draws" if result.length > 1 else ""
    tidy(axes, f"P({shorten(result._cell_name(cell))}){batch}")


def plot_marginals(
    result: SiteTable | HasMarginals,
    sites: Sequence[str | int] | None = None,
    reference: SiteTable | HasMarginals | None = None,
    *,
    shape: tuple[int, int] | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Show marginal probabilities with their standard errors.

    A few sites are shown state by state, with bars of two standard errors. Many sites are shown as
    distributions, or as an image if the shape of the lattice is given.

    Parameters
    ----------
    result : Result or any other answer with marginals
        What to show.
    sites : sequence of sites, optional
        Which, state by state; by default all.
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
    if sites is not None:
        shown = positions(table.domains, sites)
    else:
        few = shape is None and int(table.domains.cards.sum(dtype=np.int64)) <= _ROWS
        shown = list(range(table.domains.n_sites)) if few else []
    if shown:
        return finish(_list_states(table, errors, other, shown), path)
    if not table.domains.n_sites:
        raise ModelError("All sites are observed: there are no marginals to show.")
    return finish(survey_marginals(table, errors, other, shape), path)


def _list_states(
    table: SiteTable, errors: SiteTable | None, other: SiteTable | None, shown: list[int]
) -> Figure:
    """Show one row per state, sites one below the other."""
    labels, p, error, q, at, heads = [], [], [], [], [], []
    y = 0.0
    for site in shown:
        name = table.domains.names[site]
        heads.append((y, name))
        for state, probability in table[site].items():
            spread = 0.0 if errors is None else errors[site][state]
            labels.append(shorten(state, 16))
            p.append(probability)
            error.append(2.0 * spread if np.isfinite(spread) else 0.0)
            q.append(np.nan if other is None else other[name][state])
            at.append(y)
            y += 1.0
        y += 0.6
    figure = new_figure(7.2, 1.0 + 0.19 * y)
    axes = figure.subplots()
    axes.barh(at, p, height=0.72, color=COLORS[0], alpha=0.25, lw=0)
    said = "estimate" if errors is None else "estimate ± 2 standard errors"
    axes.errorbar(p, at, xerr=error, fmt="o", ms=3.5, lw=1.4, color=COLORS[0], label=said)
    if other is not None:
        axes.plot(q, at, "D", ms=6, mfc="none", mec=COLORS[5], mew=1.2, label="reference")
    axes.set_yticks(at, labels)
    axes.set_ylim(y - 0.6, -0.8)
    axes.set_xlim(0.0, 1.0)
    axes.grid(axis="x", color=FAINT, lw=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    tidy(axes, xlabel="probability")
    axes.tick_params(axis="y", length=0)
    left = -14.0 - 5.0 * max(len(label) for label in labels)  # in points: clear of the state labels
    for height, name in heads:
        axes.annotate(
            shorten(name),
            (0.0, height),
            (left, 0.0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.5,
            fontweight="bold",
            color=INK,
            annotation_clip=False,
        )
    figure.legend(loc="outside upper right", fontsize=8, frameon=False, ncols=2, reverse=True)
    return figure
