"""Conditional tables in the forms in which people write them, read into arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_real, read_reals
from gibbsite.errors import GibbsiteError, ModelError, TooLargeError
from gibbsite.models.domain import Domains, frozen

MOST_ENTRIES = 1 << 22
"""Most entries of a conditional table."""
MOST_PARENTS = 30
"""Most parents of a node with a table; older versions of NumPy allow 32 dimensions, one of which counts the tables."""
_ROW_TOLERANCE = 1e-6  # how far a row that is written by hand may be from the sum one
_PROBABILITY = ("probability", "p", "prob", "proportion")  # names of the column of a long data frame


def read_probabilities(given: Any, domains: Domains) -> Floats:
    """Return a conditional table as an array of shape (states of the parents ..., states of the node).

    The parents and, last, the node are the sites of ``domains``. See :meth:`BayesianNetwork.add` for what may be given.
    """
    check_size(domains)
    if hasattr(given, "probabilities") and hasattr(given, "given"):  # a table of another network
        given = _rows_of(given, domains)
    if hasattr(given, "to_frame") and hasattr(given, "index"):  # a series of a data frame
        given = (
            given.to_frame("probability") if any(each is not None for each in given.index.names) else given.to_dict()
        )
    if hasattr(given, "columns") and hasattr(given, "to_dict"):
        table = _read_frame(given, domains)
    elif callable(given):
        table = _read_function(given, domains)
    elif isinstance(given, Mapping):
        table = _read_mapping(given, domains)
    else:
        table = _read_array(given, domains)
    check_distribution(table, domains)
    return frozen(table, np.float64)


def check_size(domains: Domains) -> None:
    """Refuse a node whose table would be too large."""
    cards = domains.cards.tolist()
    if math.prod(cards) > MOST_ENTRIES or len(cards) > MOST_PARENTS + 1:
        raise TooLargeError(
            f"the table of {_child(domains)!r} over {len(cards) - 1} parents has {math.prod(cards):.3g} entries, which "
            f"is more than {MOST_ENTRIES:,}; describe it by gs.factors.NoisyOr, NoisyMax or Logistic, which have "
            "numbers for each parent alone, or introduce nodes between."
        )


def check_distribution(table: Floats, domains: Domains, tolerance: float = _ROW_TOLERANCE) -> None:
    """Refuse a table with an entry that is no probability, or a row that does not sum to one."""
    fine = (table >= 0.0) & (table < np.inf)
    if not fine.all():
        codes = np.unravel_index(int(np.argmin(fine)), table.shape)
        at = domains.entry_text(range(domains.n_sites), codes)
        value = float(table[codes])
        problem = "misses a number" if math.isnan(value) else f"has {value:g}, which is no probability,"
        raise ModelError(f"the table of {_child(domains)!r} {problem} at {at}; give a number from 0 to 1.")
    sums = table.sum(axis=-1)
    wrong = np.abs(sums - 1.0) > tolerance
    if wrong.any():
        codes = np.unravel_index(int(np.argmax(wrong)), sums.shape)
        others = int(wrong.sum()) - 1
        also = f" (and {others:,} more of its rows)" if others else ""
        raise ModelError(
            f"the table of {_child(domains)!r} sums to {float(sums[codes]):.9g}{_given_text(domains, codes)}{also}; "
            "each row sums to one."
        )


def _child(domains: Domains) -> str:
    return domains.names[domains.n_sites - 1]


def _given_text(domains: Domains, codes: Sequence[Any]) -> str:
    """Return the row of a table for a message: `` at rain='no'``."""
    return f" at {domains.entry_text(range(len(codes)), codes)}" if len(codes) else ""


def _read_array(given: Any, domains: Domains) -> Floats:
    cards = tuple(domains.cards.tolist())
    values = read_reals(given, f"the table of {_child(domains)!r}")
    rows = math.prod(cards[:-1])
    if values.shape not in (cards, (rows, cards[-1]), (rows * cards[-1],)):
        shapes = f"{cards}" + (f" or {(rows, cards[-1])}" if len(cards) > 2 else "")
        turned = values.ndim == 2 and values.T.shape == (rows, cards[-1])
        raise ModelError(
            f"the table of {_child(domains)!r} has shape {values.shape}, expected {shapes}: a row for each combination "
            f"of states of the parents, the last parent changing fastest{'; transpose it' if turned else ''}."
        )
    return np.array(values.reshape(cards), np.float64)


def _read_row(given: Any, domains: Domains, codes: tuple[int, ...]) -> Floats:
    """Return one row, given as a list, or as a mapping from states to probabilities."""
    child, where = domains.n_sites - 1, _given_text(domains, codes)
    size = int(domains.cards[child])
    if isinstance(given, Mapping):
        row = np.full(size, np.nan)
        for label, value in given.items():
            code = domains.code(child, label)
            if not math.isnan(row[code]):
                raise ModelError(f"the row of {_child(domains)!r}{where} has the state {label!r} twice.")
            row[code] = read_real(value, f"the probability of {_child(domains)!r}{where}")
        missing = np.flatnonzero(np.isnan(row) & ~np.isin(np.arange(size), [domains.code(child, one) for one in given]))
        if missing.size:
            label = domains.labels(child)[int(missing[0])]
            raise ModelError(f"the row of {_child(domains)!r}{where} has no probability of the state {label!r}.")
        return row
    values = read_reals(given, f"the row of {_child(domains)!r}{where}")
    if values.shape != (size,):
        raise ModelError(
            f"the row of {_child(domains)!r}{where} has "
            f"{f'{values.size} numbers' if values.ndim == 1 else f'shape {values.shape}'}; it has {size} states."
        )
    return np.array(values, np.float64)


def _read_mapping(given: Mapping[Any, Any], domains: Domains) -> Floats:
    """Return a table from a mapping whose keys are the states of the parents, and whose values are rows."""
    n_parents = domains.n_sites - 1
    if n_parents == 0 and () not in given:
        return _read_row(given, domains, ())
    table = np.zeros(tuple(domains.cards.tolist()))
    seen = np.zeros(table.shape[:-1], np.bool_)
    for key, row in given.items():
        labels = key if isinstance(key, tuple) else (key,)
        if len(labels) != n_parents:
            names = ", ".join(domains.names[k] for k in range(n_parents))
            raise ModelError(
                f"the table of {_child(domains)!r} has a row at {key!r}; give one state of each of its "
                f"{n_parents} parents, in the order ({names})."
            )
        codes = tuple(domains.code(k, label) for k, label in enumerate(labels))
        if seen[codes]:
            raise ModelError(f"the table of {_child(domains)!r} has two rows{_given_text(domains, codes)}.")
        seen[codes] = True
        table[codes] = _read_row(row, domains, codes)
    _check_complete(seen, domains)
    return table


def _check_complete(seen: Any, domains: Domains) -> None:
    if not seen.all():
        codes = np.unravel_index(int(np.argmin(seen)), seen.shape)
        others = int((~seen).sum()) - 1
        also = f" (and {others:,} more are missing)" if others else ""
        raise ModelError(f"the table of {_child(domains)!r} has no row{_given_text(domains, codes)}{also}.")


def _read_function(given: Callable[..., Any], domains: Domains) -> Floats:
    """Return a table from a function of the states of the parents, which gives a row or the state of the node."""
    child, cards = domains.n_sites - 1, domains.cards.tolist()
    table = np.zeros(tuple(cards))
    for codes in itertools.product(*map(range, cards[:-1])):
        labels = [domains.labels(k)[code] for k, code in enumerate(codes)]
        try:
            row = given(*labels)
        except GibbsiteError:
            raise
        except Exception as error:
            raise ModelError(
                f"the function of {_child(domains)!r} fails{_given_text(domains, codes)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if isinstance(row, np.generic):
            row = row.item()
        if isinstance(row, Mapping) or (is_iterable(row) and not isinstance(row, str)):
            table[codes] = _read_row(row, domains, codes)
        elif row is None or isinstance(row, float):
            raise ModelError(
                f"the function of {_child(domains)!r} gives {describe(row)}{_given_text(domains, codes)}; expected one "
                "of the states, or a row with a probability for each state."
            )
        else:
            table[(*codes, domains.code(child, row))] = 1.0
    return table


def _rows_of(given: Any, domains: Domains) -> Any:
    """Return a labelled table as a mapping, with the axes in the order of the parents."""
    parents = [domains.names[k] for k in range(domains.n_sites - 1)]
    if sorted(given.given) != sorted(parents):
        raise ModelError(
            f"the table of {_child(domains)!r} is given ({', '.join(given.given)}), and its parents are "
            f"({', '.join(parents)})."
        )
    order = [given.given.index(name) for name in parents]
    rows = {tuple(labels[k] for k in order): row for labels, row in given.rows()}
    return rows if parents else rows[()]


def _read_frame(given: Any, domains: Domains) -> Floats:
    """Return a table from a data frame.

    It is long, with a column for each parent, for the node and for the probability, or wide, with a column for each
    parent and each state of the node. Named levels of the index count as columns.
    """
    names = getattr(getattr(given, "index", None), "names", [])
    if any(name is not None for name in names):
        given = given.reset_index()
    heads = [str(head) for head in given.columns]
    rows: Iterator[tuple[Any, ...]] = iter(given.rows() if hasattr(given, "rows") else given.itertuples(False, None))
    child, parents = _child(domains), [domains.names[k] for k in range(domains.n_sites - 1)]
    for name in parents:
        if heads.count(name) != 1:
            found = "no column" if name not in heads else "two columns"
            raise ModelError(f"the data frame of {child!r} has {found} {name!r}, a parent; it has {', '.join(heads)}.")
    at = [heads.index(name) for name in parents]
    table = np.zeros(tuple(domains.cards.tolist()))
    seen = np.zeros(table.shape, np.bool_)
    for codes, row in _entries(rows, heads, at, domains):
        if seen[codes].any():
            text = (
                _given_text(domains, codes)
                if seen[codes].ndim
                else f" at {domains.entry_text(range(len(codes)), codes)}"
            )
            raise ModelError(f"the data frame of {child!r} has two rows{text}.")
        seen[codes] = True
        table[codes] = row
    if child in heads and not seen.all():  # what a long data frame leaves out has probability zero
        seen = np.broadcast_to(seen.any(axis=-1, keepdims=True), seen.shape)
    _check_complete(seen.all(axis=-1), domains)
    return table


def _entries(
    rows: Iterator[tuple[Any, ...]], heads: list[str], at: list[int], domains: Domains
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield positions in a table, and what stands there, for the rows of a long or wide data frame."""
    last, child = domains.n_sites - 1, _child(domains)
    rest = [k for k in range(len(heads)) if k not in at]
    if child in heads:
        numbers = [k for k in rest if heads[k] != child]
        named = [k for k in numbers if heads[k].lower() in _PROBABILITY]
        if len(named) != 1 and len(numbers) != 1:
            raise ModelError(
                f"the long data frame of {child!r} needs one column 'probability' beside its states; it has "
                f"{', '.join(heads)}."
            )
        value, own = (named if len(named) == 1 else numbers)[0], heads.index(child)
        for row in rows:
            codes = tuple(domains.code(k, _plain(row[column])) for k, column in enumerate([*at, own]))
            yield codes, read_real(row[value], f"the column {heads[value]!r} of the data frame of {child!r}")
        return
    columns = [domains.code(last, heads[k]) for k in rest]
    if sorted(columns) != list(range(int(domains.cards[last]))):
        raise ModelError(
            f"the data frame of {child!r} needs one column for each of its states "
            f"{', '.join(map(repr, domains.labels(last)))}; it has {', '.join(heads)}."
        )
    for row in rows:
        codes = tuple(domains.code(k, _plain(row[column])) for k, column in enumerate(at))
        values = np.empty(len(columns))
        values[columns] = read_reals([row[k] for k in rest], f"the data frame of {child!r}")
        yield codes, values


def _plain(label: Any) -> Any:
    """Return the label of a cell: numbers of NumPy, and whole floats, are those of Python."""
    if isinstance(label, np.generic):
        label = label.item()
    return int(label) if isinstance(label, float) and label.is_integer() else label
