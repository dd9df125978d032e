"""Bayesian networks in DSC, the format of Microsoft's Belief Network tools, which bnlearn and GeNIe write, too.

A table is given by rows, one for each combination of numbers of parent states.
"""

from __future__ import annotations

import itertools
import re
from functools import partial

from gibbsite._common.arguments import checked
from gibbsite.formats.net import keeps_quoted, quoted_states
from gibbsite.formats.network import network_tables
from gibbsite.formats.parsing.bif_text import Block, Cursor, Row, Variable, build_from_blocks, open_block
from gibbsite.formats.parsing.chance_nodes import keeps_sites, node_names
from gibbsite.formats.parsing.numerals import decimals
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, save
from gibbsite.formats.registry import register
from gibbsite.models.factorgraph import FactorGraph


class _Cursor(Cursor):
    skipped = re.compile(r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|(//[^\n]*+|/\*.*?(?:\*/|\Z))', re.DOTALL)
    word = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s{}()\[\];,|=:"]++))', re.DOTALL)


@checked
def read_dsc(path: PathLike) -> FactorGraph:
    """Read a Bayesian network.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.

    Returns
    -------
    FactorGraph
        Sites and states in the order of the file, all labels being text; directed tables.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> text = 'belief network "a" node A { type: discrete[2] = {"no", "yes"}; } probability(A) { 0.1, 0.9; }'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.dsc")
    ...     _ = path.write_text(text)
    ...     read_dsc(path).labels("A")
    ('no', 'yes')
    """
    return parse_dsc(load(path))


def parse_dsc(source: Source) -> FactorGraph:
    """Return the network in the content of a file."""
    cursor = _Cursor(source)
    variables: dict[str, Variable] = {}
    blocks: dict[str, Block] = {}
    while not cursor.ended:
        place = cursor.next()
        if cursor.take_word("belief"):
            if not cursor.take_word("network"):
                raise cursor.error(f"expected 'network' after 'belief', found {cursor.found()}.")
            if cursor.text.startswith('"', cursor.next()):
                cursor.name("the name of the network")
        elif cursor.take_word("properties"):
            _skip_properties(cursor)
        elif cursor.take_word("node"):
            _read_node(cursor, place, variables)
        elif cursor.take_word("probability"):
            _read_probability(cursor, place, blocks)
        else:
            raise cursor.error(f"expected 'belief network', 'node' or 'probability', found {cursor.found()}.")
    return build_from_blocks(cursor, "node", variables, blocks, partial(_with_names, cursor, variables))


def _skip_properties(cursor: _Cursor) -> None:
    cursor.expect("{", "after 'properties'")
    while not cursor.take("}"):
        cursor.skip_value()


def _read_node(cursor: _Cursor, place: int, variables: dict[str, Variable]) -> None:
    name = cursor.name("the name of a node")
    if name in variables:
        raise cursor.error(f"the node {name!r} is declared twice.", place)
    cursor.expect("{", f"after the node {name!r}")
    states: dict[str, int] = {}
    while not cursor.take("}"):
        if not cursor.take_word("type"):
            cursor.name("an attribute or '}'")
            cursor.skip_value()
            continue
        cursor.expect(":", "after 'type'")
        if not cursor.take_word("discrete"):
            raise cursor.error(f"the node {name!r} must be 'discrete', found {cursor.found()}.")
        states = cursor.states(f"node {name!r}", "=")
    if not states:
        raise cursor.error(f"the node {name!r} has no states; expected 'type: discrete[...] = ...'.", place)
    variables[name] = Variable(place, len(variables), states)


def _read_probability(cursor: _Cursor, place: int, blocks: dict[str, Block]) -> None:
    block = open_block(cursor, "node", place, blocks)
    while not cursor.take("}"):
        at = cursor.next()
        if cursor.take("("):
            states = tuple(word for _, word in cursor.names(")", "the number of a state"))
            cursor.expect(":", "after the states of the parents")
            block.rows.append(Row(at, states, cursor.probabilities()))
        elif block.default is None and cursor.take_word("default"):
            cursor.expect(":", "after 'default'")
            block.default = Row(at, (), cursor.probabilities())
        elif cursor.text[at : at + 1].strip("+-.0123456789") == "" and not cursor.ended:
            block.rows.append(Row(at, (), cursor.probabilities()))
        else:
            raise cursor.error(f"expected a row of probabilities or '}}', found {cursor.found()}.")


def _with_names(cursor: _Cursor, variables: dict[str, Variable], block: Block) -> Block:
    """Return a block whose rows name the states of the parents, which the file numbers."""
    parents = [list(variables[name].states) if name in variables else [] for _, name in block.names[1:]]
    rows = []
    for row in block.rows:
        states = []
        for word, known in zip(row.states, parents, strict=False):
            if not (word.isascii() and word.isdecimal() and len(word) < 6 and int(word) < len(known)):
                raise cursor.error(f"expected the number of a state, found {word[:30]!r}.", row.place)
            states.append(known[int(word)])
        rows.append(Row(row.place, (*states, *row.states[len(parents) :]), row.values))
    return Block(block.place, block.names, block.table, block.default, rows)


@checked
def write_dsc(model: FactorGraph, path: PathLike) -> None:
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
    >>> write_dsc(FactorGraph({"A": ["yes", "no"]}, [("A", [0.25, 0.75])], directed=True), "-")
    belief network "unknown"
    node A {
      type : discrete [ 2 ] = { "yes", "no" };
    }
    probability ( A ) {
      0.25, 0.75;
    }
    """
    save(path, format_dsc(model))


def format_dsc(model: FactorGraph) -> str:
    """Return a Bayesian network as the text of a DSC file."""
    tables = network_tables(model, "DSC")
    names = node_names(model)
    lines = ['belief network "unknown"']
    for name, words in zip(names, quoted_states(model), strict=True):
        lines += [f"node {name} {{", f"  type : discrete [ {len(words)} ] = {{ {', '.join(words)} }};", "}"]
    for scope, logs in tables:
        *parents, child = scope
        rows = decimals(logs).reshape(-1, logs.shape[-1]).tolist()
        bar = " | " + ", ".join(names[k] for k in parents) if parents else ""
        lines.append(f"probability ( {names[child]}{bar} ) {{")
        for row, codes in zip(rows, itertools.product(*map(range, logs.shape[:-1])), strict=True):
            given = f"({', '.join(map(str, codes))}) : " if parents else ""
            lines.append(f"  {given}{', '.join(row)};")
        lines.append("}")
    return "\n".join([*lines, ""])


register(
    name="dsc",
    suffixes=(".dsc",),
    parse=parse_dsc,
    write=write_dsc,
    recognise=re.compile(COMMENTS + rb"(?i:belief)\s++(?i:network)\b", re.DOTALL).match,
    keeps_sites=keeps_sites,
    keeps_states=keeps_quoted,
)
