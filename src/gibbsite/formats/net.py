"""Bayesian networks in the NET language of Hugin.

A potential lists its probabilities with the node before the bar fastest, then the last node after it; ``%`` begins a
comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError
from gibbsite.formats.network import network_tables
from gibbsite.formats.parsing.bif_text import Cursor
from gibbsite.formats.parsing.chance_nodes import Node, build_chance_part, keeps_sites, node_names, parents_first
from gibbsite.formats.parsing.numerals import decimals
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.registry import register
from gibbsite.models.factorgraph import FactorGraph

_NESTED = re.compile(r"[()0-9eE+\-.,\s]*+")
_PARENTHESIS = re.compile(r"[()]")
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')


class _Cursor(Cursor):
    skipped = re.compile(r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|(%[^\n]*+)', re.DOTALL)
    word = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s{}()\[\];,|="]++))', re.DOTALL)

    def nested_numbers(self) -> Floats:
        """Step over numbers in nested parentheses up to a semicolon, and return them."""
        start = self.at
        match = _NESTED.match(self.text, start)
        self.at = match.end() if match else start
        if not self.take(";"):
            raise self.error(f"expected numbers in parentheses and ';', found {self.found()}.")
        depth = 0
        for mark in _PARENTHESIS.findall(self.text, start, self.at):
            depth += 1 if mark == "(" else -1
            if depth < 0:
                break
        if depth != 0:
            raise self.error("the parentheses of these numbers do not match.", start)
        return np.array(self.numbers(start, self.at - 1, "(),"))


@checked
def read_net(path: PathLike) -> FactorGraph:
    """Read a Bayesian network, or the chance nodes of an influence diagram.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.

    Returns
    -------
    FactorGraph
        Sites in the order of the file, named by their identifiers, not their labels; all states are text; directed
        tables. A potential without data has equal probabilities. Utilities, functions, and decisions that no chance
        node depends on are left out with a warning; other decisions become sites with equal probabilities, to
        be observed.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there: also for continuous nodes, classes, and tables that
        are given by expressions.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> text = 'net {} node A { states = ("no" "yes"); } potential (A) { data = (0.1 0.9); }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.net")
    ...     _ = path.write_text(text)
    ...     read_net(path).labels("A")
    ('no', 'yes')
    """
    return parse_net(load(path))


def parse_net(source: Source) -> FactorGraph:
    """Return the network in the content of a file."""
    cursor = _Cursor(source)
    nodes: dict[str, Node] = {}
    seen: set[str] = set()
    while not cursor.ended:
        place = cursor.next()
        if cursor.take_word("net"):
            _skip_block(cursor)
        elif cursor.take_word("potential"):
            _read_potential(cursor, place, nodes, seen)
        else:
            _read_node(cursor, place, nodes)
    return build_chance_part(source, nodes)


def _skip_block(cursor: _Cursor) -> None:
    cursor.expect("{", "here")
    while not cursor.take("}"):
        cursor.name("an attribute or '}'")
        cursor.skip_value()


def _read_node(cursor: _Cursor, place: int, nodes: dict[str, Node]) -> None:
    kind = "chance"
    while not cursor.take_word("node"):
        word = cursor.name("'net', 'node' or 'potential'").lower()
        if word in ("decision", "utility", "function"):
            kind = "decision" if word == "decision" else "utility"
            cursor.take_word("node")
            break
        if word == "continuous":
            raise cursor.error("this node is continuous; expected nodes with states.", place)
        if word not in ("discrete", "chance"):
            raise cursor.error(f"expected 'net', 'node' or 'potential', found {word[:30]!r}.", place)
    name = cursor.name("the name of a node")
    if name in nodes:
        raise cursor.error(f"the node {name!r} is declared twice.", place)
    cursor.expect("{", f"after the node {name!r}")
    states: tuple[str, ...] = ()
    while not cursor.take("}"):
        if cursor.take_word("states"):
            cursor.expect("=", "after 'states'")
            cursor.expect("(", "before the states")
            states = tuple(word for _, word in cursor.names(")", "a state"))
            cursor.expect(";", "after the states")
        else:
            cursor.name("an attribute or '}'")
            cursor.skip_value()
    nodes[name] = Node(name, kind, _failing(cursor, place), states)


def _read_potential(cursor: _Cursor, place: int, nodes: dict[str, Node], seen: set[str]) -> None:
    cursor.expect("(", "after 'potential'")
    at, child = cursor.next(), cursor.name("the name of a node")
    if not cursor.take("|") and not cursor.take(")"):
        raise cursor.error(f"expected '|' or ')' after one node, found {cursor.found()}.")
    parents: list[tuple[int, str]] = []
    if cursor.text[cursor.at - 1] == "|":
        parents = cursor.names(")", "the name of a parent")
    for where, name in [(at, child), *parents]:
        if name not in nodes:
            raise cursor.error(f"there is no node {name!r}.", where)
    if child in seen:
        raise cursor.error(f"the node {child!r} has two potentials.", place)
    seen.add(child)
    node = nodes[child]
    cursor.expect("{", f"after the nodes of the potential of {child!r}")
    values = None
    while not cursor.take("}"):
        start, word = cursor.next(), cursor.name("an attribute or '}'").lower()
        if word == "data" and node.kind == "chance":
            cursor.expect("=", "after 'data'")
            values = cursor.nested_numbers()
        elif word.startswith("model") and node.kind == "chance":
            raise cursor.error("this potential is given by an expression; expected data.", start)
        else:
            cursor.skip_value()
    node.parents, node.fail = tuple(name for _, name in parents), _failing(cursor, place)
    node.made = values is None
    node.fill = lambda members: _equal(members) if values is None else values


def _equal(members: list[Node]) -> Floats:
    shape = [len(member.states) for member in members]
    return np.full(shape, 1.0 / shape[-1])


def _failing(cursor: _Cursor, place: int) -> Callable[[str], FormatError]:
    return lambda message: cursor.error(message, place)


@checked
def write_net(model: FactorGraph, path: PathLike) -> None:
    """Write a Bayesian network.

    Parameters
    ----------
    model : FactorGraph
        One conditional table per site and no other factors. Where a site has a name that is not made of letters,
        digits and underscores, ``Node0`` and so on are written instead; the states are numbered where one of them has
        quotation marks or control characters.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.

    Raises
    ------
    IncompatibleError
        When the model is not a Bayesian network.

    Examples
    --------
    >>> write_net(FactorGraph({"A": ["yes", "no"]}, [("A", [0.25, 0.75])], directed=True), "-")
    net
    {
    }
    node A
    {
      states = ("yes" "no");
    }
    potential (A)
    {
      data = (0.25 0.75);
    }
    """
    save(path, format_net(model))


def format_net(model: FactorGraph) -> str:
    """Return a Bayesian network as the text of a NET file."""
    tables = network_tables(model, "NET")
    names = node_names(model)
    lines = ["net", "{", "}"]
    for name, words in zip(names, quoted_states(model), strict=True):
        lines += [f"node {name}", "{", f"  states = ({' '.join(words)});", "}"]
    for scope, logs in parents_first(tables):
        *parents, child = scope
        bar = " | " + " ".join(names[k] for k in parents) if parents else ""
        lines += [f"potential ({names[child]}{bar})", "{", f"  data = {_nested(decimals(logs).tolist())};", "}"]
    return "\n".join([*lines, ""])


def quoted_states(model: FactorGraph) -> list[list[str]]:
    """Return the states of each site in quotation marks, numbered where one of them cannot be quoted."""
    found = []
    for k in range(model.n_sites):
        labels = [str(label) for label in model.labels(k)]
        safe = not any(map(_UNSAFE.search, labels))
        found.append([f'"{label}"' if safe else f'"State{code}"' for code, label in enumerate(labels)])
    return found


def keeps_quoted(model: FactorGraph) -> bool:
    """Return whether all names of states can stand in quotation marks."""
    return not any(_UNSAFE.search(str(label)) for labels in model.domains.kinds for label in labels)  # type: ignore[union-attr]


def _nested(table: list[object] | str) -> str:
    return table if isinstance(table, str) else f"({' '.join(map(_nested, table))})"  # type: ignore[arg-type]


register(
    name="net",
    suffixes=(".net", ".hugin"),
    parse=parse_net,
    write=write_net,
    recognise=re.compile(rb"(?:\s++|%[^\n]*+)*+(?i:net)\s*+\{").match,
    keeps_sites=keeps_sites,
    keeps_states=keeps_quoted,
)
