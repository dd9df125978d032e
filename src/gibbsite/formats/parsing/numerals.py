"""Numbers in texts: they are read with their places, and potentials are written with as few digits as possible.

Numbers become one array without a Python object per number; line and column are computed only for errors.
"""

from __future__ import annotations

import re
import warnings
from typing import NoReturn

import numpy as np

from gibbsite._common.arrays import Array, Bools, Floats, Positions
from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import Source

_BLANKS = b" \t\r\n\v\f"
_NUMBER_BYTES = b"0123456789+-.eE" + _BLANKS
# Possessive throughout: a token may be as long as the file.
_NUMBER = re.compile(rb"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?")
_TOKEN = re.compile(rb"[^ \t\r\n\v\f]+")
_COMMENT = re.compile(rb"(?:#|//)[^\r\n]*+")
LOWEST, HIGHEST = -700.0, 700.0
"""Log-potentials between which potentials keep all their digits."""

_DIGITS = (9, 15, 16, 17)  # nine digits restore most numbers that people and other programs write
_STEPS = (1, -1, 2, -2)  # exp and log may each be wrong in the last bit, so that a neighbour is the right number


def read_number(source: Source, word: bytes, offset: int) -> float:
    """Return a word as a finite number; refuse anything else."""
    value = float(word) if _NUMBER.fullmatch(word) else np.nan
    if not np.isfinite(value):
        found = word[:30].decode(errors="replace")
        raise source.error(f"expected a finite number, found {found!r}.", offset)
    return value + 0.0  # no negative zero


class Numbers:
    r"""The decimal numbers that follow one another in a text, from the byte ``start`` on.

    Comments, from ``#`` or ``//`` to the end of the line, count as blanks; anything else raises a FormatError.
    """

    def __init__(self, source: Source, start: int = 0) -> None:
        data = source.data[start:]
        if b"#" in data or b"//" in data:
            data = _COMMENT.sub(lambda match: b" " * len(match[0]), data)
        self.source, self.start, self.data = source, start, data
        self.values: Floats = self._parse()

    def __len__(self) -> int:
        return len(self.values)

    def error(self, k: int, message: str) -> FormatError:
        """Return the error about number k, or about the end of the file when there are fewer."""
        starts = self.places()
        offset = int(starts[k]) if k < len(starts) else len(self.data)
        return self.source.error(message, self.start + offset)

    def require(self, fine: Bools, message: str, at: int = 0, step: int = 1) -> None:
        """Raise the error about number ``at + step * k``, k being the first place that is not fine.

        ``{}`` in the message becomes the number.
        """
        if not fine.all():
            k = at + step * int(np.argmin(fine))
            raise self.error(k, message.format(f"{self.values[k]:g}"))

    def places(self) -> Positions:
        """Return where every number begins, counted in bytes from the start of the numbers."""
        return np.flatnonzero(self._begins())

    def lines(self) -> Positions:
        """Return the line of every number, counted from 1 at the start of the numbers."""
        breaks = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord("\n"))
        return np.searchsorted(breaks, self.places()) + 1

    def rows(self) -> tuple[Positions, Positions]:
        """Return the first number of every line that has numbers, and how many it has."""
        lines = self.lines()
        starts = np.flatnonzero(np.diff(lines, prepend=0))
        return starts, np.diff(starts, append=len(lines))

    def same_line(self, a: int, b: int) -> bool:
        """Return whether numbers a < b are on one line."""
        starts = self.places()
        return b"\n" not in self.data[starts[a] : starts[b]]

    def whole(self, k: int, what: str, low: int, high: int) -> int:
        """Return number k, which must be whole and between ``low`` and ``high``."""
        if k >= len(self):
            raise self.error(k, f"the file ends here; expected {what}.")
        value = float(self.values[k])
        if not (low <= value <= high and value.is_integer()):
            bounds = f"from {low} to {high}" if high < 2**31 else f"of at least {low}"
            raise self.error(k, f"expected {what}, a whole number {bounds}, found {value:g}.")
        return int(value)

    def _begins(self) -> Bools:
        """Return where in the data a token begins."""
        solid = np.frombuffer(self.data, np.uint8) > 32
        solid[1:] &= ~solid[:-1]
        return solid

    def _parse(self) -> Floats:
        if not self.data or self.data.isspace():
            return np.zeros(0)
        if self.data.translate(None, _NUMBER_BYTES):
            self._complain()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy 1 warns where NumPy 2 raises
                values = np.fromstring(self.data.decode("ascii"), sep=" ")
        except (ValueError, DeprecationWarning):
            self._complain()
        if len(values) != np.count_nonzero(self._begins()):
            self._complain()
        return values

    def _complain(self) -> NoReturn:
        for match in _TOKEN.finditer(self.data):
            if not _NUMBER.fullmatch(match[0]):
                found = match[0][:30].decode(errors="replace")
                raise self.source.error(f"expected a number, found {found!r}.", self.start + match.start())
        raise self.source.error("the numbers of this file cannot be read.")


def decimals(logs: Floats) -> Array:
    """Return potentials as texts, given log-potentials that are ``-inf`` or from `LOWEST` to `HIGHEST`.

    The logarithm of each number equals the log-potential if any number has that logarithm, which may fail close to
    zero, where potentials are close to one.
    """
    unique, inverse = np.unique(logs, return_inverse=True)
    potentials = np.exp(unique)
    texts = np.full(len(unique), "0", object)
    left = np.flatnonzero(potentials > 0)
    trials = [(digits, potentials) for digits in _DIGITS]
    trials += [(17, potentials + step * np.spacing(potentials)) for step in _STEPS]
    first = True
    for digits, values in trials:
        if not len(left):
            break
        written = [f"{value:.{digits}g}" for value in values[left].tolist()]
        same = np.log(np.fromiter(map(float, written), np.float64, len(written))) == unique[left]
        # Without an exact number, the first attempt of full length stays.
        if digits == 17 and first:
            texts[left] = written
            first = False
        hits = np.flatnonzero(same)
        texts[left[hits]] = [written[k] for k in hits.tolist()]
        left = left[~same]
    return texts[inverse].reshape(np.shape(logs))
