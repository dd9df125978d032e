"""Bayesian networks in the Interchange Format (BIF).

Names are words or quoted, and separated by commas and blanks; ``//`` and ``/* */`` are comments; properties are
ignored. A conditional table is given by rows, one for each combination of parent states, or flat, the child slowest.
"""

from __future__ import annotations

import itertools
import re

from gibbsite._common.arguments import checked
from gibbsite.formats.network import network_tables
from gibbsite.formats.parsing.bif_text import Block, Cursor, Row, Variable, build_from_blocks, open_block, quoted
from gibbsite.formats.parsing.numerals import decimals
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, save
from gibbsite.formats.registry import register
from gibbsite.models.factorgraph import FactorGraph


@checked
def read_bif(path: PathLike) -> FactorGraph:
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
    >>> text = "variable A { type discrete [2] { <5, >=5 }; } probability ( A ) { table 0.1, 0.9; }"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.bif")
    ...     _ = path.write_text(text)
    ...     read_bif(path).labels("A")
    ('<5', '>=5')
    """
    return parse_bif(load(path))


def parse_bif(source: Source) -> FactorGraph:
    """Return the network in the content of a file."""
    cursor = Cursor(source)
    variables: dict[str, Variable] = {}
    blocks: dict[str, Block] = {}
    while not cursor.ended:
        place = cursor.next()
        if cursor.take_word("network"):
            _read_network(cursor)
        elif cursor.take_word("variable"):
            _read_variable(cursor, place, variables)
        elif cursor.take_word("probability"):
            _read_probability(cursor, place, blocks)
        else:
            raise cursor.error(f"expected 'network', 'variable' or 'probability', found {cursor.found()}.")
    return build_from_blocks(cursor, "variable", variables, blocks)


def _read_network(cursor: Cursor) -> None:
    if not cursor.take("{"):
        cursor.name("the name of the network or '{'")
        cursor.expect("{", "after the name of the network")
    while not cursor.take("}"):
        if not cursor.take_property():
            raise cursor.error(f"expected 'property' or '}}', found {cursor.found()}.")


def _read_variable(cursor: Cursor, place: int, variables: dict[str, Variable]) -> None:
    name = cursor.name("the name of a variable")
    if name in variables:
        raise cursor.error(f"the variable {name!r} is declared twice.", place)
    cursor.expect("{", f"after the variable {name!r}")
    states: dict[str, int] = {}
    while not cursor.take("}"):
        if cursor.take_property():
            continue
        if states or not cursor.take_word("type"):
            raise cursor.error(f"expected 'type', 'property' or '}}', found {cursor.found()}.")
        if not cursor.take_word("discrete"):
            raise cursor.error(f"the variable {name!r} must be 'discrete', found {cursor.found()}.")
        states = cursor.states(f"variable {name!r}")
    if not states:
        raise cursor.error(f"the variable {name!r} has no states; expected 'type discrete ...'.", place)
    variables[name] = Variable(place, len(variables), states)


def _read_probability(cursor: Cursor, place: int, blocks: dict[str, Block]) -> None:
    block = open_block(cursor, "variable", place, blocks)
    while not cursor.take("}"):
        at = cursor.next()
        if cursor.take_property():
            continue
        if cursor.take("("):
            states = tuple(word for _, word in cursor.names(")", "a state"))
            block.rows.append(Row(at, states, cursor.probabilities()))
        elif block.table is None and cursor.take_word("table"):
            block.table = Row(at, (), cursor.probabilities())
        elif block.default is None and cursor.take_word("default"):
            block.default = Row(at, (), cursor.probabilities())
        else:
            raise cursor.error(f"expected 'table', 'default', 'property', '(' or '}}', found {cursor.found()}.")


@checked
def write_bif(model: FactorGraph, path: PathLike) -> None:
    """Write a Bayesian network.

    Parameters
    ----------
    model : FactorGraph
        One conditional table per site and no other factors.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.

    Raises
    ------
    IncompatibleError
        When the model is not a Bayesian network.

    Examples
    --------
    >>> write_bif(FactorGraph({"A": ["yes", "no"]}, [("A", [0.25, 0.75])], directed=True), "-")
    network unknown {
    }
    variable A {
      type discrete [ 2 ] { yes, no };
    }
    probability ( A ) {
      table 0.25, 0.75;
    }
    """
    save(path, format_bif(model))


def format_bif(model: FactorGraph) -> str:
    """Return a Bayesian network as the text of a BIF file."""
    tables = network_tables(model, "BIF")
    names = [quoted(name) for name in model.sites]
    states = [[quoted(str(label)) for label in model.labels(k)] for k in range(model.n_sites)]
    lines = ["network unknown {", "}"]
    for name, words in zip(names, states, strict=True):
        lines += [f"variable {name} {{", f"  type discrete [ {len(words)} ] {{ {', '.join(words)} }};", "}"]
    for scope, logs in tables:
        *parents, child = scope
        rows = decimals(logs).reshape(-1, len(states[child])).tolist()
        if not parents:
            lines += [f"probability ( {names[child]} ) {{", f"  table {', '.join(rows[0])};", "}"]
            continue
        given = ", ".join(names[parent] for parent in parents)
        lines.append(f"probability ( {names[child]} | {given} ) {{")
        for row, given_states in zip(rows, itertools.product(*(states[k] for k in parents)), strict=True):
            lines.append(f"  ({', '.join(given_states)}) {', '.join(row)};")
        lines.append("}")
    return "\n".join([*lines, ""])


register(
    name="bif",
    suffixes=(".bif",),
    parse=parse_bif,
    write=write_bif,
    recognise=re.compile(COMMENTS + rb"(?i:network|variable|probability)\b", re.DOTALL).match,
)
