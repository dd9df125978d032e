"""Has it converged? Running means of the worst states, and R-hat and effective draws of all."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats, Positions
from gibbsite.errors import ArgumentError
from gibbsite.results.measure.diagnostics import mcse
from gibbsite.results.measure.measurement import MATERIAL
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, cell_title, finish_panels, new_figure, tidy
from gibbsite.results.verdict.convergence import ESS_LIMIT, RHAT_LIMIT
from gibbsite.results.wording import rhat_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gibbsite.results.result import Result

_GOOD, _BAD = "#009E73", "#D55E00"


@checked
def plot_convergence(
    result: Result, *, figure: Figure | SubFigure | None = None, path: str | Path | None = None
) -> Array:
    """Show how far a run has converged.

    Left, for the (up to four) sites of worst R-hat: the running mean of a probability in each chain, or the
    mean or standard deviation of a number, with a band of two standard errors of one chain, if draws tell
    anything about them. Right: R-hat and effective draws of all states with a probability between 0.001 and
    0.999, and of means and standard deviations of numbers, with the limits of the verdict; nothing where they
    are not known.

    Parameters
    ----------
    result : Result
        A sampling result with recorded marginals.
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    array of matplotlib.axes.Axes
        Running means, then R-hat and effective draws.

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, or marginals were not recorded.

    See Also
    --------
    plot_trace : What the chains did.
    plot_marginals : The marginals.

    Examples
    --------
    >>> import gibbsite as gs
    >>> result = gs.sample(gs.ising_grid((3, 3)), sweeps=1000, rng=1, progress=False)
    >>> len(plot_convergence(result))
    6
    """
    if np.isnan(result.marginals.cells).all():
        raise ArgumentError("Marginals were not recorded; add gs.Marginals() to record=.")
    rhat, ess = result.rhat.cells, result.ess.cells
    mean = result.marginals.cells
    material = (mean > MATERIAL) & (mean < 1.0 - MATERIAL)
    material[list(result._moment_cells)] = True
    judged = np.flatnonzero(material)
    # Of two states the second says the same again, so each site appears once.
    order = judged[np.lexsort((ess[judged], -rhat[judged]))]
    shown = _first_of_each_site(result, order, 4 if result._trace.shape[1] else 0)
    place = new_figure(10.0, 5.2, path, figure)
    before = len(place.axes)
    verdict = result.diagnostics
    known = verdict.errors != "none"
    if shown.size:
        grid = place.add_gridspec(2, 3, width_ratios=[1.0, 1.0, 0.9] if known else [1.0, 1.0, 0.001])
        for number, cell in enumerate(shown.tolist()):
            axes = place.add_subplot(grid[number // 2, number % 2])
            _draw_running_mean(axes, result, cell)
    else:
        grid = place.add_gridspec(2, 1)
    if known:
        count = f"{judged.size:,} {_kinds_of_cells(result)}"
        _draw_rhat(place.add_subplot(grid[0, -1]), rhat[judged], count)
        _draw_ess(place.add_subplot(grid[1, -1]), ess[judged], count)
    kind, _, figures = verdict.line().partition(": ")
    title = "\n".join([kind, *textwrap.wrap(figures, 120)])
    place.suptitle(title, fontsize=9.5, color=_GOOD if verdict.converged else _BAD, ha="left", x=0.01)
    return finish_panels(place.axes[before:], path)


def _kinds_of_cells(result: Result) -> str:
    moments = len(result._moment_cells)
    return "states" if not moments else "moments" if moments == result._n_marginal else "quantities"


def _first_of_each_site(result: Result, order: Positions, most: int) -> Positions:
    """Return the first cells of ``order`` that belong to different sites."""
    if result._binary:
        return order[:most]
    last = np.cumsum(result.domains.cards, dtype=np.int64)
    candidates = order[: 1000 * most]
    _, first = np.unique(np.searchsorted(last, candidates, side="right"), return_index=True)
    return candidates[np.sort(first)[:most]]


def _draw_running_mean(axes: Axes, result: Result, cell: int) -> None:
    batches = result._trace.shape[1]
    count = np.arange(1, batches + 1)
    draws = count * result._length
    trace = result._batch_means(cell).astype(float)
    running = np.cumsum(trace, axis=1) / count
    lowest, highest = (-np.inf, np.inf) if cell in result._moment_cells else (0.0, 1.0)
    of = "mean"
    if cell - 1 in result._circular:
        of = "resultant"
    elif cell - 1 in result._number_cells:  # squares of a number: its standard deviation is shown
        lowest, of = 0.0, "sd"
        values = result._trace[:, :, cell - 1].astype(float)
        means = np.cumsum(values, axis=1) / count
        running = np.sqrt(np.maximum(running - np.square(means), 0.0))
        center, sd = means[:, -1:], np.where(running[:, -1:] > 0, running[:, -1:], 1.0)
        trace = (trace - 2.0 * center * values + np.square(center)) / (2.0 * sd)  # sd, up to a constant
    error = 0.0
    if result.errors == "draws":
        # The error of one chain, averaged over chains because a single one knows its own badly.
        errors = np.array([mcse(trace[chain : chain + 1]) for chain in range(result.chains)])
        error = float(np.sqrt(np.mean(np.square(errors)))) if np.isfinite(errors).all() else 0.0
    band = 2.0 * error * np.sqrt(batches / count)
    for chain in range(result.chains):
        color = COLORS[chain % len(COLORS)]
        low, high = np.clip([running[chain] - band, running[chain] + band], lowest, highest)
        axes.fill_between(draws, low, high, color=color, alpha=0.13, lw=0)
        axes.plot(draws, running[chain], color=color, lw=1.2)
    pooled = float(result.marginals.cells[cell])
    axes.axhline(pooled, color=INK, lw=0.8, ls=(0, (4, 3)))
    settled = slice(batches // 8, None)  # the first means are too wild to set the scale
    bottom = max(float((running - band)[:, settled].min()), lowest)
    top = min(float((running + band)[:, settled].max()), highest)
    margin = 0.05 * (top - bottom) + 1e-6 * max(abs(pooled), 1e-6)
    axes.set_ylim(bottom - margin, top + margin)
    axes.set_xlim(draws[0], max(draws[-1], draws[0] + 1))
    rhat = result.rhat.cells[cell]
    title = cell_title(result, cell) + ("" if np.isnan(rhat) else f"   R-hat {rhat_text(rhat)}")
    tidy(axes, title, "draws of each chain", f"running {of}")
    axes.locator_params(axis="x", nbins=5)


def _draw_rhat(axes: Axes, rhat: Floats, count: str) -> None:
    finite = rhat[np.isfinite(rhat)]
    bottom = min(float(finite.min(initial=1.0)), 0.999)
    top = max(float(finite.max(initial=1.0)), RHAT_LIMIT)
    axes.hist(finite, bins=40, range=(bottom, top + 0.1 * (top - bottom)), color=COLORS[0])
    axes.locator_params(axis="x", nbins=4)
    _draw_limit(axes, RHAT_LIMIT, f"R-hat of {count}", "at most 1.01 is good", rhat.size)
    if rhat.size > finite.size:
        text = f"{rhat.size - finite.size:,} infinite"
        axes.text(0.97, 0.9, text, transform=axes.transAxes, ha="right", fontsize=8, color=_BAD)


def _draw_ess(axes: Axes, ess: Floats, count: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    positive = np.maximum(ess, 1.0)
    low = min(float(positive.min(initial=ESS_LIMIT)), ESS_LIMIT) / 1.3
    high = max(float(positive.max(initial=ESS_LIMIT)), ESS_LIMIT) * 1.3
    axes.hist(positive, bins=np.geomspace(low, high, 41).tolist(), color=COLORS[0])
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    title = f"Effective draws of {count}"
    _draw_limit(axes, ESS_LIMIT, title, "at least 400 is good", ess.size)


def _draw_limit(axes: Axes, limit: float, title: str, xlabel: str, size: int) -> None:
    axes.axvline(limit, color=_BAD, lw=1.2)
    axes.grid(axis="y", color=FAINT, lw=0.4, alpha=0.5)
    axes.set_axisbelow(True)
    if size > 200:
        axes.set_yscale("log")
    else:
        axes.locator_params(axis="y", integer=True, nbins=5)
    tidy(axes, title, xlabel, "number")
