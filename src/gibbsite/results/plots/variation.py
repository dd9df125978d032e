"""A picture of certificates: how the bound on the bias falls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from gibbsite._common.arguments import checked, describe
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError
from gibbsite.results.plots._canvas import COLORS, FAINT, INK, finish, new_axes, shorten, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@runtime_checkable
class Certified(Protocol):
    """A bound on the bias of a scan, as :func:`gibbsite.certify` returns it."""

    @property
    def scan(self) -> str:
        """Name of the scan."""
        ...

    @property
    def steps(self) -> int:
        """Number of steps."""
        ...

    @property
    def accuracy(self) -> float | None:
        """The accuracy that was asked for."""
        ...

    @property
    def variation(self) -> float:
        """The bound after all steps."""
        ...

    @property
    def curve(self) -> Floats:
        """The bound after some numbers of steps."""
        ...

    @property
    def curve_steps(self) -> Ints:
        """These numbers of steps."""
        ...


@checked
def plot_variation(
    certificates: Certified | Mapping[str, Certified], *, ax: Axes | None = None, path: str | Path | None = None
) -> Axes:
    """Show how the bound on the bias falls with the number of steps.

    Parameters
    ----------
    certificates : Certificate, or mapping of them by name
        What to compare.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    path : str or Path, optional
        Where to save the picture, usually ``.png``.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.1)
    >>> scans = {"systematic": gs.Systematic(), "random": gs.RandomScan()}
    >>> axes = gs.plots.plot_variation({name: gs.certify(model, scan=s, sweeps=9) for name, s in scans.items()})
    >>> axes.get_yscale()
    'log'
    """
    shown = certificates if isinstance(certificates, Mapping) else {getattr(certificates, "scan", ""): certificates}
    if not shown:
        raise ArgumentError(f"{argument('certificates')} must name at least one answer of gs.certify.")
    for found in shown.values():
        if not hasattr(found, "curve_steps"):
            raise ArgumentError(f"{argument('certificates')} must be answers of gs.certify, got {describe(found)}.")
    axes = new_axes(6.4, 4.0, path, ax)
    for number, (name, found) in enumerate(shown.items()):
        # a bound of zero, or beyond all floats, has no place on a logarithmic axis
        values = np.where(np.isfinite(found.curve) & (found.curve > 0), found.curve, np.nan)
        color = COLORS[number % len(COLORS)]
        label = f"{shorten(name)}: {found.variation:.3g} after {found.steps:,}"
        axes.plot(found.curve_steps, values, color=color, lw=1.4, label=label)
        if found.accuracy is not None:
            axes.axhline(found.accuracy, color=INK, lw=0.8, ls=(0, (4, 3)))
    axes.axhline(1.0, color=FAINT, lw=0.8)
    axes.set_yscale("log")
    axes.legend(fontsize=8, frameon=False)
    tidy(axes, "Bound on the bias from any start", "steps", "Dobrushin variation")
    return finish(axes, path)
