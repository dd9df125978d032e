"""Who depends on whom: ancestors, descendants, and separation in a directed graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def children_of(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the children of every node.

    Examples
    --------
    >>> children_of({"a": [], "b": ["a"]})
    {'a': ['b'], 'b': []}
    """
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, each in parents.items():
        for parent in each:
            children[parent].append(name)
    return children


def reach(names: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the nodes that one comes to from some nodes, these included.

    Examples
    --------
    >>> sorted(reach(["b"], {"a": [], "b": ["a"], "c": ["b"]}))
    ['a', 'b']
    """
    waiting, found = list(names), set(names)
    while waiting:
        for name in following[waiting.pop()]:
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def connected(parents: Mapping[str, Sequence[str]], start: Iterable[str], given: Iterable[str]) -> set[str]:
    """Return the nodes that are not d-separated from the nodes of ``start`` by those that are ``given``.

    A path goes on at a node that is not given, unless both of its edges point there; there it goes on only if the node
    or one of its descendants is given (Bayes ball, Shachter 1998).

    Examples
    --------
    >>> collider = {"a": [], "b": [], "c": ["a", "b"]}
    >>> sorted(connected(collider, ["a"], [])), sorted(connected(collider, ["a"], ["c"]))
    (['a', 'c'], ['a', 'b'])
    """
    children, seen = children_of(parents), set(given)
    opening = reach(seen, parents)  # given nodes and their ancestors
    waiting = [(name, "child") for name in start]  # where the ball comes from
    visited: set[tuple[str, str]] = set()
    found: set[str] = set()
    while waiting:
        step = waiting.pop()
        if step in visited:
            continue
        visited.add(step)
        name, origin = step
        if name not in seen:
            found.add(name)
        if origin == "child" and name not in seen:
            waiting += [(parent, "child") for parent in parents[name]]
            waiting += [(child, "parent") for child in children[name]]
        elif origin == "parent":
            if name not in seen:
                waiting += [(child, "parent") for child in children[name]]
            if name in opening:
                waiting += [(parent, "child") for parent in parents[name]]
    return found
