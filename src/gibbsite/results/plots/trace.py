"""What the chains did over time: traces and autocorrelations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked, is_numeric
from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Angle
from gibbsite.results.observables import Estimate
from gibbsite.results.plots._canvas import (
    COLORS,
    FAINT,
    INK,
    cell_title,
    finish,
    finish_panels,
    name_states,
    new_axes,
    new_figure,
    positions,
    shorten,
    state_colors,
    tidy,
)
from gibbsite.results.quantiles import unroll

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gibbsite.results.result import Result

_TRACES = 6  # sites shown by default
_BAND = "band: two standard errors of independent draws"
_COLUMNS = 1200  # of a picture of draws: about what a screen resolves


@checked
def plot_trace(
    result: Result,
    sites: Sequence[str | int] | None = None,
    *,
    figure: Figure | SubFigure | None = None,
    path: str | Path | None = None,
) -> Array:
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
    figure : matplotlib Figure or SubFigure, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    array of matplotlib.axes.Axes
        One for each row.

    Raises
    ------
    GibbsiteError
        If matplotlib is not installed, or nothing was recorded that has a trace.

    See Also
    --------
    plots.plot_autocorrelation : How long draws depend on each other.
    plot_convergence : Is a run good enough?

    Examples
    --------
    >>> import gibbsite as gs
    >>> record = ["marginals", "energy", gs.Draws(["0"])]
    >>> result = gs.sample(gs.ising_grid((3, 3)), record=record, sweeps=1000, rng=1, progress=False)
    >>> len(plot_trace(result, sites=["0", "4"]))
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
    if unseen and not (result._n_marginal and result._trace.shape[1]):
        raise ArgumentError(
            f"Site {result.domains.names[unseen[0]]!r} has no trace; record gs.Marginals() or gs.Draws."
        )
    rows = len(shown) + bool(result.energy.size)
    if not rows:
        raise ArgumentError("Nothing with a trace was recorded; add 'marginals', 'draws' or 'energy'.")
    place = new_figure(9.0, 0.5 + 1.15 * rows, path, figure)
    grid = np.atleast_1d(place.subplots(rows, 1, sharex=True))
    axes = iter(grid)
    if result.energy.size:
        _draw_lines(next(axes), result.energy, "energy, one line per chain")
    for site in shown:
        if site in drawn and result.domains.numbers[site]:
            title = shorten(result.domains.names[site])
            kind, values = result.domains.kind(site), result.draws[:, :, drawn[site]]
            _draw_lines(next(axes), unroll(values, kind) if isinstance(kind, Angle) else values, title)
        elif site in drawn:
            _draw_states(next(axes), result, site, result.draws[:, :, drawn[site]])
        else:
            _draw_batches(next(axes), result, site)
    grid[-1].set_xlabel("draw", fontsize=8, color=INK)
    grid[-1].set_xlim(0, result.n_draws)
    return finish_panels(list(grid), path)


def _worst_sites(result: Result) -> list[int]:
    if not (result._n_marginal and result._trace.shape[1]):
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
    if not result._binary:
        first = int(np.sum(result.domains.cards[:site], dtype=np.int64))
        p = result.marginals.cells[first : first + int(result.domains.cards[site])]
        # the state that says most; of a number, its mean
        cell = first if result.domains.numbers[site] else first + int(np.argmin(np.abs(p - 0.5)))
    at = (np.arange(result._trace.shape[1]) + 0.5) * result._length
    means = result._batch_means(cell)
    for chain in range(result.chains):
        color = COLORS[chain % len(COLORS)]
        axes.plot(at, means[chain], color=color, lw=0.8, alpha=0.8)
    axes.axhline(float(result.marginals.cells[cell]), color=INK, lw=0.8, ls=(0, (4, 3)))
    batch = f", means of {result._length} draws" if result._length > 1 else ""
    tidy(axes, cell_title(result, cell) + batch)


@checked
def plot_autocorrelation(
    values: Estimate | Sequence[float] | Any,
    lags: int | None = None,
    *,
    ax: Axes | None = None,
    label: str | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Show how the correlation between draws falls with the number of draws between them.

    Parameters
    ----------
    values : Estimate or array (chains, draws)
        An observable whose series was kept (``gs.Observable(..., series=True)``, or "energy"), or any series.
    lags : int, optional
        Largest lag; by default six autocorrelation times.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    label : str, optional
        Name in the legend; the name of the observable by default.
    path : str or Path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((6, 6), coupling=0.3, periodic=True)
    >>> result = gs.sample(model, record=["marginals", "energy"], rng=1, progress=False)
    >>> plot_autocorrelation(result.observables["energy"]).get_xlabel()
    'lag in draws'
    """
    if isinstance(values, Estimate):
        series, name = values.series, values.name
        if series.ndim == 3:
            raise ArgumentError(
                f"{name!r} has {len(values.names)} values; give the series of one of them, as {name!r}.series[:, :, 0]."
            )
    else:
        series, name = _read_series(values), ""
    found = _autocorrelation(series)
    if lags is None:
        falling = found[1:] < 0.05
        lags = max(3 * int(np.argmax(falling)) if falling.any() else len(found) - 1, 10)
    lags = min(check_integer("lags", lags, 1), len(found) - 1)
    axes = new_axes(6.4, 3.6, path, ax)
    color = COLORS[sum(line.get_linestyle() == "-" for line in axes.lines) % len(COLORS)]
    axes.plot(
        np.arange(lags + 1), found[: lags + 1], color=color, lw=1.4, marker="o", ms=3, label=label or name or None
    )
    noise = 2.0 / np.sqrt(series.size)
    first = not any(text.get_text() == _BAND for text in axes.texts)
    axes.axhspan(-noise, noise, color=FAINT, alpha=0.25, lw=0)
    if first:
        axes.text(0.99, 0.02, _BAND, transform=axes.transAxes, ha="right", fontsize=7, color=INK)
    axes.axhline(0.0, color=INK, lw=0.8, ls=(0, (4, 3)))
    if label:
        axes.legend(fontsize=8, frameon=False)
    tidy(axes, "autocorrelation", "lag in draws", "correlation")
    return finish(axes, path)


def _read_series(values: Any) -> Floats:
    if not is_numeric(values):
        raise ArgumentError("plot_autocorrelation needs an observable or numbers of shape (chains, draws).")
    series = np.atleast_2d(np.asarray(values, float))
    if series.ndim != 2 or not series.size or series.shape[1] < 3 or not np.isfinite(series).all():
        raise ArgumentError("plot_autocorrelation needs finite numbers of shape (chains, draws), three draws or more.")
    return series


def _autocorrelation(series: Floats) -> Floats:
    """Return the correlation at each lag, averaged over chains, about the mean of all of them."""
    chains, draws = series.shape
    apart = series - series.mean()
    size = 1 << (2 * draws - 1).bit_length()
    power = np.abs(np.fft.rfft(apart, size, axis=1)) ** 2
    products = np.fft.irfft(power, size, axis=1)[:, :draws].sum(axis=0) / (chains * (draws - np.arange(draws)))
    found: Floats = products / products[0] if products[0] > 0.0 else np.zeros(draws)
    return found[: max(draws // 2, 3)]
