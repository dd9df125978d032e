"""Starts given by the user, and random starts of models of numbers; those of probability zero are refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gibbsite._common.arrays import Codes, Floats
from gibbsite.errors import ArgumentError, ModelError, SupportError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.support.possible import broken_factors, find_constraints, has_zeros, scope_text
from gibbsite.models.base import Model
from gibbsite.models.factorgraph import FactorGraph

_PLACES = 200  # random places that are tried in models of numbers


def read_start(model: FactorGraph, graph: Graph, chains: int, start: Any) -> Codes:
    """Return the codes of a given start, with shape (1, n) if it is the same for all chains."""
    if isinstance(start, Mapping):
        return _read_labels(model, graph, start)[None]
    try:
        codes = np.asarray(start)
    except ValueError:  # lists of unequal length, or one that holds itself
        codes = np.zeros((), object)
    n = graph.n_sites
    if codes.shape not in ((n,), (chains, n)) or (codes.dtype.kind not in "iu" and codes.size):
        raise ArgumentError(
            f"A start needs integer state codes of shape ({n},) or ({chains}, {n}) for {chains} chains, "
            f"got {codes.dtype} of shape {codes.shape}; labels go into a mapping."
        )
    outside = (codes < 0) | (codes >= graph.cards)
    if outside.any():
        at = np.unravel_index(int(np.argmax(outside)), codes.shape)
        i = int(at[-1])
        raise ArgumentError(
            f"The start gives the site {model.sites[i]!r} the state code {codes[at]}; its codes run "
            f"from 0 to {graph.cards[i] - 1}."
        )
    return codes.reshape(-1 if n else 1, n).astype(graph.state_dtype)


def _read_labels(model: FactorGraph, graph: Graph, start: Mapping[Any, Any]) -> Codes:
    x = np.full(graph.n_sites, -1, graph.state_dtype)
    evidence = model.evidence
    for site, label in start.items():
        if isinstance(site, str) and site in evidence:
            if str(evidence[site]) != str(label):
                raise SupportError(
                    f"The start has {site}={label!r}, but the evidence is {evidence[site]!r}; "
                    "leave observed sites out of the start."
                )
            continue
        x[model.index(site)] = model.code(site, label)
    if (x < 0).any():
        missing = model.sites[int(np.argmax(x < 0))]
        raise ArgumentError(f"The start has no state for the site {missing!r}; name every free site.")
    return x


def check_support(model: FactorGraph, graph: Graph, codes: Codes, advice: str) -> None:
    """Refuse states of probability zero; the message names a site or factor and ends with the advice."""
    if not has_zeros(graph):
        return
    if graph.kind == "causes":
        for x in codes:
            if model.log_potential(x.astype(np.int64)) == -math.inf:
                raise SupportError(f"The start has probability zero; {advice}.")
        return
    arrays: Any = graph.arrays
    c = find_constraints(graph)
    for chain, x in enumerate(codes):
        where = f"The start of chain {chain}" if len(codes) > 1 else "The start"
        bad = np.flatnonzero(np.isneginf(arrays.log_unary[c.offset[:-1] + x]))
        if bad.size:
            i = int(bad[0])
            label = model.labels(i)[int(x[i])]
            raise SupportError(f"{where} is impossible: {model.sites[i]}={label!r} has weight zero; {advice}.")
        broken = broken_factors(c, x)
        if broken.size:
            scope = scope_text(c, int(broken[0]), model)
            raise SupportError(f"{where} is impossible: the factor over {scope} is zero there; {advice}.")


# ---- models of numbers


def start_values(model: Model, graph: Graph, rngs: list[np.random.Generator], start: Any = None) -> list[Floats]:
    """Return the start of every chain of a model with sites that are numbers.

    By default it is a random place of positive density; otherwise a mapping site -> value (or state label) for every
    site, or numbers (state codes) of shape (n,) or (chains, n).
    """
    if start is None or (isinstance(start, str) and start in ("auto", "random")):
        return [_look_for_start(model, graph, rng) for rng in rngs]
    given = _read_values(model, start) if isinstance(start, Mapping) else _read_places(model, len(rngs), start)
    _check_domains(model, given)
    for row in given:
        if _density_at(model, graph, row) == -math.inf:
            raise SupportError("The start has density zero; change it or leave it out.")
    return [x.copy() for x in np.broadcast_to(given, (len(rngs), model.n_sites))]


def _density_at(model: Model, graph: Graph, x: Floats) -> float:
    """Return the log-density at a place; refuse NaN and plus infinity."""
    from gibbsite.graphs.functions.densities import value_once
    from gibbsite.graphs.functions.failure import cause_at, cause_text

    value = value_once(graph.arrays, x)
    if math.isnan(value) or value == math.inf:
        said = "NaN" if math.isnan(value) else "infinite"
        raised = cause_at(graph, x)
        raise ModelError(
            f"The log-density is {said} at {model.place_text(x)}; it must be a number or -inf.{cause_text(raised)}"
        ) from raised
    return value


def _look_for_start(model: Model, graph: Graph, rng: np.random.Generator) -> Floats:
    for _ in range(_PLACES):
        x = model.draw_start(rng)
        if _density_at(model, graph, x) > -math.inf:
            return x
    raise SupportError(
        f"No place of positive density was found among {_PLACES} random ones; give one as start=, or give bounds."
    )


def _read_values(model: Model, start: Mapping[Any, Any]) -> Floats:
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


def _read_places(model: Model, chains: int, start: Any) -> Floats:
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
