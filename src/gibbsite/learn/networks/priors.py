"""Dirichlet priors of conditional tables: pseudocounts of every entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbsite._common.arguments import is_number
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.learn.networks.layout import Layout, row_of_entries

PRIORS = ("ml", "bdeu", "k2", "jeffreys")
_SAME = {"k2": 1.0, "jeffreys": 0.5}


def read_prior(prior: Any, layout: Layout, names: Sequence[str]) -> tuple[Floats, str]:
    """Return pseudocounts of all entries, and what the prior is called.

    ``prior`` is "ml" or None (no prior), "bdeu" or "bdeu:10" (equivalent sample size 1 or 10), a number (the same),
    "k2" (one for each entry), "jeffreys" (a half), or pseudocounts by site, as numbers or arrays.

    Examples
    --------
    >>> from gibbsite.learn.networks.layout import make_layout
    >>> layout = make_layout(["a", "b"], {"a": (), "b": ("a",)}, np.array([2, 2]))
    >>> read_prior("bdeu:8", layout, ["a", "b"])[0].tolist()
    [4.0, 4.0, 2.0, 2.0, 2.0, 2.0]
    """
    sizes = np.diff(layout.start)
    size = int(layout.start[-1])
    if isinstance(prior, Mapping):
        return _own(prior, layout, names), "own pseudocounts"
    name, number = parse_prior(prior)
    if name == "ml":
        return np.zeros(size), "none"
    if name in _SAME:
        return np.full(size, _SAME[name]), f"{name}, {_SAME[name]:g} for each entry"
    return np.repeat(number / sizes, sizes), f"BDeu, equivalent sample size {number:g}"


def parse_prior(prior: Any) -> tuple[str, float]:
    """Return the name of a prior, and its equivalent sample size.

    Examples
    --------
    >>> parse_prior("bdeu:10"), parse_prior(None)
    (('bdeu', 10.0), ('ml', 0.0))
    """
    if prior is None:
        return "ml", 0.0
    if is_number(prior):
        prior = f"bdeu:{float(prior)!r}"
    if not isinstance(prior, str):
        raise ArgumentError(f"{argument('prior')} must be a name, a number or pseudocounts by site, got {prior!r}.")
    name, colon, number = prior.lower().partition(":")
    if name not in PRIORS:
        raise ArgumentError(unknown("the prior", prior, PRIORS, ', or "bdeu:10" for an equivalent sample size'))
    if name != "bdeu":
        if colon:
            raise ArgumentError(f"the prior {name!r} has no equivalent sample size, got {prior!r}.")
        return name, 0.0
    return name, read_size(number) if colon else 1.0


def read_size(text: str) -> float:
    """Return an equivalent sample size."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 < value < np.inf:
        raise ArgumentError(f"an equivalent sample size must be a positive number, got {text!r}.")
    return value


def _own(prior: Mapping[Any, Any], layout: Layout, names: Sequence[str]) -> Floats:
    """Return pseudocounts given by site."""
    found = np.zeros(int(layout.start[-1]))
    for name in prior:
        if name not in names:
            raise ArgumentError(unknown("the site", name, names))
    for i, name in enumerate(names):
        if name not in prior:
            raise ArgumentError(f"{argument('prior')} has no pseudocounts for {name!r}; give them for every site.")
        shape = tuple(int(layout.card[k]) for k in layout.site[layout.begin[i] : layout.begin[i + 1]])
        array = read_reals(prior[name], f"the prior of {name}")
        if array.ndim and array.size != np.prod(shape):
            raise ArgumentError(
                f"the pseudocounts of {name!r} must be a number or an array of shape {shape}, parents first, got "
                f"{array.shape}."
            )
        if (array < 0.0).any():
            raise ArgumentError(f"the pseudocounts of {name!r} must not be negative.")
        found[layout.start[i] : layout.start[i + 1]] = array.ravel() if array.ndim else float(array)
    rows = row_of_entries(layout)
    if (np.bincount(rows, found > 0.0) % np.bincount(rows) > 0).any():
        raise ArgumentError(f"the pseudocounts of a row of {argument('prior')} must be all positive or all zero.")
    return found
