"""A cursor over the text of a BIF file: words, marks, probabilities, and where they stand."""

from __future__ import annotations

import math
import re

from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import Source, shortened

_PROPERTY_TAIL = r'(?:(?:"[^"\n]*+"|[^;"])*+;|[^;]*+(?:;|\Z))'
# Quoted text and properties are matched too, so that what looks like a comment in them is left alone.
_SKIPPED = re.compile(
    r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|\bproperty\b' + _PROPERTY_TAIL + r"|(//[^\n]*+|/\*.*?(?:\*/|\Z))", re.DOTALL
)
_PROPERTY = re.compile(r"\s*+property\b" + _PROPERTY_TAIL)
_NAME = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^\s{}()\[\];,|"]++))', re.DOTALL)
_PLAIN = re.compile(r'(?:[^\s{}()\[\];,|"/]|/(?![/*]))++')
_BLANK = re.compile(r"\s*+")
_GAP = re.compile(r"[\s,]*+")
_LIST = re.compile(r"[0-9eE+\-.,\s]*+")
_WORD = re.compile(r"[^\s,]++")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")


class Cursor:
    """A place in the text of a file.

    Parameters
    ----------
    source : Source
        The file; comments become blanks.
    """

    def __init__(self, source: Source) -> None:
        self.source, self._original = source, source.decoded()
        self.text = _SKIPPED.sub(self._blank, self._original)
        self.at = 0

    def _blank(self, match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        if match[1].startswith("/*") and (len(match[1]) < 4 or not match[1].endswith("*/")):
            raise self.error("this comment is not closed; expected */ somewhere.", match.start())
        return re.sub(r"[^\n]++", lambda line: " " * len(line[0]), match[1])

    def error(self, message: str, place: int | None = None) -> FormatError:
        """Return the error about a place, by default about what comes next."""
        at = self.next() if place is None else place
        line = self._original.count("\n", 0, at) + 1
        return FormatError(shortened(message), self.source.name, line, at - self._original.rfind("\n", 0, at))

    def next(self) -> int:
        """Return the place of what comes next."""
        return _end(_BLANK.match(self.text, self.at), self.at)

    @property
    def ended(self) -> bool:
        """Whether only blanks are left."""
        return self.next() == len(self.text)

    def found(self) -> str:
        """Return what comes next, for a message."""
        at = self.next()
        if at == len(self.text):
            return "the end of the file"
        word = _NAME.match(self.text, at)
        return repr(word[0][:30] if word else self.text[at])

    def take(self, mark: str) -> bool:
        """Step over a mark if it comes next."""
        at = self.next()
        if not self.text.startswith(mark, at):
            return False
        self.at = at + len(mark)
        return True

    def take_word(self, word: str) -> bool:
        """Step over a word if it comes next, in capitals or not."""
        match = _NAME.match(self.text, self.at)
        if match is None or match[2] is None or match[2].lower() != word:
            return False
        self.at = match.end()
        return True

    def take_property(self) -> bool:
        """Step over a property if one comes next."""
        match = _PROPERTY.match(self.text, self.at)
        if match is None:
            return False
        if not match[0].endswith(";"):
            raise self.error("this property has no end; expected ';'.")
        self.at = match.end()
        return True

    def expect(self, mark: str, where: str) -> None:
        """Step over a mark that must come next."""
        if not self.take(mark):
            raise self.error(f"expected {mark!r} {where}, found {self.found()}.")

    def name(self, what: str) -> str:
        """Step over the word or quoted text that must come next, and return it."""
        match = _NAME.match(self.text, self.at)
        if match is None:
            raise self.error(f"expected {what}, found {self.found()}.")
        self.at = match.end()
        return match[2] if match[1] is None else re.sub(r'\\(["\\])', r"\1", match[1])

    def names(self, closing: str, what: str) -> list[tuple[int, str]]:
        """Step over all words up to a closing mark, and return them with their places."""
        names: list[tuple[int, str]] = []
        while True:
            self.at = _end(_GAP.match(self.text, self.at), self.at)
            if self.take(closing):
                return names
            names.append((self.at, self.name(f"{what} or {closing!r}")))

    def probabilities(self) -> list[float]:
        """Step over numbers up to a semicolon, and return them."""
        start = self.at
        self.at = end = _end(_LIST.match(self.text, start), start)
        if not self.take(";"):
            raise self.error(f"expected a number or ';', found {self.found()}.")
        try:
            values = [float(word) for word in self.text[start:end].replace(",", " ").split()]
        except ValueError:
            values = [math.nan]
        if not all(0.0 <= value < math.inf for value in values):
            for match in _WORD.finditer(self.text, start, end):
                if not _NUMBER.fullmatch(match[0]) or not 0.0 <= float(match[0]) < math.inf:
                    raise self.error(f"expected a probability, found {match[0][:30]!r}.", match.start())
        return values


def quoted(name: str) -> str:
    r"""Return a name as it stands in a file: in quotes only if it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def _end(match: re.Match[str] | None, otherwise: int) -> int:
    return match.end() if match else otherwise
