"""Nodes of files that hold Bayesian networks and influence diagrams; the chance nodes become a model.

Such files write names as identifiers, so that other names are numbered when a model is written.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError
from gibbsite.formats.network import MOST_MEMBERS, build_network, read_table
from gibbsite.formats.parsing.text import Source, shortened
from gibbsite.models.domain import MOST_STATES
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.conditionals import Table
from gibbsite.models.networks.noisy import Causes

_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_MADE_ENTRIES = 1 << 22  # most entries of tables that are made from fewer numbers of the file
_MOST_NAMES = 8  # in a message


@dataclass
class Node:
    """A node of a file; ``fill`` makes its table from its parents and itself.

    A table that is ``made`` may have more entries than the file has numbers.
    """

    name: str
    kind: str  # "chance", "decision" or "utility"
    fail: Callable[[str], FormatError]
    states: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    fill: Callable[[list[Node]], Floats | Causes] | None = None
    noisy: bool = False
    made: bool = False

    def check_states(self) -> None:
        """Refuse a node without states, with too many, or with two of the same name."""
        if not self.states:
            raise self.fail(f"the node {self.name!r} has no states.")
        if len(self.states) > MOST_STATES:
            raise self.fail(f"the node {self.name!r} has more than {MOST_STATES:,} states.")
        if len(set(self.states)) < len(self.states):
            raise self.fail(f"the node {self.name!r} has two states of the same name.")


def build_chance_part(source: Source, nodes: dict[str, Node]) -> FactorGraph:
    """Return the model of the chance nodes, and of the decisions that they depend on.

    Such a decision gets equal probabilities. Other decisions and utilities are left out, with a warning.
    """
    chance = [node for node in nodes.values() if node.kind == "chance"]
    if not chance:
        raise source.error("the file has no chance nodes.")
    for node in chance:
        for name in node.parents:
            if name not in nodes:
                raise node.fail(f"the parent {name!r} of the node {node.name!r} is not a node of this file.")
            if nodes[name].kind == "utility":
                raise node.fail(f"the parent {name!r} of the chance node {node.name!r} is a utility.")
        node.check_states()
    needed = {name for node in chance for name in node.parents if nodes[name].kind == "decision"}
    kept = {name: node for name, node in nodes.items() if node.kind == "chance" or name in needed}
    for name in needed:
        nodes[name].check_states()
    number = {name: k for k, name in enumerate(kept)}
    spare = _MADE_ENTRIES
    tables: list[tuple[tuple[int, ...], Floats]] = []
    noisy: list[tuple[tuple[int, ...], Causes]] = []
    for node in kept.values():
        if node.kind == "decision":
            tables.append(((number[node.name],), np.full(len(node.states), 1.0 / len(node.states))))
            continue
        members = [*(kept[name] for name in node.parents), node]
        scope = tuple(number[member.name] for member in members)
        if len(set(scope)) < len(scope):
            raise node.fail(f"the node {node.name!r} has a parent twice, or itself as a parent.")
        if node.noisy and node.fill is not None:
            causes = node.fill(members)
            assert isinstance(causes, Causes)
            noisy.append((scope, causes))
            continue
        if len(scope) > MOST_MEMBERS:
            raise node.fail(f"expected at most {MOST_MEMBERS - 1} parents.")
        shape = [len(member.states) for member in members]
        spare -= math.prod(shape) if node.made else 0
        if spare < 0:
            raise node.fail(f"the table of the node {node.name!r} has {math.prod(shape)} entries, which is too large.")
        if node.fill is None:
            raise node.fail(f"the node {node.name!r} has no probabilities.")
        filled = node.fill(members)
        assert not isinstance(filled, Causes)
        tables.append((scope, read_table(filled, shape, node.fail)))

    def fail(message: str, name: str | None) -> FormatError:
        return source.error(message) if name is None else nodes[name].fail(message)

    model = build_network({name: node.states for name, node in kept.items()}, tables, fail, noisy)
    _tell(source, "have no probabilities and are left out", (name for name in nodes if name not in kept))
    _tell(source, "are decisions and get equal probabilities; observe them", sorted(needed, key=list(nodes).index))
    return model


def _tell(source: Source, what: str, names: Iterable[str]) -> None:
    listed = list(names)
    if listed:
        text = ", ".join(listed[:_MOST_NAMES]) + (", ..." if len(listed) > _MOST_NAMES else "")
        warn_user(escaped(shortened(f"{source.name}: the nodes {text} {what}.")))


# ---- writing


def node_names(model: FactorGraph) -> list[str]:
    """Return the names of the sites, or numbered ones if a name is no identifier."""
    return _identifiers(model.sites, "Node")


def are_identifiers(names: Iterable[object]) -> bool:
    """Return whether all names consist of letters, digits and underscores, and do not begin with a digit."""
    return all(isinstance(name, str) and _IDENTIFIER.fullmatch(name) for name in names)


def state_names(model: FactorGraph) -> list[list[str]]:
    """Return the states of each site, numbered ones where a name is no identifier."""
    return [_identifiers(model.labels(k), "State") for k in range(model.n_sites)]


def _identifiers(names: Sequence[object], word: str) -> list[str]:
    return [str(name) for name in names] if are_identifiers(names) else [f"{word}{k}" for k in range(len(names))]


def keeps_sites(model: FactorGraph) -> bool:
    """Return whether all names of sites are identifiers."""
    return are_identifiers(model.sites)


def keeps_identifiers(model: FactorGraph) -> bool:
    """Return whether all names of states are identifiers."""
    return all(are_identifiers(labels) for labels in model.domains.kinds if isinstance(labels, tuple))


def parents_first(tables: Sequence[Table]) -> list[Table]:
    """Return the tables of a network so that each one comes after those of its parents, otherwise in order."""
    children: list[list[int]] = [[] for _ in tables]
    for table in tables:
        for parent in table.scope[:-1]:
            children[parent].append(table.scope[-1])
    missing = [len(table.scope) - 1 for table in tables]
    ready = [site for site, count in enumerate(missing) if count == 0]
    found = []
    while ready:
        site = heapq.heappop(ready)
        found.append(tables[site])
        for child in children[site]:
            missing[child] -= 1
            if missing[child] == 0:
                heapq.heappush(ready, child)
    return found
