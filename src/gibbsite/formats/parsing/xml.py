"""The elements of an XML file as a tree, with their lines and columns.

Entity declarations and external entities are refused, so that no file can grow while it is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from gibbsite._common.arrays import Floats
from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import Source, shortened

# Characters that XML 1.0 does not allow.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 32
# Every element gets its default attributes, so these must be few and short.
_MOST_DEFAULTS, _LONGEST_DEFAULT = 100, 100


@dataclass(slots=True)
class Element:
    """An element: its tag in capitals, attributes, text, children, and where it starts."""

    tag: str
    attributes: dict[str, str]
    line: int
    column: int
    pieces: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text directly in the element, without blanks around it."""
        return "".join(self.pieces).strip()

    def all(self, *tags: str) -> list[Element]:
        """Return the children with one of some tags."""
        return [child for child in self.children if child.tag in tags]


def parse_xml(source: Source) -> Element:
    """Return the root element of an XML file; refuse entities."""
    from xml.parsers import expat

    parser = expat.ParserCreate()
    parser.buffer_text = True
    roots: list[Element] = []
    open_elements: list[Element] = []

    def place() -> tuple[int, int]:
        return parser.CurrentLineNumber, parser.CurrentColumnNumber + 1

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag.upper(), attributes, *place())
        if len(open_elements) >= _DEEPEST:
            raise FormatError("the elements are nested too deeply.", source.name, *place())
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(tag: str) -> None:
        open_elements.pop()

    def data(text: str) -> None:
        open_elements[-1].pieces.append(text)

    def refuse(*_: Any) -> NoReturn:
        raise FormatError("expected no entities: declare none, refer to none.", source.name, *place())

    declared = 0

    def declare(element: str, attribute: str, kind: str, default: str | None, required: int) -> None:
        nonlocal declared
        declared += 1
        if declared > _MOST_DEFAULTS or len(default or "") > _LONGEST_DEFAULT:
            raise FormatError("expected fewer and shorter attribute declarations.", source.name, *place())

    parser.AttlistDeclHandler = declare
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, data
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(source.data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise FormatError(
            f"this is not well-formed XML: {reason}.", source.name, error.lineno, error.offset + 1
        ) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"the encoding of the XML cannot be read: {error}.", source.name) from None
    return roots[0]


def error_at(source: Source, element: Element, message: str) -> FormatError:
    """Return the error about an element."""
    return FormatError(shortened(message), source.name, element.line, element.column)


def only_child(source: Source, element: Element, tag: str) -> Element:
    """Return the one child with a tag; refuse none and several."""
    found = element.all(tag)
    if len(found) != 1:
        raise error_at(source, element, f"expected one element {tag} in this {element.tag}, found {len(found)}.")
    return found[0]


def numbers_in(source: Source, element: Element) -> Floats:
    """Return the numbers that are the text of an element."""
    try:
        return Numbers(Source(source.name, "".join(element.pieces).encode())).values
    except FormatError as error:
        # Lines were counted from the start of the element.
        line = element.line + (error.line or 1) - 1
        reason = str(error).rpartition(f"{error.line}:{error.column}: ")[2]
        raise FormatError(reason, source.name, line, error.column if error.line != 1 else None) from None


def escape_xml(name: str) -> str:
    """Return a name as the text of an element; refuse what XML cannot hold."""
    from xml.sax.saxutils import escape

    if _FORBIDDEN.search(name) or "\r" in name or name != name.strip():
        raise IncompatibleError(f"the name {name!r} cannot stand in an XML file; write BIF instead.")
    return escape(name)
