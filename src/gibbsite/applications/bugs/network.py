"""Who depends on whom: the nodes that a change of an unknown reaches, found for all unknowns at once.

A *node* is an instance of a rule. The nodes that depend on an unknown are its deterministic descendants, and the
stochastic nodes that depend on it directly or through these.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Ints
from gibbsite.applications.bugs.assembly import Assembly
from gibbsite.applications.bugs.compiled.forward import DRAWN
from gibbsite.applications.bugs.elements import check_defined, element_of
from gibbsite.applications.bugs.nodes import Compiled
from gibbsite.applications.bugs.tables import BOUNDED, KIND, LOGICAL, MATRIX, UNBOUNDED
from gibbsite.errors import ModelError


class Reach(NamedTuple):
    """Segments of rules that units reach: deterministic ones first, in the order in which they are computed.

    Attributes
    ----------
    begin, middle, end : int arrays (units,)
        Segments ``begin`` to ``middle`` of a unit are deterministic, those from ``middle`` to ``end`` stochastic.
    segment : int array (segments, 4)
        Rule, whether instances are listed, first instance or start of the list, number of instances.
    listed : int array
        The lists.
    unit, node : int arrays
        The same as pairs, in the order of the segments.
    """

    begin: Ints
    middle: Ints
    end: Ints
    segment: Ints
    listed: Array
    unit: Ints
    node: Ints


class Network:
    """The nodes of a model and their dependence.

    Attributes
    ----------
    start : float array
        Values of all places, NaN where they are unknown.
    owner, instance : int arrays
        For each place, the rule and the instance that define it, or -1.
    first : int array (rules + 1,)
        Number of the first node of each rule.
    rule_of : int array (nodes,)
        The rule of each node.
    level : int array (nodes,)
        Nodes of a level depend on nodes of lower levels only.
    readers : list of sets
        For each rule, the rules that read what it defines.
    unknown : bool array
        Places of stochastic nodes that have no value.
    forward : bool array
        Those of them on which nothing observed depends, and which are drawn from their distributions. The others are
        updated as if these were not there.
    """

    def __init__(self, assembly: Assembly, start: Floats) -> None:
        self.assembly, self.start = assembly, start
        size, compiled = start.size, assembly.compiled
        self.owner = np.full(size, -1, np.int64)
        self.instance = np.full(size, -1, np.int64)
        self.first = np.concatenate([[0], np.cumsum([each.rule.n for each in compiled], dtype=np.int64)])
        stochastic = np.zeros(len(compiled), np.bool_)
        for number, each in enumerate(compiled):
            stochastic[number] = each.row[KIND] not in (LOGICAL, MATRIX)
            self._own(number)
        self.stochastic = stochastic
        check_defined(assembly, self.owner, start)
        self.unknown: Bools = np.isnan(start) & (self.owner >= 0)
        self.unknown[self.unknown] = stochastic[self.owner[self.unknown]]
        self.rule_of = np.repeat(np.arange(len(compiled)), np.diff(self.first))
        self._connect()
        self._order()
        self._find_forward()

    def _own(self, number: int) -> None:
        """Note which places a rule defines; refuse those that are defined twice or are data."""
        each = self.assembly.compiled[number]
        places = each.targets.ravel()
        instance = np.repeat(np.arange(each.rule.n), each.targets.shape[1])
        relation = each.rule.relation
        twice = places[self.owner[places] >= 0]
        if not twice.size:
            ordered = np.sort(places)
            twice = ordered[1:][ordered[1:] == ordered[:-1]]
        if twice.size:
            element = element_of(self.assembly, int(twice[0]))[1]
            other = self.owner[twice[0]]
            where = self.assembly.compiled[other].rule.relation.at if other >= 0 else relation.at
            raise ModelError(
                f"{str(relation.at).capitalize()}: {element} is defined twice; the other definition is at {where}."
            )
        if each.row[KIND] in (LOGICAL, MATRIX):
            given = places[~np.isnan(self.start[places])]
            if given.size:
                element = element_of(self.assembly, int(given[0]))[1]
                raise ModelError(
                    f"{str(relation.at).capitalize()}: {element} is computed by a relation and is in the data, too; "
                    "remove one of them."
                )
        self.owner[places] = number
        self.instance[places] = instance

    def _connect(self) -> None:
        """Find for each place the nodes that read it."""
        place_parts, node_parts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        varies = np.isnan(self.start)
        self.readers: list[set[int]] = [set() for _ in self.assembly.compiled]
        for number, each in enumerate(self.assembly.compiled):
            nodes = self.first[number] + np.arange(each.rule.n)
            for places in each.parents:
                wide = np.broadcast_to(places, (each.rule.n, places.shape[1]))
                moving = (wide >= 0) & varies[np.maximum(wide, 0)]
                if moving.any():
                    for owner in distinct(self.owner[wide[moving]]).tolist():
                        self.readers[owner].add(number)
                    place_parts.append(wide[moving])
                    node_parts.append(np.broadcast_to(nodes[:, None], wide.shape)[moving])
        places, nodes = np.concatenate(place_parts), np.concatenate(node_parts)
        order = np.argsort(places, kind="stable")
        self.child = nodes[order]
        self.child_start = np.searchsorted(places[order], np.arange(self.start.size + 1))

    def dependents(self, rule: int) -> list[int]:
        """Return the rules that depend on what a rule defines, also through deterministic ones."""
        found: set[int] = set()
        waiting = [rule]
        while waiting:
            for reader in self.readers[waiting.pop()] - found:
                found.add(reader)
                if not self.stochastic[reader]:
                    waiting.append(reader)
        return sorted(found)

    def children(self, places: Ints) -> tuple[Ints, Ints]:
        """Return nodes that read places, and for each of them which of the places it is."""
        begin, end = self.child_start[places], self.child_start[places + 1]
        return self.child[ranges(begin, end - begin)], np.repeat(np.arange(places.size), end - begin)

    def targets(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return the places that nodes define, and for each of them which of the nodes it is."""
        parts, of = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        rules = self.rule_of[nodes]
        for rule in distinct(rules).tolist():
            chosen = np.flatnonzero(rules == rule)
            places = self.assembly.compiled[rule].targets[nodes[chosen] - self.first[rule]]
            parts.append(places.ravel())
            of.append(np.repeat(chosen, places.shape[1]))
        return np.concatenate(parts), np.concatenate(of)

    def _order(self) -> None:
        """Find levels of all nodes; refuse cycles."""
        total = int(self.first[-1])
        waiting = np.zeros(total, np.int64)
        defined = np.flatnonzero(np.isnan(self.start))
        readers, _ = self.children(defined)
        np.add.at(waiting, readers, 1)
        self.level = np.zeros(total, np.int64)
        ready, level, done = np.flatnonzero(waiting == 0), 0, 0
        while ready.size:
            self.level[ready] = level
            done += ready.size
            places, _ = self.targets(ready)
            places = places[np.isnan(self.start[places])]
            readers, _ = self.children(places)
            np.subtract.at(waiting, readers, 1)
            touched = distinct(readers)
            ready = touched[waiting[touched] == 0]
            level += 1
        if done < total:
            stuck = int(np.flatnonzero(waiting > 0)[0])
            rule = int(self.rule_of[stuck])
            places = self.assembly.compiled[rule].targets[stuck - self.first[rule]]
            relation = self.assembly.compiled[rule].rule.relation
            raise ModelError(
                f"{str(relation.at).capitalize()}: {element_of(self.assembly, int(places[0]))[1]} depends on itself, "
                "directly or through other relations."
            )

    def _find_forward(self) -> None:
        """Find the nodes that are drawn from their distributions because nothing observed depends on them."""
        drawn = np.array([_is_drawn(each) for each in self.assembly.compiled], np.bool_)
        unknown = np.flatnonzero(self.unknown)
        node = self.node(unknown)
        needed = self.stochastic[self.rule_of]
        candidates = node[drawn[self.owner[unknown]]]
        needed[candidates] = False
        if candidates.size:
            varies = np.flatnonzero(np.isnan(self.start) & (self.owner >= 0))
            children, of = self.children(varies)
            parents = self.node(varies)[of]
            found = -1
            while found != (found := int(needed.sum())):
                needed[parents[needed[children]]] = True
        self.needed: Bools = needed
        self.forward: Bools = np.zeros(self.start.size, np.bool_)
        self.forward[unknown] = ~needed[node]

    def reach(self, places: Ints, unit: Ints, n_units: int) -> Reach:
        """Return what each unit reaches, without what is drawn forward; ``unit`` is the unit of each place."""
        total = np.int64(self.first[-1]) + 1
        nodes, of = self.children(places)
        frontier = distinct(unit[of] * total + nodes)
        seen = frontier
        while frontier.size:
            units, nodes = np.divmod(frontier, total)
            passing = ~self.stochastic[self.rule_of[nodes]]
            units, nodes = units[passing], nodes[passing]
            if not nodes.size:
                break
            reached, of = self.targets(nodes)
            more, origin = self.children(reached)
            frontier = distinct(units[of][origin] * total + more)
            if seen.size and frontier.size:
                near = np.minimum(np.searchsorted(seen, frontier), seen.size - 1)
                frontier = frontier[seen[near] != frontier]
            if frontier.size:
                seen = distinct(np.concatenate([seen, frontier]))
        units, nodes = np.divmod(seen, total)
        kept = self.needed[nodes] | ~self.stochastic[self.rule_of[nodes]]
        return self.segments(units[kept], nodes[kept], n_units)

    def segments(self, units: Ints, nodes: Ints, n_units: int) -> Reach:
        """Group pairs of units and nodes into segments."""
        rules = self.rule_of[nodes]
        last = self.stochastic[rules]
        level = np.where(last, 0, self.level[nodes])
        order = np.lexsort((nodes, rules, level, last, units))
        units, nodes, rules = units[order], nodes[order], rules[order]
        last, level = last[order], level[order]
        keys = (units, last, level, rules)
        new = np.ones(units.size, np.bool_)
        if units.size:
            new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        begin = np.flatnonzero(new)
        count = np.diff(np.append(begin, units.size))
        instance = nodes - self.first[rules]
        gapless = instance[begin + count - 1] - instance[begin] == count - 1
        in_list = np.repeat(~gapless, count)
        place = np.cumsum(np.concatenate([[0], in_list]))[:-1]
        segment = np.stack(
            [rules[begin], (~gapless).astype(np.int64), np.where(gapless, instance[begin], place[begin]), count], axis=1
        )
        owner = units[begin]
        edges = np.searchsorted(owner, np.arange(n_units + 1))
        ends = edges[1:]
        many = np.bincount(owner[~last[begin]], minlength=n_units)
        return Reach(edges[:-1], edges[:-1] + many, ends, segment, instance[in_list].astype(np.int32), units, nodes)

    def observed(self) -> Ints:
        """Return segments of all stochastic nodes whose values are data."""
        known = self.stochastic[self.rule_of]
        known[self.node(np.flatnonzero(self.unknown))] = False
        return self.gapless(np.flatnonzero(known))

    def node(self, places: Ints) -> Ints:
        """Return the nodes that define places."""
        found: Ints = self.first[self.owner[places]] + self.instance[places]
        return found

    def gapless(self, nodes: Ints) -> Ints:
        """Return segments without lists that hold nodes, which are in ascending order."""
        rules = self.rule_of[nodes]
        begin = np.flatnonzero(np.concatenate([[True], (np.diff(nodes) != 1) | (np.diff(rules) != 0)]))[: nodes.size]
        count = np.diff(np.append(begin, nodes.size))
        first = nodes[begin]
        return np.stack([rules[begin], np.zeros_like(begin), first - self.first[rules[begin]], count], axis=1)

    def everything(self) -> Ints:
        """Return segments that compute all deterministic nodes, in order."""
        nodes = np.flatnonzero(~self.stochastic[self.rule_of])
        found = self.segments(np.zeros(nodes.size, np.int64), nodes, 1)
        rows = found.segment
        listed = rows[:, 1] == 1
        if listed.any():  # of a level, as ranges
            parts = []
            for rule, is_list, first, count in rows.tolist():
                if not is_list:
                    parts.append([rule, 0, first, count])
                    continue
                instances = found.listed[first : first + count].astype(np.int64)
                cuts = np.flatnonzero(np.diff(instances) != 1) + 1
                parts += [[rule, 0, int(part[0]), part.size] for part in np.split(instances, cuts)]
            rows = np.array(parts, np.int64)
        return rows.reshape(-1, 4)


def _is_drawn(compiled: Compiled) -> bool:
    """Whether an element can be drawn from its distribution."""
    distribution = compiled.rule.distribution
    if distribution is None or distribution.value != "s":
        return False
    return distribution.code in DRAWN and compiled.row[BOUNDED] == UNBOUNDED


def distinct(values: Ints) -> Ints:
    """Return the different values in ascending order; for many values faster than hashing them.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values, kind="stable")
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if ordered.size else ordered


def ranges(begin: Ints, count: Ints) -> Ints:
    """Return ``begin[0], begin[0] + 1, ...`` for ``count[0]`` numbers, and so on.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(count)
    if not ends.size or ends[-1] == 0:
        return np.zeros(0, np.int64)
    found: Ints = np.arange(ends[-1]) + np.repeat(begin - (ends - count), count)
    return found
