"""The words of a program: names, numbers, operators and brackets, each with its place."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from gibbsite._common.wording import escaped
from gibbsite.applications.bugs.language.syntax import Place
from gibbsite.errors import ModelError

KEYWORDS = frozenset({"var", "data", "model", "for", "in"})
"""Words of the language, which cannot name a variable."""

_SHOWN = 40  # most characters of a word that a message shows
_BLANKS = re.compile(r"(?:[ \t\n\f\v]++|#[^\n]*+|/\*(?s:.*?)\*/)*+")
# Possessive throughout: a word may be as long as the text.
_WORD = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9._]*+)"
    r"|(?P<number>(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<special>%[^%\s]*+%)"
    r"|(?P<operator><-|<=|>=|==|!=|&&|\|\||\*\*|[-+*/^:~=<>!,;()\[\]{}])"
)


class Token(NamedTuple):
    """A word: its kind ("name", "number", "operator", "special" or "end"), its text and where it begins."""

    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return escaped(self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}...")


class Text:
    """The text of a program and its words; ``source`` is its name for messages."""

    def __init__(self, text: str, source: str = "") -> None:
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self.source = source
        self._breaks: list[int] | None = None

    def place(self, start: int) -> Place:
        """Return line and column of the character at an offset."""
        if self._breaks is None:
            self._breaks = [found.start() for found in re.finditer("\n", self.text)]
        line = bisect_right(self._breaks, start - 1)
        return Place(line + 1, start - (self._breaks[line - 1] + 1 if line else 0) + 1)

    def error(self, message: str, start: int) -> ModelError:
        """Return the error about the character at an offset."""
        place = f"{self.source}, {self.place(start)}" if self.source else str(self.place(start)).capitalize()
        return ModelError(f"{place}: {message}")

    def tokens(self) -> Iterator[Token]:
        """Yield the words in order, and at last the end."""
        text, position = self.text, 0
        while True:
            blanks = _BLANKS.match(text, position)
            position = blanks.end() if blanks else position
            if position == len(text):
                break
            found = _WORD.match(text, position)
            if found is None or text.startswith("/*", position):
                raise self.error(self._unreadable(position), position)
            yield Token(found.lastgroup or "", found[0], position)
            position = found.end()
        yield Token("end", "", position)

    def _unreadable(self, start: int) -> str:
        """Say why no word begins at a character."""
        character = self.text[start]
        if self.text.startswith("/*", start):
            return "the comment that begins here with /* has no closing */."
        if character == "\0":
            return "found a NUL character; this is a binary file, expected the text of a model."
        if character in "\"'`":
            return f"found the quotation mark {character}; the text of a model has no quotation marks."
        if character in "._":
            return f"found {character}; expected a name, which begins with a letter, or a number."
        if character == "%":
            return "found %; expected an operator such as %*%."
        if character.isascii():
            return f"found {escaped(character)}, which has no meaning in a model."
        name = unicodedata.name(character, "").lower() or f"character U+{ord(character):04X}"
        shown = f"{character} ({name})" if character.isprintable() and not character.isspace() else f"a {name}"
        return f"found {shown}; names, numbers and operators are written in plain ASCII."
