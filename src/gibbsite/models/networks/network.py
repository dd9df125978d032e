"""Bayesian networks that are written node by node, and can be changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_list, checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.html import card, grid
from gibbsite._common.loading import import_downwards
from gibbsite._common.wording import nearest
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.models.domain import Domains, Label, make_domains, read_labels
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.acyclic import find_cycle
from gibbsite.models.networks.building import build_model, read_nodes
from gibbsite.models.networks.noisy import Causes, Noisy, describe_causes, full_table
from gibbsite.models.networks.reading import read_probabilities
from gibbsite.models.networks.relations import reach
from gibbsite.models.networks.structure import Node, Structure
from gibbsite.models.networks.table import ConditionalTable

_MOST_SHOWN = 30  # nodes of a page


@checked
class BayesianNetwork(Structure):
    """A Bayesian network, written node by node: parents first, each node with its conditional table.

    Every function that takes a model takes a network, and names its nodes as sites. A network can be changed; models
    made from it before do not change.

    See Also
    --------
    FactorGraph : Models of any factors, which cannot be changed.
    read_model : Read a model from a file.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
    >>> net.add("sprinkler", ["off", "on"], given=["rain"], table={"no": [0.6, 0.4], "yes": [0.99, 0.01]})
    >>> net.add(
    ...     "grass",
    ...     ["dry", "wet"],
    ...     given=["rain", "sprinkler"],
    ...     table=lambda rain, sprinkler: "wet" if rain == "yes" or sprinkler == "on" else "dry",
    ... )
    >>> net
    BayesianNetwork(3 nodes, 3 edges)
    >>> answer = gs.solve_exact(net.observe({"grass": "wet"}))
    >>> print(round(answer.marginals["rain"]["yes"], 4))
    0.3846
    """

    __slots__ = ("__weakref__", "_model")

    def __init__(self) -> None:
        super().__init__()
        self._model: FactorGraph | None = None

    # ---- writing

    def add(self, name: str, states: Sequence[Label] | int, given: Sequence[str] = (), table: Any = None) -> None:
        """Add a node.

        Parameters
        ----------
        name : str
            Its name.
        states : sequence of labels or int
            Its states, or how many they are; then they are called 0, 1, ....
        given : sequence of str
            Its parents, which are nodes of the network.
        table : optional
            The probabilities of its states given those of the parents; each row sums to one. One of

            * a mapping from the states of the parents, a tuple in the order of ``given`` (or the state of a single
              parent), to rows; a row is a list in the order of ``states``, or a mapping from states to probabilities;
            * an array of shape (states of each parent ..., states of the node), or of two dimensions with a row for
              each combination of states of the parents, the last parent changing fastest;
            * a data frame: long, with a column for each parent, one for the node and the column "probability", or
              wide, with a column for each parent and each state of the node;
            * a function of the states of the parents, in the order of ``given``, that returns a row, or the state of a
              node that is determined by its parents;
            * `gs.factors.NoisyOr`, `NoisyMax` or `Logistic`, which have numbers for each parent alone, and make a node
              with many parents possible; without ``given``, the parents are those that they name;
            * a table of another network.

            Without a table, the network has no model before `set_table`.

        Raises
        ------
        ModelError
            For an unknown parent, a row that is missing or does not sum to one, a negative number and so on; the
            message names the row by the states of the parents.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
        >>> net.add("grass", ["dry", "wet"], given=["rain"], table={"no": [0.9, 0.1], "yes": [0.2, 0.7]})
        Traceback (most recent call last):
        ...
        gibbsite.errors.ModelError: the table of 'grass' sums to 0.9 at rain='yes'; each row sums to one.
        """
        name = str(name)
        if name in self._nodes:
            raise ModelError(f"the node {name!r} is already in the network; change its table with set_table.")
        parents = self._read_parents(name, _parents_in(table) if not len(given) else given)
        node = Node(read_labels(states, f"node {name!r}"), parents, None)
        self._put(name, node if table is None else replace(node, table=self._read_table(name, node, table)))

    def set_table(self, name: str, table: Any, given: Sequence[str] | None = None) -> None:
        """Give a node another table.

        Parameters
        ----------
        name : str
            The node.
        table
            As in `add`.
        given : sequence of str, optional
            Its parents from now on; by default they stay.

        Raises
        ------
        ModelError
            As in `add`, and for parents that make the node its own ancestor, with the nodes of the cycle.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
        >>> net.set_table("rain", {"yes": 0.3, "no": 0.7})
        >>> net.table("rain")
        rain   no  yes
              0.7  0.3
        """
        node = self._node(name)
        if given is None and isinstance(table, Noisy):
            given = _parents_in(table) if {*table.effects} != {*node.parents} else None
        if given is not None:
            parents = self._read_parents(name, given)
            names = list(self._nodes)
            number = {each: k for k, each in enumerate(names)}
            edges = [parents if each == name else self._nodes[each].parents for each in names]
            cycle = find_cycle([[number[parent] for parent in each] for each in edges])
            if cycle is not None:
                path = " -> ".join(repr(names[k]) for k in [*cycle, cycle[0]])
                raise ModelError(f"these parents of {name!r} make a cycle, {path}; no node is its own ancestor.")
            node = replace(node, parents=parents, table=None)
        self._put(name, replace(node, table=self._read_table(name, node, table)))

    def remove(self, name: str) -> None:
        """Remove a node that has no children.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("rain", 2, table=[0.8, 0.2])
        >>> net.remove("rain")
        >>> len(net)
        0
        """
        self._node(name)
        children = self.children(name)
        if children:
            raise ModelError(
                f"the node {name!r} has the children {_listed(children)}; remove them first, or give them other "
                "parents."
            )
        del self._nodes[name]
        self._model = None

    def rename(self, name: str, new: str) -> None:
        """Give a node another name; it keeps its place and its children.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("rain", 2, table=[0.8, 0.2])
        >>> net.rename("rain", "shower")
        >>> net.nodes
        ('shower',)
        """
        self._node(name)
        if new in self._nodes and new != name:
            raise ModelError(f"the node {new!r} is already in the network.")

        def other(each: str) -> str:
            return str(new) if each == name else each

        self._nodes = {
            other(each): replace(node, parents=tuple(map(other, node.parents))) for each, node in self._nodes.items()
        }
        self._model = None

    # ---- what is in it

    def states(self, name: str) -> tuple[Label, ...]:
        """Return the states of a node."""
        return self._node(name).states

    def table(self, name: str) -> ConditionalTable:
        """Return the conditional table of a node, with the names of parents and states.

        Examples
        --------
        >>> import gibbsite as gs
        >>> asia = gs.BayesianNetwork.from_model(gs.example("asia"))
        >>> asia.table("lung")
        lung |  smoke   yes    no
                yes     0.1   0.9
                no     0.01  0.99
        """
        node = self._node(name)
        if node.table is None:
            raise ModelError(f"the node {name!r} has no table yet; give it one with set_table.")
        states = tuple(self._nodes[parent].states for parent in node.parents)
        made = node.table
        values = full_table(made, self._domains(name, node)) if isinstance(made, Causes) else made
        return ConditionalTable(name, node.states, node.parents, states, values)

    def noisy(self, name: str) -> Noisy | None:
        """Return what a noisy node is made of, None for a node with a table.

        Examples
        --------
        >>> import gibbsite as gs
        >>> net = gs.BayesianNetwork()
        >>> net.add("flu", ["no", "yes"], table=[0.9, 0.1])
        >>> net.add("fever", ["no", "yes"], table=gs.factors.NoisyOr({"flu": 0.7}, leak=0.1))
        >>> net.noisy("fever")
        NoisyOr(causes={'flu': {'no': 0.0, 'yes': 0.7}}, leak=0.1, descending=False)
        """
        node = self._node(name)
        return describe_causes(node.table, self._domains(name, node)) if isinstance(node.table, Causes) else None

    def has_table(self, name: str) -> bool:
        """Return whether a node has a table already."""
        return self._node(name).table is not None

    # ---- other networks

    def copy(self) -> BayesianNetwork:
        """Return a network with the same nodes."""
        return _restore(dict(self._nodes))

    def subnetwork(self, names: str | Iterable[str]) -> BayesianNetwork:
        """Return the network of some nodes and all of their ancestors.

        What is left out has no influence on the nodes that are kept, as long as it is not observed.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.BayesianNetwork.from_model(gs.example("asia")).subnetwork("lung").nodes
        ('smoke', 'lung')
        """
        kept = self._ordered(reach(self._names(names), self._parents()))
        return _restore({name: self._nodes[name] for name in kept})

    def intervene(self, values: Mapping[str, Any]) -> BayesianNetwork:
        """Return the network after an intervention: these nodes are set from outside and do not depend on parents.

        Parameters
        ----------
        values : mapping
            Node -> the state to which it is set, or a row of probabilities of its states.

        Examples
        --------
        >>> import gibbsite as gs
        >>> asia = gs.BayesianNetwork.from_model(gs.example("asia"))
        >>> forced = asia.intervene({"lung": "yes"})
        >>> forced.parents("lung"), round(gs.solve_exact(forced).marginals["smoke"]["yes"], 9)
        ((), 0.5)
        """
        found = self.copy()
        for name, value in values.items():
            states = self._node(name).states
            row: Any = value
            if not isinstance(value, Mapping | Sequence | np.ndarray) or isinstance(value, str):
                row = np.zeros(len(states))
                row[make_domains({name: states}).code(0, value)] = 1.0
            found.set_table(name, row, given=())
        return found

    # ---- models and files

    def to_model(self) -> FactorGraph:
        """Return the model: a site for each node, and its conditional table as a factor.

        The model is made at the first call, and again after a change. All functions that take a model call this.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("rain", ["no", "yes"], table=[0.8, 0.2])
        >>> net.to_model()
        FactorGraph(1 site of 2 states, 1 factor in 1 group)
        """
        if self._model is None:
            without = [name for name, node in self._nodes.items() if node.table is None]
            if without:
                raise ModelError(f"the nodes {_listed(without)} have no table yet; give them one with set_table.")
            self._model = build_model(self._nodes)
        return self._model

    def observe(self, evidence: Mapping[str, Any]) -> FactorGraph:
        """Return the model given evidence; see `FactorGraph.observe`."""
        return self.to_model().observe(evidence)

    @classmethod
    def from_model(cls, model: FactorGraph) -> BayesianNetwork:
        """Return the network of a model in which each site has one conditional table.

        Parameters
        ----------
        model : FactorGraph
            For example an answer of `read_model` for a BIF file. Tables stay as they are, also if rows are rounded.

        Raises
        ------
        IncompatibleError
            If the model is no Bayesian network.

        Examples
        --------
        >>> import gibbsite as gs
        >>> gs.BayesianNetwork.from_model(gs.example("asia"))
        BayesianNetwork(8 nodes, 8 edges)
        """
        if not isinstance(model, FactorGraph):
            raise IncompatibleError(f"from_model takes a gs.FactorGraph, got {type(model).__name__}.")
        found = _restore(read_nodes(model))
        found._model = model
        return found

    @classmethod
    def read(cls, path: str | PathLike[str], format: str | None = None) -> BayesianNetwork:
        """Read a network from a file; see `read_model`."""
        return cls.from_model(_files().read_model(path, format))

    def write(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write the network to a file; see `write_model`.

        Examples
        --------
        >>> net = BayesianNetwork()
        >>> net.add("coin", ["head", "tail"], table=[0.5, 0.5])
        >>> net.write("-", format="bif")
        network unknown {
        }
        variable coin {
          type discrete [ 2 ] { head, tail };
        }
        probability ( coin ) {
          table 0.5, 0.5;
        }
        """
        _files().write_model(self.to_model(), path, format)

    # ---- how it looks

    def __eq__(self, other: object) -> bool:
        """Return whether two networks have equal nodes, in any order."""
        if not isinstance(other, BayesianNetwork):
            return NotImplemented
        mine, others = self._nodes, other._nodes
        return mine.keys() == others.keys() and all(node.same(others[name]) for name, node in mine.items())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (dict(self._nodes),)

    def __repr__(self) -> str:
        nodes, edges = len(self._nodes), len(self.edges)
        return f"BayesianNetwork({nodes} node{'s' * (nodes != 1)}, {edges} edge{'s' * (edges != 1)})"

    def _repr_html_(self) -> str:
        heads = ("node", "states", "parents")
        shown = [
            (name, ", ".join(map(str, node.states[:8])) + ", ..." * (len(node.states) > 8), ", ".join(node.parents))
            for name, node in [*self._nodes.items()][:_MOST_SHOWN]
        ]
        left = max(0, len(self._nodes) - _MOST_SHOWN)
        facts = repr(self).removeprefix("BayesianNetwork(").removesuffix(")")
        return card("BayesianNetwork", [facts], table=grid(heads, shown, left, "nodes"))

    # ---- parts

    def _put(self, name: str, node: Node) -> None:
        self._nodes[name] = node
        self._model = None

    def _read_parents(self, name: str, given: Any) -> tuple[str, ...]:
        names = [given] if isinstance(given, str) else check_list("given", given, "nodes")
        for k, parent in enumerate(names):
            if parent == name:
                raise ModelError(f"the node {name!r} is given as its own parent.")
            if not isinstance(parent, str) or parent not in self._nodes:
                found = repr(parent) if isinstance(parent, str) else describe(parent)
                near = nearest(parent, self._nodes)
                advice = f"did you mean {near!r}?" if near else "add parents before their children."
                raise ModelError(f"the parent {found} of {name!r} is not a node of the network; {advice}")
            if parent in names[:k]:
                raise ModelError(f"the node {name!r} has the parent {parent!r} twice.")
        return tuple(map(str, names))

    def _domains(self, name: str, node: Node) -> Domains:
        """Return the parents of a node and, last, itself as sites."""
        return make_domains({**{each: self._nodes[each].states for each in node.parents}, name: node.states})

    def _read_table(self, name: str, node: Node, table: Any) -> Floats | Causes:
        if not isinstance(table, Noisy):
            return read_probabilities(table, self._domains(name, node))
        if {*table.effects} != {*node.parents}:
            raise ModelError(
                f"the noisy node {name!r} has numbers for ({', '.join(map(str, table.effects))}), and its parents are "
                f"({', '.join(node.parents)})."
            )
        return table.read(self._domains(name, node))


def _restore(nodes: dict[str, Node]) -> BayesianNetwork:
    network = BayesianNetwork()
    network._nodes = nodes
    return network


def _parents_in(table: Any) -> Sequence[str]:
    return tuple(table.effects) if isinstance(table, Noisy) else ()


def _files() -> Any:
    """Return the readers and writers of files, which come after models in the order of packages."""
    return import_downwards("gibbsite.formats.files")


def _listed(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")
