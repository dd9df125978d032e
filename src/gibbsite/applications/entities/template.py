"""Templates, small files that define the features of a token by attributes of its neighbours.

A line names an attribute and its position relative to the token:

    word[0]
    lower[-2..2]          # from two tokens before to two after
    lower[-1] & lower[0]  # a conjunction

Empty lines and comments after ``#`` (preceded by a space, or at the beginning of a line) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gibbsite._common.wording import unknown
from gibbsite.applications.entities.attributes import DOCUMENT, WORD
from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import PathLike, load

LISTS = ("gazetteer", "lexicon", "cluster")
_PART = re.compile(r"([\w-]+)\[(-?\d+)(?:\.\.(-?\d+))?\]")
_FARTHEST = 10

_WINDOW = (
    "word[0]",
    "lower[-2..2]",
    "shape[-2..2]",
    "kind[-1..1]",
    "prefix[0]",
    "suffix[0]",
    "lower[-1] & lower[0]",
    "lower[0] & lower[1]",
    "kind[-1] & kind[0] & kind[1]",
)
_DOCUMENT = (
    "suffix[-1..1]",
    "pieces[0]",
    "lexicon[-1..1]",
    "gazetteer[-1..1]",
    "cluster[-1..1]",
    "neighbours[0]",
    "runs[0]",
    "cases[-1..1]",
    "sentence[0]",
)

#: Templates of the package: attributes of words alone, and also attributes of documents.
TEMPLATES = {"window": "\n".join(_WINDOW), "document": "\n".join((*_WINDOW, *_DOCUMENT))}


@dataclass(frozen=True)
class Line:
    """A conjunction of attributes at offsets."""

    parts: tuple[tuple[str, int], ...]  # (attribute, offset)

    @property
    def name(self) -> str:
        """The line as it is written in a template."""
        return "&".join(f"{name}[{offset}]" for name, offset in self.parts)


def parse_template(text: str, source: str = "template", functions: Iterable[str] = ()) -> tuple[Line, ...]:
    """Parse a template; ``source`` is its name in messages, and ``functions`` are names of further attributes."""
    known = (*WORD, *DOCUMENT, *LISTS, *functions)
    found: dict[Line, None] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        if not line:
            continue
        parts = []
        for word in line.split("&"):
            match = _PART.fullmatch(word.strip())
            if match is None:
                raise FormatError(
                    f"{word.strip()!r:.80} is not an attribute with a place, such as lower[-2..2].", source, number
                )
            name, low, high = match[1], int(match[2]), int(match[3] or match[2])
            if name not in known:
                raise FormatError(unknown("attribute", name, known), source, number)
            if not -_FARTHEST <= low <= high <= _FARTHEST:
                raise FormatError(
                    f"places go from low to high, at most {_FARTHEST} away, got {word.strip()!r}.", source, number
                )
            parts.append([(name, offset) for offset in range(low, high + 1)])
        if len(parts) > 1 and any(len(part) > 1 for part in parts):
            raise FormatError("each attribute of a conjunction must have a single place.", source, number)
        for line_ in [Line((one,)) for one in parts[0]] if len(parts) == 1 else [Line(tuple(p[0] for p in parts))]:
            found[line_] = None
    if not found:
        raise FormatError("the template has no line; expected lines such as word[0].", source)
    return tuple(found)


def read_template(given: str | PathLike, functions: Iterable[str] = ()) -> str:
    """Return the text of a template of the package, or of a file."""
    if isinstance(given, str) and given in TEMPLATES:
        return TEMPLATES[given] + "\n"
    source = load(given)
    text = source.decoded()
    parse_template(text, source.name, functions)
    return text
