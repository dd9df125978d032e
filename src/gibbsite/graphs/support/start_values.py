"""Where chains start in models of numbers: at random places of positive density, or as given by the user."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError, ModelError, SupportError
from gibbsite.graphs.functions.densities import value_once
from gibbsite.graphs.functions.failure import cause_at, cause_text

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models.base import Model


_TRIES = 200


def start_values(model: Model, graph: Graph, rngs: list[np.random.Generator], start: Any = None) -> list[Floats]:
    """Return the start of every chain of a model some sites of which are numbers.

    By default it is a random place of positive density; otherwise a mapping site -> value (or state label) for every
    site, or numbers (state codes) of shape (n,) or (chains, n).
    """
    if start is None or (isinstance(start, str) and start in ("auto", "random")):
        return [_look_for_start(model, graph, rng) for rng in rngs]
    given = _read_mapping(model, start) if isinstance(start, Mapping) else _read_array(model, len(rngs), start)
    _check_domains(model, given)
    for row in given:
        if density_at(model, graph, row) == -math.inf:
            raise SupportError("The start has density zero; change it or leave it out.")
    return [x.copy() for x in np.broadcast_to(given, (len(rngs), model.n_sites))]


def density_at(model: Model, graph: Graph, x: Floats) -> float:
    """Return the log-density at a place; refuse NaN and plus infinity."""
    value = value_once(graph.arrays, x)
    if math.isnan(value) or value == math.inf:
        said = "NaN" if math.isnan(value) else "infinite"
        raised = cause_at(graph, x)
        raise ModelError(
            f"The log-density is {said} at {model.place_text(x)}; it must be a number or -inf.{cause_text(raised)}"
        ) from raised
    return value


def _look_for_start(model: Model, graph: Graph, rng: np.random.Generator) -> Floats:
    for _ in range(_TRIES):
        x = model.draw_start(rng)
        if density_at(model, graph, x) > -math.inf:
            return x
    raise SupportError(
        f"No place of positive density was found in {_TRIES} random ones; give one as start=, or bounds."
    )


def _read_mapping(model: Model, start: Mapping[Any, Any]) -> Floats:
    x = np.full(model.n_sites, np.nan)
    numbers = model.domains.numbers
    for site, value in start.items():
        i = model.index(site)
        x[i] = _number(model, i, value) if numbers[i] else model.domains.code(i, value)
    missing = np.flatnonzero(np.isnan(x))
    if missing.size:
        name = model.domains.names[int(missing[0])]
        raise ArgumentError(f"The start has no value for the site {name!r}; name every site.")
    return x[None]


def _number(model: Model, i: int, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        name = model.domains.names[i]
        raise ArgumentError(f"The start gives the site {name!r} the value {value!r}; it must be a number.") from None


def _read_array(model: Model, chains: int, start: Any) -> Floats:
    n = model.n_sites
    try:
        given = np.asarray(start, float)
    except (TypeError, ValueError):
        raise ArgumentError(
            f'start={start!r} is not understood; use "auto", a mapping site -> value, or numbers.'
        ) from None
    if given.shape not in ((n,), (chains, n)):
        raise ArgumentError(
            f"A start needs numbers of shape ({n},) or ({chains}, {n}) for {chains} chains, got {given.shape}."
        )
    return given.reshape(-1 if n else 1, n)


def _check_domains(model: Model, given: Floats) -> None:
    low, high = model.domains.bounds
    codes = ~model.domains.numbers
    bad = ~((given >= low) & (given <= high)) | ~np.isfinite(given) | (codes & (given != np.floor(given)))
    if bad.any():
        row, i = (int(k) for k in np.argwhere(bad)[0])
        raise ArgumentError(
            f"The start gives the site {model.domains.names[i]!r} the value {given[row, i]:g}; it must be "
            f"{'a state code' if codes[i] else 'a number'} from {low[i]:g} to {high[i]:g}."
        )
