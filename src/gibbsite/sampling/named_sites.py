"""The sites, pairs and sets of sites that recorders name, as positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import is_iterable
from gibbsite._common.arrays import Ints, Ints32
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.models import FactorGraph

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import Model
    from gibbsite.sampling.record import Marginals


def read_sets(model: Model, sets: Any) -> list[Ints32]:
    """Return the sets of sites that a Joint recorder names."""
    found: list[Ints32] = []
    for members in _listed(sets, "Joint takes a list of sets of sites", "gs.recorders.Joint([('A', 'B')])"):
        named = _listed(members, "A set of a Joint recorder is a tuple of sites", "gs.recorders.Joint([('A', 'B')])")
        codes = np.array([model.index(site) for site in named], np.int32)
        if len(set(codes.tolist())) != codes.size or not codes.size:
            raise ArgumentError(f"A set of a Joint recorder must name sites, each once, got {named}.")
        found.append(codes)
    return found


def read_chosen_sites(model: Model, graph: Graph, marginals: Marginals) -> list[Ints32]:
    """Return the chosen sites as sets of one site each."""
    if marginals.rao_blackwell:
        raise ArgumentError("Marginals of chosen sites are counted from draws; leave rao_blackwell or sites out.")
    if not graph.discrete:
        raise IncompatibleError(
            "Marginals of chosen sites are of states, and some sites are numbers; record gs.Draws(sites)."
        )
    found = read_sites(model, marginals.sites, "Marginals")
    if not found.size:
        raise ArgumentError("Marginals(sites=[]) names no site; name some, or leave sites out.")
    return list(found[:, None])


def _listed(value: Any, rule: str, example: str) -> list[Any]:
    """Return the items of a list; a word is one item, not a list of letters."""
    if isinstance(value, str) or not is_iterable(value):
        raise ArgumentError(f"{rule}, such as {example}, got {value!r}.")
    return list(value)


def read_pairs(model: Model, pairs: Any) -> Ints32:
    """Return pairs of sites, given by name or position, or as "edges", as positions (m, 2)."""
    if isinstance(pairs, str):
        if pairs != "edges":
            raise ArgumentError(f"PairMoments takes 'edges' or pairs of sites, not {pairs!r}.")
        if not isinstance(model, FactorGraph):
            raise ArgumentError(
                f"Edges of a {type(model).__name__} are not listed; name pairs: PairMoments([('a', 'b')])."
            )
        groups = [g.scopes for g in model.groups if g.arity == 2]
        return np.concatenate([np.zeros((0, 2), np.int32), *groups])
    if isinstance(pairs, np.ndarray) and pairs.dtype.kind in "iu":
        found = np.asarray(pairs, np.int32)
        outside = found.size and (found.min() < 0 or found.max() >= model.n_sites)
    else:
        example = "gs.recorders.PairMoments([('A', 'B')])"
        named = [
            [model.index(site) for site in _listed(pair, "A pair is a tuple of two sites", example)]
            for pair in _listed(pairs, "PairMoments takes a list of pairs of sites", example)
        ]
        even = all(len(pair) == 2 for pair in named)
        found = np.array(named if even else [], np.int32)
        outside = False
    if found.ndim != 2 or found.shape[1] != 2 or outside or (found[:, 0] == found[:, 1]).any():
        raise ArgumentError(f"PairMoments needs pairs of two different sites of the model, got {pairs!r}.")
    return found


def read_sites(model: Model, sites: Sequence[str | int] | None, what: str = "Draws") -> Ints32:
    """Return the sites that a recorder names, each once; None stands for all."""
    if sites is None:
        return np.arange(model.n_sites, dtype=np.int32)
    named = _listed(sites, f"{what} takes a list of sites", f"gs.{what}(sites=['A'])")
    found = np.array([model.index(site) for site in named], np.int32)
    if len(set(found.tolist())) < found.size:
        raise ArgumentError(f"A {what} recorder must name each site once, got {named}.")
    return found


def find_strides(start: Ints, member: Ints32, cards: Ints32) -> tuple[Ints, Ints]:
    """Row-major strides of the members of each set, and the number of configurations."""
    stride = np.ones(member.size, np.int64)
    size = np.ones(start.size - 1, np.int64)
    width = np.diff(start)
    for position in range(int(width.max(initial=0)) - 1, -1, -1):
        has = np.flatnonzero(width > position)
        at = start[has] + position
        stride[at] = size[has]
        size[has] *= cards[member[at]]
    if (size > 1 << 16).any():
        raise ArgumentError("A recorded set has more than 65536 configurations; record smaller sets.")
    return stride, size
