"""Errors of methods along their updates: tables of errors, the cost of an update, and curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite.lab.drawing import Axes
from gibbsite.lab.findings import Rows, Table
from gibbsite.lab.occupancy import Trajectory

Arrays = Mapping[str, Array]
NOTE = "Seconds are time of the processor, and depend on the machine; everything else depends on the seed alone."


def follow_methods(
    names: Iterable[str], follow: Callable[[str], tuple[Ints, Trajectory]]
) -> tuple[dict[str, Array], Any]:
    """Follow all methods; return arrays "NAME: errors", "NAME: seconds" and "NAME: updates", and their reports."""
    arrays: dict[str, Array] = {}
    reports: dict[str, dict[str, float]] = {}
    for name in names:
        lengths, seen = follow(name)
        arrays |= {f"{name}: errors": seen.errors, f"{name}: seconds": seen.seconds, f"{name}: updates": lengths}
        reports[name] = dict(seen.report)
    return arrays, reports


def seconds_of_update(arrays: Arrays, name: str) -> float:
    """Return the mean time of an update of a method."""
    return float(arrays[f"{name}: seconds"][:, -1].mean() / arrays[f"{name}: updates"][-1])


def last_error(arrays: Arrays, name: str) -> float:
    """Return the mean error of chains at the end."""
    return float(arrays[f"{name}: errors"][:, -1].mean())


def error_at(arrays: Arrays, name: str, updates: int) -> Array | None:
    """Return the errors of all chains of a method after a number of updates, None if it made fewer."""
    at = np.flatnonzero(arrays[f"{name}: updates"] == updates)
    return arrays[f"{name}: errors"][:, at[0]] if at.size else None


def tabulate_errors(title: str, arrays: Arrays, names: Iterable[str], shown: Iterable[int], digits: int) -> Table:
    """Return a table of mean errors and their standard deviation after some numbers of updates."""
    shown, rows = list(shown), Rows()
    for name in names:
        found = [error_at(arrays, name, updates) for updates in shown]
        cells = [None if e is None else f"{e.mean():.{digits}f} ({e.std(ddof=1):.{digits}f})" for e in found]
        rows.add(name, *cells)
    return Table(title, ("method", *(f"{updates:,} updates" for updates in shown)), rows)


def draw_courses(
    axes: Axes, arrays: Arrays, looks: Mapping[str, tuple[str, str]], what: str, band: bool = False
) -> None:
    """Draw mean errors against "updates" or "seconds", with the range of chains if ``band`` is true."""
    for name, (color, dashes) in looks.items():
        x, y = arrays[f"{name}: {what}"], arrays[f"{name}: errors"]
        at = x if what == "updates" else x.mean(axis=0)
        if band:
            axes.fill_between(at, y.min(axis=0), y.max(axis=0), color=color, alpha=0.15, lw=0)
        axes.plot(at, y.mean(axis=0), ls=dashes, color=color, lw=1.5, label=name)
    axes.set_xscale("log")
