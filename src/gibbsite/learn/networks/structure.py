"""Structures of networks: the parents of each site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gibbsite._common.arguments import is_iterable
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models import BayesianNetwork, FactorGraph
from gibbsite.models.domain import Label

#: The parents of each site, by name.
Parents = dict[str, tuple[str, ...]]


def read_structure(structure: Any) -> tuple[Parents, dict[str, tuple[Label, ...]]]:
    """Return the parents of each site, and the states of sites where they are known.

    A structure is a mapping of sites to their parents, a list of edges (parent, child), a network or a directed model,
    or what has ``parents`` as a mapping.

    Examples
    --------
    >>> read_structure([("rain", "grass")])
    ({'rain': (), 'grass': ('rain',)}, {})
    """
    if isinstance(structure, BayesianNetwork):
        names = structure.nodes
        return {name: structure.parents(name) for name in names}, {name: structure.states(name) for name in names}
    if isinstance(structure, FactorGraph):
        return _of_model(structure), {name: structure.labels(k) for k, name in enumerate(structure.sites)}
    structure = getattr(structure, "parents", structure)
    if isinstance(structure, Mapping):
        parents = {str(child): _names(child, given) for child, given in structure.items()}
    else:
        parents = _of_edges(structure)
    for each in list(parents.values()):
        for name in each:
            parents.setdefault(name, ())
    check_acyclic(parents)
    return parents, {}


def _names(child: Any, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not is_iterable(given):
        raise ArgumentError(f"the parents of {child!r} must be a list of names, got {given!r}.")
    names = tuple(str(name) for name in given)
    if len(set(names)) < len(names) or str(child) in names:
        raise ArgumentError(f"the parents of {child!r} must be different other sites, got {', '.join(names)}.")
    return names


def _of_edges(structure: Any) -> Parents:
    parents: Parents = {}
    for parent, child in read_edges("structure", structure):
        parents.setdefault(parent, ())
        parents[child] = (*parents.get(child, ()), parent)
    if not parents and isinstance(structure, str):
        raise ArgumentError(
            f"{argument('structure')} must be a network, a mapping of sites to parents, or a list of edges "
            f"(parent, child), got {structure!r}."
        )
    return {child: _names(child, dict.fromkeys(each)) for child, each in parents.items()}


def read_edges(name: str, edges: Any, known: Sequence[str] | None = None) -> list[tuple[str, str]]:
    """Return edges (parent, child) by name; all sites must be known, if these are given."""
    if isinstance(edges, str) or not is_iterable(edges):
        raise ArgumentError(f"{argument(name)} must be a list of edges (parent, child), got {edges!r}.")
    found = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ArgumentError(f"{argument(name)} must be a list of edges (parent, child), and one is {edge!r}.")
        pair = str(edge[0]), str(edge[1])
        for end in pair:
            if known is not None and end not in known:
                raise ArgumentError(unknown("the site", end, known))
        if pair[0] == pair[1]:
            raise ArgumentError(f"{argument(name)} has an edge from {pair[0]!r} to itself.")
        found.append(pair)
    return found


def _of_model(model: FactorGraph) -> Parents:
    """Return the parents in a directed model."""
    names, parents = model.sites, {}
    for group in model.groups:
        if not group.directed:
            continue
        for scope in group.scopes.tolist():
            parents[names[scope[-1]]] = tuple(names[i] for i in scope[:-1])
    lost = [name for name in names if name not in parents]
    if lost:
        raise ModelError(
            f"the site {lost[0]!r} has no conditional table; a structure is a Bayesian network in which each site has "
            "one, or a mapping of sites to parents."
        )
    return {name: parents[name] for name in names}


def check_acyclic(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the sites, parents before children; refuse cycles."""
    done: dict[str, None] = {}
    missing = {name: len(each) for name, each in parents.items()}
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, each in parents.items():
        for parent in each:
            children[parent].append(name)
    ready = [name for name, count in missing.items() if not count]
    for name in ready:  # the list grows during the loop
        done[name] = None
        for child in children[name]:
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    if len(done) < len(parents):
        site = next(name for name in parents if name not in done)
        path: dict[str, None] = {}
        while site not in path:
            path[site] = None
            site = next(parent for parent in parents[site] if parent not in done)
        walked = list(path)
        cycle = walked[walked.index(site) :][::-1]
        raise ModelError(f"the edges form a cycle, {' -> '.join([*cycle, cycle[0]])}; leave one of them out.")
    return ready
