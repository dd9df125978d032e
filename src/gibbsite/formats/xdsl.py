"""Bayesian networks in XDSL, the format of GeNIe and SMILE.

A node lists its states, its parents and its probabilities, the states of the node fastest, then the last parent. Nodes
that are deterministic become tables, and so do noisy maxima of few parents.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.formats.network import find_wrong_row, network_tables
from gibbsite.formats.parsing.chance_nodes import (
    Node,
    build_chance_part,
    keeps_identifiers,
    keeps_sites,
    node_names,
    parents_first,
    state_names,
)
from gibbsite.formats.parsing.noisy_nodes import can_be_written, write_causes
from gibbsite.formats.parsing.numerals import decimals
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.parsing.xml import Element, error_at, numbers_in, only_child, parse_xml
from gibbsite.formats.registry import register
from gibbsite.models.domain import frozen
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.networks.causes import CauseFactors, NoisyNodes
from gibbsite.models.networks.noisy import Causes

_KINDS = {"CPT": "chance", "NOISYMAX": "chance", "DETERMINISTIC": "chance", "TRUTHTABLE": "chance"}
_KINDS |= {"DECISION": "decision", "UTILITY": "utility", "MAU": "utility"}


@checked
def read_xdsl(path: PathLike) -> FactorGraph:
    """Read a Bayesian network, or the chance nodes of an influence diagram.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.

    Returns
    -------
    FactorGraph
        Sites and states in the order of the file, named by their identifiers; directed tables.
        `BayesianNetwork.from_model` finds noisy maxima in it. Utilities, and
        decisions that no chance node depends on, are left out with a warning; other decisions become sites with
        equal probabilities, to be observed.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there: also for nodes that are equations, and for dynamic
        networks.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> coin = FactorGraph({"coin": ["head", "tail"]}, [("coin", [0.5, 0.5])], directed=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.xdsl")
    ...     write_xdsl(coin, path)
    ...     read_xdsl(path).digest == coin.digest
    True
    """
    return parse_xdsl(load(path))


def parse_xdsl(source: Source) -> FactorGraph:
    """Return the network in the content of a file."""
    root = parse_xml(source)
    if root.tag != "SMILE":
        raise error_at(source, root, f"expected the element smile, found {root.tag.lower()[:30]}.")
    for dynamic in root.all("DYNAMIC"):
        raise error_at(source, dynamic, "this is a dynamic network; unroll it to a static one first.")
    nodes: dict[str, Node] = {}
    for element in only_child(source, root, "NODES").children:
        node = _read_node(source, element)
        if node.name in nodes:
            raise node.fail(f"the node {node.name!r} is declared twice.")
        nodes[node.name] = node
    return build_chance_part(source, nodes)


def _read_node(source: Source, element: Element) -> Node:
    name = element.attributes.get("id", "")
    if not name:
        raise error_at(source, element, "expected a node with an attribute id.")
    if element.tag not in _KINDS:
        known = "cpt, deterministic, noisymax, decision, utility or mau"
        raise error_at(source, element, f"the node {name!r} is of type {element.tag.lower()[:30]!r}; expected {known}.")
    states = []
    for state in element.all("STATE"):
        if "id" not in state.attributes:
            raise error_at(source, state, "expected a state with an attribute id.")
        states.append(state.attributes["id"])
    parents = [word for each in element.all("PARENTS") for word in each.text.split()]
    fill: Callable[[Source, Element, list[Node]], Floats | Causes] = _read_results
    if element.tag in ("CPT", "NOISYMAX"):
        fill = _read_probabilities if element.tag == "CPT" else _read_noisy_max
    return Node(
        name,
        _KINDS[element.tag],
        lambda message: error_at(source, element, message),
        tuple(states),
        tuple(parents),
        lambda members: fill(source, element, members),
        made=element.tag != "CPT",
        noisy=element.tag == "NOISYMAX",
    )


def _read_probabilities(source: Source, element: Element, members: list[Node]) -> Floats:
    return numbers_in(source, only_child(source, element, "PROBABILITIES"))


def _read_results(source: Source, element: Element, members: list[Node]) -> Floats:
    """Return the table of a deterministic node, whose state is listed for each state of its parents."""
    *parents, child = members
    listed = only_child(source, element, "RESULTINGSTATES")
    words = listed.text.split()
    count = math.prod(len(parent.states) for parent in parents)
    if len(words) != count:
        raise error_at(source, listed, f"expected {count} states, found {len(words)}.")
    codes = {state: k for k, state in enumerate(child.states)}
    for word in words:
        if word not in codes:
            raise error_at(source, listed, f"the node {child.name!r} has no state {word[:30]!r}.")
    table = np.zeros((count, len(codes)))
    table[np.arange(count), [codes[word] for word in words]] = 1.0
    return table


def _read_noisy_max(source: Source, element: Element, members: list[Node]) -> Causes:
    """Return a noisy maximum: the strongest, which is the first, of independent effects of each parent and a leak."""
    *parents, child = members
    cards, width = [len(parent.states) for parent in parents], len(child.states)
    holder = only_child(source, element, "PARAMETERS")
    values = numbers_in(source, holder)
    size = (sum(cards) + 1) * width
    if values.size != size:
        raise error_at(source, holder, f"expected {size} numbers, found {values.size}.")
    if not (values.min() >= 0 and values.max() < np.inf):
        raise error_at(source, holder, "expected probabilities, found a number that is none.")
    effects = values.reshape(-1, width)
    wrong = find_wrong_row(effects)
    if wrong is not None or not effects.any(axis=1).all():
        at, total = wrong or (int(np.argmin(effects.any(axis=1))), 0.0)
        raise error_at(source, holder, f"the parameters of effect {at} sum to {total:.6g}; expected 1.")
    found, start = [], 0
    for card, order in zip(cards, _read_strengths(source, element, cards, effects), strict=True):
        found.append(frozen(effects[start : start + card][order], np.float64))
        start += card
    return Causes("max", tuple(found), frozen(effects[-1], np.float64), descending=True)


def _read_strengths(source: Source, element: Element, cards: list[int], effects: Floats) -> list[list[int]]:
    """Return, for each parent, which of its columns of parameters is that of each of its states.

    Strengths list the states of each parent, the strongest first. The columns of parameters are in this order or
    in that of the states: the weakest state has no effect, so that the last probability of its column is one.
    """
    plain = [list(range(card)) for card in cards]
    listed = element.all("STRENGTHS")
    if not listed:
        return plain
    words = listed[0].text.split()
    found: list[list[int]] = []
    at = 0
    for card, own in zip(cards, plain, strict=True):
        part, first = words[at : at + card], at
        if sorted(part) != sorted(map(str, own)):
            raise error_at(source, listed[0], f"expected the states of each parent once, from 0 to {card - 1}.")
        strongest, at = [int(word) for word in part], at + card
        column = [strongest.index(state) for state in own]
        weakest = strongest[-1]
        without = effects[first : first + card, -1] == 1.0
        orders = [order for order in (own, column) if without[order[weakest]]]
        if not orders or (len(orders) == 2 and strongest != own and _differ(effects[first : first + card], column)):
            raise error_at(
                source, listed[0], "these strengths leave open which state of a parent each parameter belongs to."
            )
        found.append(orders[0])
    if at != len(words):
        raise error_at(source, listed[0], f"expected {at} strengths, found {len(words)}.")
    return found


def _differ(effects: Floats, column: list[int]) -> bool:
    return not np.array_equal(effects, effects[column])


@checked
def write_xdsl(model: FactorGraph, path: PathLike) -> None:
    """Write a Bayesian network.

    Parameters
    ----------
    model : FactorGraph
        One conditional table per site and no other factors. Noisy maxima of a `BayesianNetwork` are written as such,
        the strongest state first, which reverses states that run from none to the strongest. GeNIe reads names of
        letters, digits and underscores that do not begin with a digit; where a site or a state has another name,
        ``Node0`` or ``State0`` and so on are written instead.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.

    Raises
    ------
    IncompatibleError
        When the model is not a Bayesian network.

    Examples
    --------
    >>> model = FactorGraph({"A": ["yes", "no"]}, [("A", [0.25, 0.75])], directed=True)
    >>> print(format_xdsl(model).partition("?>")[2].strip())
    <smile version="1.0" id="network">
      <nodes>
        <cpt id="A">
          <state id="yes"/>
          <state id="no"/>
          <probabilities>0.25 0.75</probabilities>
        </cpt>
      </nodes>
    </smile>
    """
    save(path, format_xdsl(model))


def format_xdsl(model: FactorGraph) -> str:
    """Return a Bayesian network as the text of an XDSL file, in which parents come first."""
    wide: dict[int, CauseFactors] = {}
    tables = network_tables(model, "XDSL", wide)
    noisy = {model.index(name): causes for name, causes in (model.cache.get(NoisyNodes) or {}).items()}
    noisy |= {site: group.causes() for site, group in wide.items() if site not in noisy}
    written = {site for site, causes in noisy.items() if can_be_written(causes)}
    # the first state of a noisy maximum is the strongest
    turned = [site for site in written if not noisy[site].descending]
    names, states = node_names(model), state_names(model)
    states = [each[::-1] if site in turned else each for site, each in enumerate(states)]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<smile version="1.0" id="network">', "  <nodes>"]
    for scope, logs in parents_first(tables):
        *parents, child = scope
        kind = "noisymax" if child in written else "cpt"
        lines.append(f'    <{kind} id="{names[child]}">')
        lines += [f'      <state id="{state}"/>' for state in states[child]]
        lines += [f"      <parents>{' '.join(names[k] for k in parents)}</parents>"] if parents else []
        if child in written:
            rows, strengths = write_causes(noisy[child], [k in turned for k in parents])
            lines.append(f"      <strengths>{' '.join(map(str, strengths))}</strengths>")
            with np.errstate(divide="ignore"):
                lines.append(f"      <parameters>{' '.join(decimals(np.log(rows)).reshape(-1).tolist())}</parameters>")
        else:
            table = wide[child].log_tables(model.cards)[0] if child in wide else logs
            table = np.flip(table, tuple(axis for axis, k in enumerate(scope) if k in turned))
            lines.append(f"      <probabilities>{' '.join(decimals(table).reshape(-1).tolist())}</probabilities>")
        lines.append(f"    </{kind}>")
    return "\n".join([*lines, "  </nodes>", "</smile>", ""])


register(
    name="xdsl",
    suffixes=(".xdsl",),
    parse=parse_xdsl,
    write=write_xdsl,
    recognise=re.compile(rb"(?:\s++|<\?.*?\?>|<!--.*?-->)*+<(?i:smile)\b", re.DOTALL).match,
    keeps_sites=keeps_sites,
    keeps_states=keeps_identifiers,
)
