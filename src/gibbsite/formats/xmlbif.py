"""Bayesian networks in XMLBIF 0.3.

A ``TABLE`` lists the probabilities with the ``FOR`` variable fastest, then the last ``GIVEN``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError
from gibbsite.formats.network import MOST_MEMBERS, build_network, network_tables, read_table
from gibbsite.formats.parsing.numerals import decimals
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.parsing.xml import Element, error_at, escape_xml, numbers_in, only_child, parse_xml
from gibbsite.formats.registry import register
from gibbsite.models.factorgraph import FactorGraph

# There is no document type declaration, because small parsers fail on it.
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


class _Variable(NamedTuple):
    """The number of a variable, its states, and its element."""

    number: int
    states: tuple[str, ...]
    element: Element


@checked
def read_xmlbif(path: PathLike) -> FactorGraph:
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
    >>> coin = FactorGraph({"coin": ["head", "tail"]}, [("coin", [0.5, 0.5])], directed=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "coin.xmlbif")
    ...     write_xmlbif(coin, path)
    ...     read_xmlbif(path).digest == coin.digest
    True
    """
    return parse_xmlbif(load(path))


def parse_xmlbif(source: Source) -> FactorGraph:
    """Return the network in the content of a file."""
    root = parse_xml(source)
    if root.tag != "BIF":
        raise error_at(source, root, f"expected the element BIF, found {root.tag[:30]}.")
    networks = root.all("NETWORK")
    if len(networks) != 1:
        raise error_at(source, root, f"expected one element NETWORK, found {len(networks)}.")
    variables: dict[str, _Variable] = {}
    for element in networks[0].all("VARIABLE"):
        name = only_child(source, element, "NAME").text
        kind = element.attributes.get("TYPE", "nature")
        if kind != "nature":
            raise error_at(source, element, f"the variable {name!r} is of type {kind[:30]!r}; expected 'nature'.")
        if name in variables:
            raise error_at(source, element, f"the variable {name!r} is declared twice.")
        states = tuple(outcome.text for outcome in element.all("OUTCOME", "VALUE"))
        if not states:
            raise error_at(source, element, f"the variable {name!r} has no states; expected OUTCOME elements.")
        if len(set(states)) < len(states):
            raise error_at(source, element, f"the variable {name!r} has two states of the same name.")
        variables[name] = _Variable(len(variables), states, element)
    if not variables:
        raise error_at(source, networks[0], "the network has no variables; expected VARIABLE elements.")
    return _build(source, networks[0], variables)


def _build(source: Source, network: Element, variables: dict[str, _Variable]) -> FactorGraph:
    tables: dict[str, tuple[tuple[int, ...], Floats]] = {}
    places: dict[str, Element] = {}
    for element in network.all("DEFINITION", "PROBABILITY"):
        child = only_child(source, element, "FOR").text
        if child in tables:
            raise error_at(source, element, f"the variable {child!r} has two definitions.")
        tables[child], places[child] = _table(source, element, variables), element
    for name, variable in variables.items():
        if name not in tables:
            raise error_at(source, variable.element, f"the variable {name!r} has no definition.")

    def fail(message: str, name: str | None) -> FormatError:
        return source.error(message) if name is None else error_at(source, places[name], message)

    states = {name: variable.states for name, variable in variables.items()}
    return build_network(states, [tables[name] for name in variables], fail)


def _table(source: Source, element: Element, variables: dict[str, _Variable]) -> tuple[tuple[int, ...], Floats]:
    """Return the scope, child last, and the table of that shape."""
    members: list[_Variable] = []
    for part in (*element.all("GIVEN"), *element.all("FOR")):
        if part.text not in variables:
            raise error_at(source, part, f"there is no variable {part.text!r}.")
        members.append(variables[part.text])
    scope = tuple(member.number for member in members)
    if len(set(scope)) < len(scope):
        raise error_at(source, element, "this definition names a variable twice.")
    if len(scope) > MOST_MEMBERS:
        raise error_at(source, element, f"expected at most {MOST_MEMBERS - 1} variables GIVEN.")
    shape = [len(member.states) for member in members]
    holder = only_child(source, element, "TABLE")
    return scope, read_table(numbers_in(source, holder), shape, lambda message: error_at(source, holder, message))


@checked
def write_xmlbif(model: FactorGraph, path: PathLike) -> None:
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
        When the model is not a Bayesian network, or a name cannot stand in XML.

    Examples
    --------
    >>> model = FactorGraph({"A": ["yes", "no"]}, [("A", [0.25, 0.75])], directed=True)
    >>> print(format_xmlbif(model).partition("?>")[2].strip())
    <BIF VERSION="0.3">
    <NETWORK>
    <NAME>unknown</NAME>
    <VARIABLE TYPE="nature">
      <NAME>A</NAME>
      <OUTCOME>yes</OUTCOME>
      <OUTCOME>no</OUTCOME>
    </VARIABLE>
    <DEFINITION>
      <FOR>A</FOR>
      <TABLE>0.25 0.75</TABLE>
    </DEFINITION>
    </NETWORK>
    </BIF>
    """
    save(path, format_xmlbif(model))


def format_xmlbif(model: FactorGraph) -> str:
    """Return a Bayesian network as the text of an XMLBIF file."""
    tables = network_tables(model, "XMLBIF")
    names = [escape_xml(name) for name in model.sites]
    lines = ['<BIF VERSION="0.3">', "<NETWORK>", "<NAME>unknown</NAME>"]
    for k, name in enumerate(names):
        outcomes = [f"  <OUTCOME>{escape_xml(str(label))}</OUTCOME>" for label in model.labels(k)]
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{name}</NAME>", *outcomes, "</VARIABLE>"]
    for scope, logs in tables:
        *parents, child = scope
        given = [f"  <GIVEN>{names[parent]}</GIVEN>" for parent in parents]
        rows = decimals(logs).reshape(-1, logs.shape[-1]).tolist()
        table = "\n    ".join(" ".join(row) for row in rows)
        lines += ["<DEFINITION>", f"  <FOR>{names[child]}</FOR>", *given]
        lines += [f"  <TABLE>{table}</TABLE>", "</DEFINITION>"]
    return _HEAD + "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


register(
    name="xmlbif",
    suffixes=(".xmlbif", ".bifxml", ".xml"),
    parse=parse_xmlbif,
    write=write_xmlbif,
    recognise=re.compile(rb"\s*+<[?!A-Za-z]").match,
)
