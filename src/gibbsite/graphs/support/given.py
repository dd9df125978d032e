"""Starts given by the user: read them, and refuse those of probability zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Codes
from gibbsite.errors import ArgumentError, SupportError
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.support.possible import find_constraints, has_zeros, scope_text

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph


def read_start(model: FactorGraph, graph: Graph, chains: int, start: Any) -> Codes:
    """Return the codes of a given start, of shape (1, n) if it is one for all chains."""
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
                    f"The start has {site}={label!r}, but the evidence says {evidence[site]!r}; "
                    "leave observed sites out of the start."
                )
            continue
        x[model.index(site)] = model.code(site, label)
    if (x < 0).any():
        missing = model.sites[int(np.argmax(x < 0))]
        raise ArgumentError(f"The start has no state for the site {missing!r}; name every free site.")
    return x


def check_support(model: FactorGraph, graph: Graph, codes: Codes, advice: str) -> None:
    """Refuse states of probability zero; the message names a site or factor, and ends in the advice."""
    if not has_zeros(graph):
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
        if c.table.size:
            entries = c.table + np.add.reduceat(c.stride * x[c.member], c.member_start[:-1])
            broken = np.flatnonzero(~c.allowed[entries])
            if broken.size:
                scope = scope_text(c, int(broken[0]), model)
                raise SupportError(f"{where} is impossible: the factor over {scope} is zero there; {advice}.")
