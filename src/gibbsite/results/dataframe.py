"""Answers as pandas tables; pandas is loaded when the first one is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite._common.wording import missing
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.models.domain import Angle, Interval
from gibbsite.results.joint import numeric
from gibbsite.results.table import SiteTable

if TYPE_CHECKING:
    import pandas

    from gibbsite.results.observables import Observables
    from gibbsite.results.result import Result

# Of the two cells of a number, its mean and its standard deviation, the worse one stands for the site.
_WORSE = {"ess": np.minimum, "rhat": np.maximum}


def make_dataframe(table: SiteTable, known: Mapping[str, SiteTable]) -> pandas.DataFrame:
    """Return marginals, and what is known about them, as a table.

    Parameters
    ----------
    table : SiteTable
        Probabilities; of numbers, means and standard deviations.
    known : mapping from names to SiteTable
        Any of "mcse", "ess" and "rhat".

    Returns
    -------
    pandas.DataFrame
        One row for each state of each site and one for each number; see ``Result.to_dataframe``. Observed
        sites come last.

    Raises
    ------
    GibbsiteError
        If pandas is not installed.

    Examples
    --------
    >>> import gibbsite as gs
    >>> exact = gs.solve_exact(gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])]))
    >>> make_dataframe(exact.marginals, {}).values.tolist()
    [['a', 'no', 0.25, False], ['a', 'yes', 0.75, False]]
    """
    pandas = load_pandas()
    domains = table.domains
    real = domains.numbers
    cards = np.where(real, 1, np.asarray(domains.cards)).astype(np.int64)
    number = np.repeat(real, cards)  # of each row
    # the first cell of a row: of a number, its mean
    offset = domains.offset[:-1]
    cell = np.repeat(offset - (np.cumsum(cards) - cards), cards) + np.arange(int(cards.sum()))
    columns: dict[str, Any] = {"site": np.repeat(np.array(domains.names.all(), object), cards)}
    if not real.all() or table.observed:
        columns["state"] = _states(table, cards)
        columns["probability"] = np.where(number, np.nan, _cells(table)[cell])
    if real.any():
        columns["mean"] = _of_numbers(_cells(table), cell, number)
        second = _second_moments(table, number, cards)
        for moment, has in second.items():
            columns[moment] = _of_numbers(_cells(table), cell + 1, has)
    for name, found in known.items():
        numbers = _cells(found)
        columns[name] = numbers[cell]
        if real.any() and name == "mcse":
            for moment, has in second.items():
                columns[f"{moment}_mcse"] = _of_numbers(numbers, cell + 1, has)
        elif name in _WORSE:
            columns[name][number] = _WORSE[name](numbers[cell[number]], numbers[cell[number] + 1])
    frame = pandas.DataFrame({**columns, "observed": False})
    return _with_observed(frame, table, known, pandas)


def _with_observed(frame: Any, table: SiteTable, known: Mapping[str, SiteTable], pandas: Any) -> Any:
    rows = [
        {
            "site": site,
            "state": state,
            "probability": p,
            **{name: found[site][state] for name, found in known.items()},
            "observed": True,
        }
        for site, states in table.observed.items()
        for state, p in states.items()
    ]
    if not rows:
        return frame
    seen = pandas.DataFrame(rows).reindex(columns=frame.columns)
    seen["state"] = np.array([row["state"] for row in rows] + [None], object)[:-1]
    return seen if not len(frame) else pandas.concat([frame, seen], ignore_index=True)


def add_observables(frame: Any, observables: Observables) -> Any:
    """Return a table of marginals with a row for each value of each observable at its end."""
    numbers = ("mean", "sd", "mcse", "ess", "rhat")
    rows = [
        {
            "site": name,
            "state": seen.names[k] or None,
            **{what: float(np.atleast_1d(getattr(seen, what))[k]) for what in numbers},
            "observed": False,
            "observable": True,
        }
        for name, seen in observables.items()
        for k in range(len(seen.names))
    ]
    if not rows:
        return frame
    whole = {name: column.tolist() for name, column in frame.assign(observable=False).items()}
    columns = {
        name: whole.get(name, [np.nan] * len(frame)) + [row.get(name, np.nan) for row in rows]
        for name in [*whole, *(name for name in rows[0] if name not in whole)]
    }
    words = np.array([*columns["state"], None], object)[:-1]  # None stays what it is
    return load_pandas().DataFrame({**columns, "state": words})


def _cells(table: SiteTable) -> Floats:
    """Return one number per cell of the domains; tables of two-state sites may store one per site."""
    return table.to_array().ravel() if table.binary else table.cells


def _of_numbers(cells: Floats, cell: Ints, number: Bools) -> Floats:
    column = np.full(cell.size, np.nan)
    column[number] = cells[cell[number]]
    return column


def _second_moments(table: SiteTable, number: Bools, cards: Ints) -> dict[str, Bools]:
    """Return the second moment of each number, and its rows: the resultant length of angles."""
    circular = number & np.repeat(table.domains.periods > 0.0, cards)
    rows = {Interval.moments[1]: number & ~circular, Angle.moments[1]: circular}
    return {str(moment): has for moment, has in rows.items() if has.any()}


def _states(table: SiteTable, cards: Ints) -> NDArray[np.object_]:
    """Return the label of each row; None in rows of numbers."""
    labels: list[tuple[Any, ...]] = [(None,) if isinstance(kind, Interval) else kind for kind in table.domains.kinds]
    found = np.empty(int(cards.sum()), object)
    start = np.cumsum(cards) - cards
    kind_of = np.broadcast_to(table.domains.kind_of, cards.shape)
    for kind, words in enumerate(labels):
        first = start[kind_of == kind]
        for code, word in enumerate(words):
            found[first + code] = word
    return found


def make_draws_dataframe(result: Result) -> pandas.DataFrame:
    """Return recorded draws as a table.

    Parameters
    ----------
    result : Result
        A run with recorded draws.

    Returns
    -------
    pandas.DataFrame
        Indexed by chain and draw, one column per site; labels that are words are a categorical.

    Raises
    ------
    GibbsiteError
        If pandas is not installed, or no draws were recorded.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": [-1, 1]}, [(("a", "b"), [[4, 1], [1, 2]])])
    >>> result = gs.sample(model, sweeps=500, record=["marginals", "draws"], rng=1, progress=False)
    >>> frame = make_draws_dataframe(result)
    >>> frame.shape, list(frame.index.names), sorted(frame["a"].unique())
    ((2000, 2), ['chain', 'draw'], ['no', 'yes'])
    """
    if not result.draw_sites.size:
        raise ArgumentError("Draws were not recorded; add 'draws' or gs.Draws(['A']) to record=.")
    pandas = load_pandas()
    chains, draws, _ = result.draws.shape
    index = pandas.MultiIndex.from_product([range(chains), range(draws)], names=["chain", "draw"])
    columns = {}
    for k, site in enumerate(result.draw_sites.tolist()):
        values, kind = result.draws[:, :, k].ravel(), result.domains.kind(site)
        name = result.domains.names[site]
        if isinstance(kind, Interval):
            columns[name] = values
        elif numeric(kind):
            columns[name] = np.array(kind)[values.astype(np.intp)]
        else:
            columns[name] = pandas.Categorical.from_codes(values.astype(np.intp), list(kind))
    return pandas.DataFrame(columns, index=index)


def load_pandas() -> Any:
    """Import pandas, or say how to get it."""
    try:
        import pandas
    except ImportError:
        raise GibbsiteError(missing("Tables need", "pandas", "dataframe")) from None
    return pandas
