"""Observables against a parameter, two answers against each other, fits, and round trips of tempered runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import check_list, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.results.compare import HasMarginals, compare, read_errors, read_table
from gibbsite.results.observables import Derived, Estimate
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, finish, new_axes, shorten, tidy
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gibbsite.results.result import Result

_LABELLED = 3  # largest differences that are named


@checked
def plot_observable(
    at: Sequence[float] | Any,
    estimates: Sequence[Any] | Any,
    *,
    reference: Callable[[Floats], Any] | Sequence[float] | None = None,
    xlabel: str = "parameter",
    ylabel: str = "",
    label: str | None = None,
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Show an observable against temperature, size or any other parameter, with bars of two standard errors.

    Parameters
    ----------
    at : sequence of float
        The parameter of each run.
    estimates : sequence
        One for each: an entry of ``result.observables``, what ``derive`` returned, or a pair (value, standard error).
    reference : callable or sequence of float, optional
        A curve to compare with: a function of the parameter, or its values at ``at``.
    xlabel, ylabel : str
        Names of the axes, with units.
    label : str, optional
        Name in the legend; call the function again with ``ax=`` to add further curves.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> betas, energies = [0.1, 0.2, 0.3], []
    >>> for beta in betas:
    ...     model = gs.ising_grid((6, 6), coupling=beta, periodic=True)
    ...     result = gs.sample(model, record=["marginals", "energy"], rng=1, progress=False)
    ...     energies.append(result.observables["energy"])
    >>> axes = plot_observable(betas, energies, xlabel="inverse temperature", ylabel="energy")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('inverse temperature', 'energy')
    """
    x, listed = read_reals(at, "at"), check_list("estimates", estimates, "estimates")
    pairs = [_read_estimate(each, k) for k, each in enumerate(listed)]
    if x.ndim != 1 or len(pairs) != x.size or not pairs:
        raise ArgumentError(f"plot_observable needs one estimate for each of {x.size} parameters, got {len(pairs)}.")
    y, error = np.array(pairs).T
    axes = new_axes(5.6, 3.8, path, ax)
    color = COLORS[len(axes.containers) % len(COLORS)]
    if reference is not None:
        grid = np.linspace(x.min(), x.max(), 201) if callable(reference) else x
        curve = read_reals(reference(grid) if callable(reference) else reference, "reference")
        if curve.shape != grid.shape:
            raise ArgumentError(f"{argument('reference')} must give {grid.size} numbers, got shape {curve.shape}.")
        axes.plot(grid, curve, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=1)
    bars = 2.0 * np.nan_to_num(error)
    axes.errorbar(x, y, yerr=bars, fmt="o-", ms=3.5, lw=1.1, capsize=2, color=color, label=label)
    if label:
        axes.legend(fontsize=8, frameon=False)
    tidy(axes, "", xlabel, ylabel or getattr(listed[0], "name", ""))
    return finish(axes, path)


def _read_estimate(given: Any, number: int) -> tuple[float, float]:
    """Return value and standard error of an estimate."""
    if isinstance(given, Estimate):
        pair = given.mean, given.mcse
    elif isinstance(given, Derived):
        pair = given.value, given.mcse
    else:
        pair = tuple(given) if isinstance(given, Sequence | np.ndarray) else (given, 0.0)
    try:
        value, error = (float(part) for part in pair)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"Estimate {number} is not one value with one error, got {describe(given)}; of an observable with several "
            "values give one as (mean, mcse)."
        ) from None
    return value, error


@checked
def plot_comparison(
    a: SiteTable | HasMarginals,
    b: SiteTable | HasMarginals,
    *,
    labels: Sequence[str] = ("first answer", "second answer"),
    ax: Axes | None = None,
    path: str | Path | None = None,
) -> Axes:
    """Show how far two answers agree: every probability in one against the other, with two standard errors.

    Parameters
    ----------
    a, b : answers with marginals
        What to compare; they need the same sites and states.
    labels : two strings
        Names of the axes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.example("asia")
    >>> run = gs.sample(model, rng=1, progress=False)
    >>> axes = plot_comparison(gs.solve_exact(model), run, labels=("exact", "sampled"))
    >>> axes.get_ylabel()
    'sampled'
    """
    called = check_list("labels", labels, "names")
    if len(called) != 2:
        raise ArgumentError("labels= needs a name for each of the two answers.")
    found = compare(a, b)
    tables, errors = (read_table(a), read_table(b)), (read_errors(a), read_errors(b))
    rows = []
    for name in tables[0]:
        if name in tables[1]:
            for state, p in tables[0][name].items():
                sizes = (0.0 if e is None else float(e[name][state]) for e in errors)
                rows.append((p, tables[1][name][state], *sizes))
    x, y, dx, dy = np.nan_to_num(np.array(rows, float)).T
    axes = new_axes(4.6, 4.4, path, ax)
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    axes.plot(ends, ends, color=FAINT, lw=0.9, zorder=1)
    axes.errorbar(x, y, xerr=2 * dx, yerr=2 * dy, fmt="o", ms=3.5, lw=0.9, color=COLORS[0], alpha=0.7)
    span = max(ends[1] - ends[0], 1e-9)
    labelled: list[tuple[float, float]] = []
    for row in found.worst[:_LABELLED]:
        # a label takes about a third of the width
        free = all(abs(row.a - a) > 0.35 * span or abs(row.b - b) > 0.04 * span for a, b in labelled)
        if abs(row.a - row.b) > 1e-9 and free:
            labelled.append((row.a, row.b))
            axes.annotate(
                shorten(f"{row.site} = {row.state}", 22),
                (row.a, row.b),
                (6, -3),
                textcoords="offset points",
                fontsize=7.5,
                color=INK,
            )
    tidy(axes, f"largest difference {found.max_abs:.2g}", called[0], called[1])
    return finish(axes, path)


