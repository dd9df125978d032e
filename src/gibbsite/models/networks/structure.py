"""The nodes of a directed graph and who depends on whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import nearest, unknown
from gibbsite.errors import ArgumentError
from gibbsite.models.domain import Label
from gibbsite.models.networks.noisy import Causes
from gibbsite.models.networks.relations import children_of, connected, reach

_MOST_NAMES = 12  # of all nodes, in a message


@dataclass(frozen=True)
class Node:
    """The states of a node, its parents, and its conditional table or what it is made of, None if not known yet."""

    states: tuple[Label, ...]
    parents: tuple[str, ...]
    table: Floats | Causes | None

    def same(self, other: Node) -> bool:
        """Return whether two nodes are equal, up to rounding."""
        if (self.states, self.parents) != (other.states, other.parents):
            return False
        if isinstance(self.table, Causes):
            return self.table.same(other.table)
        if self.table is None or not isinstance(other.table, np.ndarray):
            return self.table is other.table
        return np.allclose(self.table, other.table, rtol=1e-12, atol=0.0)  # models keep logarithms


@checked
class Structure:
    """What a Bayesian network says about its nodes without regard to the numbers in its tables."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes, in the order in which they were added."""
        return tuple(self._nodes)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a parent and its child."""
        return tuple((parent, name) for name, node in self._nodes.items() for parent in node.parents)

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the parents of a node, in the order of its table."""
        return self._node(name).parents

    def children(self, name: str) -> tuple[str, ...]:
        """Return the children of a node."""
        self._node(name)
        return tuple(each for each, node in self._nodes.items() if name in node.parents)

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Return parents, children, and the other parents of the children: given them, no other node matters.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.BayesianNetwork.from_model(gs.example("asia")).markov_blanket("either")
        ('tub', 'lung', 'bronc', 'xray', 'dysp')
        """
        found = {*self.parents(name), *self.children(name)}
        for child in self.children(name):
            found |= {*self._nodes[child].parents}
        return self._ordered(found - {name})

    def ancestors(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Return the ancestors of a node or of several, without these."""
        start = self._names(names)
        return self._ordered(reach(start, self._parents()) - {*start})

    def descendants(self, names: str | Iterable[str]) -> tuple[str, ...]:
        """Return the descendants of a node or of several, without these."""
        start = self._names(names)
        return self._ordered(reach(start, children_of(self._parents())) - {*start})

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Return whether two sets of nodes are independent given a third, whatever the tables are.

        Parameters
        ----------
        a, b, given : str or iterable of str
            A node or several.

        Examples
        --------
        >>> import gibbsite as gs
        >>> asia = gs.BayesianNetwork.from_model(gs.example("asia"))
        >>> asia.d_separated("tub", "lung"), asia.d_separated("tub", "lung", given="xray")
        (True, False)
        """
        first, second, seen = self._names(a), self._names(b), self._names(given)
        for one, other in ((first, second), (first, seen), (second, seen)):
            both = {*one} & {*other}
            if both:
                raise ArgumentError(f"the node {min(both)!r} is in two of the three sets; each is in one of them.")
        return not connected(self._parents(), first, seen) & {*second}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._nodes))

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def _node(self, name: object) -> Node:
        try:
            return self._nodes[name]  # type: ignore[index]
        except (KeyError, TypeError):
            raise self._unknown(name) from None

    def _unknown(self, name: object) -> ArgumentError:
        if len(self._nodes) <= _MOST_NAMES:
            return ArgumentError(unknown("node", name, self._nodes) if self._nodes else f"there is no node {name!r}.")
        near = nearest(name, self._nodes)
        return ArgumentError(f"there is no node {name!r}" + (f"; did you mean {near!r}?" if near else "."))

    def _names(self, given: str | Iterable[str]) -> list[str]:
        names = [given] if isinstance(given, str) else list(given)
        for name in names:
            self._node(name)
        return names

    def _ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        chosen = {*names}
        return tuple(name for name in self._nodes if name in chosen)

    def _parents(self) -> dict[str, tuple[str, ...]]:
        return {name: node.parents for name, node in self._nodes.items()}
