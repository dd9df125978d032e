"""Files of values as R writes them (``dump``) and as WinBUGS reads them (``list(...)``).

The numbers of an array are column by column in R, and in a file for WinBUGS, in which they follow ``.Data=``, row by
row.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple, NoReturn

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError

MOST = 50_000_000
"""Most numbers that the ranges and empty vectors of a file may have together."""

_NESTED = 40  # deepest nesting of brackets
_CONSTANTS = {
    **dict.fromkeys(("NA", "NA_real_", "NA_integer_", "NaN"), math.nan),
    **dict.fromkeys(("TRUE", "T"), 1.0),
    **dict.fromkeys(("FALSE", "F"), 0.0),
    "Inf": math.inf,
}
_CONVERSIONS = ("as.integer", "as.numeric", "as.double", "as.logical")
_VECTORS = ("numeric", "integer", "double", "logical")
# Possessive throughout: a word may be as long as the file.
_STRING = r'"(?:[^"\\]|\\.)*+"|\'(?:[^\'\\]|\\.)*+\''
_REMARKS = re.compile(rf"{_STRING}|`[^`]*+`|#[^\n]*+", re.S)
_DECIMAL = r"(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?"
_TOKEN = re.compile(
    r"(?P<name>(?:[A-Za-z]|\.(?![0-9]))[A-Za-z0-9._]*+)"
    rf"|(?P<number>(?:0[xX][0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?(?:[pP][-+]?[0-9]++)?|{_DECIMAL})L?)"
    rf"|(?P<string>{_STRING})|(?P<quoted>`[^`]*+`)|(?P<operator><<?-|.)",
    re.S,
)
_BLANKS = re.compile(r"\s*+")
_RUN = re.compile(rf"(?:\s*+(?:NA(?:_real_|_integer_)?|[-+]?{_DECIMAL}L?)\s*+,)++")
_IGNORED = frozenset(
    {".Dimnames", "dimnames", ".Names", "names", ".Label", "levels", "class", "row.names", ".Tsp", "tsp"}
)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the file"
        return escaped(self.text if len(self.text) <= 40 else f"{self.text[:40]}...")


class _Value(NamedTuple):
    """Numbers, and whether they are one that stands alone."""

    numbers: Floats
    single: bool = False


def parse_dump(text: str, name: str) -> tuple[dict[str, Floats], set[str]]:
    """Read a file that R wrote with ``dump``, or data for WinBUGS.

    Parameters
    ----------
    text : str
        The file.
    name : str
        Its name, for messages.

    Returns
    -------
    values : dict of str to array
        Numbers and arrays by name; NaN is missing.
    texts : set of str
        Names of those that are texts, such as ``.RNG.name``.

    Raises
    ------
    FormatError
        With line and column, and what was expected.

    Examples
    --------
    >>> values, _ = parse_dump("N <- 2; x <- structure(c(1, NA, 3, 4), .Dim = c(2L, 2L))", "data.R")
    >>> values["x"].tolist()
    [[1.0, 3.0], [nan, 4.0]]
    """
    return _Dump(text, name).entries()


class _Dump:
    """One token at a time; ``token`` is the next one that has not been used."""

    def __init__(self, text: str, name: str) -> None:
        if "#" in text:  # remarks become blanks, so that places stay the same
            text = _REMARKS.sub(lambda found: " " * len(found[0]) if found[0][0] == "#" else found[0], text)
        self.text, self.source = text, name
        self.position, self.depth, self.left = 0, 0, float(MOST)
        self.values: dict[str, Floats] = {}
        self.texts: set[str] = set()
        self.starts: dict[str, int] = {}
        self.by_rows = False
        self.token = _Token("end", "", 0)
        self.advance()

    # words

    def advance(self) -> _Token:
        used = self.token
        blanks = _BLANKS.match(self.text, self.position)
        start = blanks.end() if blanks else self.position
        found = _TOKEN.match(self.text, start)
        if found is None:
            self.token, self.position = _Token("end", "", start), start
        else:
            self.token, self.position = _Token(found.lastgroup or "", found[0], start), found.end()
        return used

    def error(self, message: str, start: int | None = None) -> FormatError:
        start = self.token.start if start is None else start
        line = self.text.count("\n", 0, start) + 1
        return FormatError(message, self.source, line, start - self.text.rfind("\n", 0, start))

    def expected(self, what: str, hint: str = "") -> NoReturn:
        raise self.error(f"expected {what}, found {self.token}{hint}.")

    def skips(self, text: str) -> bool:
        if self.token.text != text or self.token.kind == "string":
            return False
        self.advance()
        return True

    def need(self, text: str, what: str) -> None:
        if not self.skips(text):
            self.expected(what)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _NESTED:
            raise self.error(f"brackets are nested more than {_NESTED} levels deep.")

    # entries

    def entries(self) -> tuple[dict[str, Floats], set[str]]:
        while self.token.kind != "end":
            if self.skips(";"):
                continue
            if self.token.text == "list" and self.token.kind == "name" and self.opens():
                self.advance()
                self.listed()
            else:
                self.entry("a name and <-", ("<-", "="), "; this is R code instead of a file that dump wrote")
        return self.values, self.texts

    def opens(self) -> bool:
        """Whether a parenthesis follows the next token."""
        blanks = _BLANKS.match(self.text, self.position)
        return self.text.startswith("(", blanks.end() if blanks else self.position)

    def listed(self) -> None:
        """Read the values of list(...), as WinBUGS has them."""
        self.need("(", "(")
        self.by_rows = True
        while self.token.text != ")":
            self.entry("a name and =", ("=", "<-"), "")
            if not self.skips(","):
                break
        self.need(")", "a comma or the closing parenthesis ) of list")
        self.by_rows = False

    def entry(self, what: str, arrows: tuple[str, ...], hint: str) -> None:
        start = self.token.start
        if self.token.kind not in ("name", "string", "quoted"):
            self.expected(what)
        key = self.advance()
        name = key.text if key.kind == "name" else key.text[1:-1]
        if self.token.text not in arrows:
            if hint and self.text.startswith(("[]", "[,"), self.token.start):
                hint = "; a table with names such as x[] in its first line cannot be read, write list(x = c(...))"
            self.expected(" or ".join(arrows), hint)
        self.advance()
        if name in self.starts:
            first = self.text.count("\n", 0, self.starts[name]) + 1
            raise self.error(f"{escaped(name)} is given twice, first on line {first}.", start)
        self.starts[name] = start
        if self.token.kind == "string":
            self.texts.add(name)
            self.advance()
            return
        found = self.value()
        if self.token.kind == "operator" and self.token.text not in (",", ")", ";"):
            self.expected("the end of the value", "; a dump holds numbers, not formulas")
        self.values[name] = found.numbers.reshape(()) if found.single else found.numbers

    # values

    def value(self) -> _Value:
        """Return a number, a range, a vector or an array."""
        self.deeper()
        first = self.operand()
        start = self.token.start
        if self.skips(":"):
            first = _Value(self.range(first, self.operand(), start))
        self.depth -= 1
        return first

    def operand(self) -> _Value:
        token = self.token
        if self.skips("-"):
            self.deeper()
            inner = self.operand()
            self.depth -= 1
            return inner._replace(numbers=-inner.numbers)
        if self.skips("+"):
            self.expected("a number")
        if token.kind == "number":
            self.advance()
            return _Value(np.array([self.number(token)]), True)
        if self.skips("("):
            inner = self.value()
            self.need(")", "a closing parenthesis )")
            return inner
        if token.kind == "string":
            self.expected("numbers", "; texts cannot be data of a model")
        if token.kind != "name":
            self.expected("a number, c( or structure(")
        self.advance()
        if token.text in _CONSTANTS:
            return _Value(np.array([_CONSTANTS[token.text]]), True)
        if token.text == "NULL":
            return _Value(np.zeros(0))
        if self.token.text == "(":
            return self.call(token)
        raise self.error(
            f"expected a number, c( or structure(, found {token}; a dump holds numbers, not R code.", token.start
        )

    def number(self, token: _Token) -> float:
        text = token.text.removesuffix("L")
        try:
            value = float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
        except (OverflowError, ValueError):
            value = math.inf
        if math.isinf(value):
            raise self.error(f"the number {token} is too large.", token.start)
        return value

    def call(self, function: _Token) -> _Value:
        if function.text == "c":
            return _Value(self.vector())
        if function.text == "structure":
            return _Value(self.structure(function.start))
        if function.text in _CONVERSIONS:
            self.advance()
            inner = self.value()
            self.need(")", "a closing parenthesis )")
            return inner
        if function.text in _VECTORS:
            self.advance()
            size = self.value().numbers if self.token.text != ")" else np.zeros(1)
            self.need(")", "a closing parenthesis )")
            return _Value(np.zeros(self.size(size, function.start)))
        what = "; a list or data frame cannot be the value of a variable" if function.text == "list" else ""
        what = what or "; a dump holds numbers, c(...) and structure(...), not R code"
        raise self.error(f"found {function}(, which cannot be read{what}.", function.start)

    def vector(self) -> Floats:
        """Return the numbers of c(...)."""
        parts: list[Floats] = []
        singles: list[float] = []
        while True:
            # the token before position is "(" or ","; long runs of plain numbers are read at once
            run = _RUN.match(self.text, self.position)
            if run:
                parts.append(np.array(singles))
                singles = []
                parts.append(self.plain(run[0], run.start()))
                self.position = run.end()
            self.advance()
            if self.token.text == ")" and not run and not parts and not singles:
                break
            if self.token.kind in ("name", "string", "quoted") and self.names_element():
                self.advance()
                self.advance()
            found = self.value().numbers
            if found.size == 1:
                singles.append(float(found.reshape(-1)[0]))
            else:
                parts += [np.array(singles), found.reshape(-1, order="F")]
                singles = []
            if self.token.text != ",":
                break
        self.need(")", "a comma or a closing parenthesis )")
        return np.concatenate([*parts, np.array(singles)]).astype(np.float64)

    def names_element(self) -> bool:
        blanks = _BLANKS.match(self.text, self.position)
        return self.text.startswith("=", blanks.end() if blanks else self.position)

    def plain(self, run: str, start: int) -> Floats:
        """Return numbers, each with a comma after it."""
        words = re.sub("NA(?:_real_|_integer_)?", "nan", run).replace("L", "").split(",")[:-1]
        values = np.fromiter(map(float, words), np.float64, len(words))
        if np.isinf(values).any():
            raise self.error("a number of this vector is too large.", start)
        return values

    def range(self, first: _Value, last: _Value, start: int) -> Floats:
        if not (first.single and last.single and np.isfinite([first.numbers[0], last.numbers[0]]).all()):
            raise self.error("a range has one finite number on each side of the colon.", start)
        low, high = float(first.numbers[0]), float(last.numbers[0])
        size = self.size(np.array([np.floor(abs(high - low) + 1e-10) + 1]), start)
        return low + np.arange(size, dtype=np.float64) * (1 if high >= low else -1)

    def size(self, given: Floats, start: int) -> int:
        """Return the size of a vector that is not written out."""
        size = float(given.reshape(-1)[0]) if given.size == 1 else -1.0
        if not size >= 0 or (size < MOST and not size.is_integer()):
            raise self.error("expected a single size, a whole number of at least 0.", start)
        self.left -= min(size, MOST + 1)
        if self.left < 0:
            raise self.error(f"the ranges of this file have more than {MOST:,} numbers together.", start)
        return int(size)

    def structure(self, start: int) -> Floats:
        self.advance()
        data: Floats | None = None
        by_rows = False
        shape: tuple[Floats, int] | None = None
        while self.token.text != ")":
            key = self.token
            named = key.kind in ("name", "string", "quoted") and self.names_element()
            if named:
                self.advance()
                self.advance()
            word = key.text.strip("\"'`") if named else ".Data"
            if word == ".Data" and data is None:
                data = self.value().numbers
                by_rows = named and self.by_rows
            elif word in (".Dim", "dim") and shape is None:
                shape = self.value().numbers, key.start
            elif word in _IGNORED:
                self.ignored()
            else:
                raise self.error(
                    f"the attribute {key} of an array is not known or is given twice; expected .Dim.", key.start
                )
            if not self.skips(","):
                break
        self.need(")", "a comma or a closing parenthesis )")
        if data is None:
            raise self.error("structure( has no numbers.", start)
        if shape is None:
            return data
        return self.shaped(data.reshape(-1, order="F"), *shape, by_rows)

    def shaped(self, data: Floats, given: Floats, start: int, by_rows: bool) -> Floats:
        if (
            given.ndim != 1
            or not 1 <= given.size <= 32
            or not all(0 <= one < 2**53 and one % 1 == 0 for one in given.tolist())
        ):
            raise self.error(
                "the dimensions of an array are whole numbers of at least 0, and at most 32 of them.", start
            )
        shape = tuple(map(int, given.tolist()))
        if math.prod(shape) != data.size:
            product = " x ".join(map(str, shape))
            raise self.error(f"the dimensions {product} need {math.prod(shape):,} numbers, found {data.size:,}.", start)
        return np.ascontiguousarray(data.reshape(shape, order="C" if by_rows else "F"))

    def ignored(self) -> None:
        """Skip an attribute, up to a comma or bracket outside of its brackets."""
        depth = 0
        while self.token.kind != "end" and (depth or self.token.text not in (",", ")")):
            depth += (self.token.text == "(") - (self.token.text == ")")
            self.advance()