@checked
def plot_fit(
    fit: Any, *, reference: Sequence[float] | Any = None, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Show learned parameters: their way through the gradient steps, or against the true ones.

    Parameters
    ----------
    fit : Fit
        What :func:`gibbsite.learn.fit_ising` or ``fit_pairwise`` returned.
    reference : sequence of float, optional
        True couplings, in the order of ``fit.pairs``: the fitted ones are then drawn against them.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.3)
    >>> draws = gs.solve_exact(model).draw(2000, np.random.default_rng(1))
    >>> fit = gs.learn.fit_ising(draws, gs.ising_grid((3, 3), coupling=0.0), gradient="exact")
    >>> plot_fit(fit).get_xlabel()
    'gradient step'
    """
    if not (hasattr(fit, "path_steps") and hasattr(fit, "couplings")):
        raise ArgumentError(f"plot_fit needs what gs.learn.fit_ising returns, got {describe(fit)}.")
    axes = new_axes(5.0, 4.0, path, ax)
    if reference is None:
        axes.plot(fit.path_steps, fit.path[:, : np.size(fit.couplings)], lw=0.9, alpha=0.6, color=COLORS[0])
        tidy(axes, f"{len(fit.pairs):,} couplings", "gradient step", "coupling (natural logarithm of weights)")
        return finish(axes, path)
    true, found = np.ravel(read_reals(reference, "reference")), np.ravel(fit.couplings)
    if true.shape != found.shape:
        raise ArgumentError(f"reference= needs {found.size} couplings in the order of fit.pairs, got {true.size}.")
    ends = [min(true.min(), found.min()), max(true.max(), found.max())]
    axes.plot(ends, ends, color=FAINT, lw=0.9, zorder=1)
    axes.plot(true, found, "o", ms=3.5, color=COLORS[0], alpha=0.7)
    rms = float(np.sqrt(np.mean((found - true) ** 2)))
    tidy(axes, f"{found.size:,} couplings, root mean square error {rms:.2g}", "true coupling", "fitted coupling")
    return finish(axes, path)


@checked
def plot_round_trips(result: Result, *, ax: Axes | None = None, path: str | Path | None = None) -> Axes:
    """Show how states travel along the ladder of a tempered run: how often swaps of neighbouring rungs are accepted.

    The title counts the round trips of each chain between the reference and the model: at least ten are wanted.

    Parameters
    ----------
    result : Result
        Of a run with ``gs.Tempered``.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> result = gs.sample(gs.ising_grid((4, 4), coupling=0.7), gs.Tempered(), sweeps=500, rng=1, progress=False)
    >>> plot_round_trips(result).get_ylabel()
    'accepted share of swaps'
    """
    tempering = result.tempering
    axes = new_axes(6.0, 3.6, path, ax)
    betas = tempering.betas
    axes.stairs(tempering.swap_rates, betas, color=COLORS[0], fill=True, alpha=0.25)
    axes.plot(0.5 * (betas[1:] + betas[:-1]), tempering.swap_rates, "o", ms=3.5, color=COLORS[0])
    axes.plot(betas, np.zeros(betas.size), "|", ms=12, color=INK)
    axes.set_ylim(0.0, 1.0)
    trips = ", ".join(f"{count:,}" for count in tempering.round_trips.tolist()[:8])
    more = ", ..." if tempering.round_trips.size > 8 else ""
    title = f"round trips of each chain: {trips}{more}\ncommunication barrier {tempering.barrier:.2g}"
    tidy(axes, title, "inverse temperature of the rungs", "accepted share of swaps")
    return finish(axes, path)
