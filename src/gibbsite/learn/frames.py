"""Data frames as data of fits: columns are sites, and texts are states."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Ints16
from gibbsite._common.wording import argument, site_name
from gibbsite.errors import ArgumentError
from gibbsite.learn.arguments import read_codes
from gibbsite.models.domain import Label


def is_frame(data: Any) -> bool:
    """Tell whether data are a data frame, such as one of pandas."""
    return hasattr(data, "columns") and hasattr(data, "dtypes") and hasattr(data, "to_numpy")


def read_frame(data: Any, sites: Any, spins: bool) -> tuple[Ints16, dict[str, list[Label]]]:
    """Return the state codes (draws, sites) of a data frame, and the states of each site by name.

    Numbers are read as in arrays. Other columns have the categories of their type as states, or else their values in
    sorted order. ``spins`` are models of two states.
    """
    if sites is not None:
        raise ArgumentError(f"{argument('sites')} are the columns of a data frame; rename them, or give an array.")
    if not len(data) or not len(data.columns):
        raise ArgumentError(f"{argument('data')} must have a row per draw and a column per site, got {data.shape}.")
    columns, states = [], {}
    for k, given in enumerate(data.columns):
        name, column = str(site_name(given)), data.iloc[:, k]
        if name in states:
            raise ArgumentError(f"{argument('data')} has two columns of the name {name!r}; rename one of them.")
        missing = np.flatnonzero(np.asarray(column.isna()))
        if len(missing):
            raise ArgumentError(f"the column {name!r} has no value in row {missing[0]}; leave such rows out.")
        if getattr(column.dtype, "kind", "O") in "biuf":
            codes = read_codes(np.asarray(column, np.float64)[:, None], 2 if spins else None, spins)[:, 0]
            known: list[Label] = [-1, 1] if spins else list(range(max(int(codes.max()) + 1, 2)))
        else:
            codes, known = _read_labels(column, name)
        columns.append(codes)
        states[name] = known
    if spins:
        wrong = next((name for name, known in states.items() if len(known) != 2), None)
        if wrong is not None:
            raise ArgumentError(
                f"the column {wrong!r} has {len(states[wrong])} states, and an Ising model two; use fit_pairwise."
            )
    elif len(sizes := {len(known) for known in states.values()}) > 1:
        states = _alike(states, max(sizes))
    return np.stack(columns, axis=1).astype(np.int16), states


def _read_labels(column: Any, name: str) -> tuple[Ints16, list[Label]]:
    """Return the codes and the labels of a column of texts or categories."""
    values = column.cat.categories.tolist() if hasattr(column, "cat") else sorted(set(column.tolist()), key=str)
    labels: list[Label] = [value if isinstance(value, str | int) else str(value) for value in values]
    if len({str(label) for label in labels}) < len(labels):
        raise ArgumentError(f"two states of the column {name!r} have the same text.")
    code = {value: k for k, value in enumerate(values)}
    return np.array([code[value] for value in column.tolist()], np.int16), labels


def _alike(states: dict[str, list[Label]], most: int) -> dict[str, list[Label]]:
    """Let columns of numbers have as many states as the others; refuse other differences."""
    found: dict[str, list[Label]] = {}
    for name, known in states.items():
        if len(known) < most and known != list(range(len(known))):
            widest = next(other for other, each in states.items() if len(each) == most)
            raise ArgumentError(
                f"the column {name!r} has {len(known)} states, and {widest!r} has {most}; all sites of a pairwise fit "
                "have equally many: join states, or give both columns the same categories."
            )
        found[name] = [*range(most)] if known == [*range(len(known))] else known
    return found
