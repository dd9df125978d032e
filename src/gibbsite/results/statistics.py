"""Statistics of numbers from recorded draws: mean, spread, standard error, effective size, R-hat and quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.wording import escaped
from gibbsite.results.measure.diagnostics import ess, mcse, rhat
from gibbsite.results.quantiles import Probabilities, Sites, find_quantiles, read_probabilities, recorded_numbers

if TYPE_CHECKING:
    from gibbsite.results.result import Result

#: The ends of the central 95 % interval and the median.
SHOWN = (0.025, 0.5, 0.975)


def find_statistics(
    result: Result, sites: Sites = None, probabilities: Probabilities = SHOWN
) -> dict[str, dict[str, float]]:
    """Return the statistics of numbers by site; see ``Result.statistics``."""
    names, draws = recorded_numbers(result, sites)
    at = read_probabilities(probabilities)
    quantiles = find_quantiles(result, names, at)
    columns = {
        "mean": draws.mean(axis=(0, 1)),
        "sd": draws.std(axis=(0, 1)),
        "mcse": np.atleast_1d(mcse(draws)),
        "ess": np.atleast_1d(ess(draws)),
        "rhat": np.atleast_1d(rhat(draws)),
    }
    return {
        name: {what: float(column[k]) for what, column in columns.items()}
        | {f"q{100 * p:g}": quantiles[name][p] for p in at}
        for k, name in enumerate(names)
    }


def statistics_lines(table: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield a table of statistics, a line for each site.

    Examples
    --------
    >>> list(statistics_lines({"mu": {"mean": 1.25, "ess": 812.4}}))
    ['    mean  ess', 'mu  1.25  812']
    """
    heads = [*next(iter(table.values()), {})]
    cells = [[escaped(site), *(_cell(head, row[head]) for head in heads)] for site, row in table.items()]
    rows = [["", *heads], *cells]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        yield "  ".join([first.ljust(widths[0]), *_right(others, widths[1:])]).rstrip()


def _right(cells: Iterable[str], widths: Iterable[int]) -> Iterator[str]:
    return (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _cell(head: str, value: float) -> str:
    if head == "ess":
        return f"{value:.0f}"
    return f"{value:.3f}" if head == "rhat" else f"{value:.2g}" if head == "mcse" else f"{value:.4g}"
