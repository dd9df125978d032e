"""Messages that name arguments and kernels in the spelling of Python or of the command line.

In Python one writes ``chains=4`` and ``gs.Gibbs()``, on the command line ``--chains 4`` and ``--method gibbs``. A
message is written once, with its names marked by :func:`argument` and :func:`part`. A :class:`Text` has the spelling of
Python and keeps the marks for other spellings (:mod:`gibbsite.cli.wording`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from gibbsite._common.public_names import public_place

# Private-use characters, which do not normally occur in names of sites and files.
_OPEN, _NEXT, _CLOSE = "\ue000", "\ue001", "\ue002"
_LIKE = 0.65  # the least similarity, between 0 and 1, of a misspelled name to a suggested one
# Characters that a terminal or a web page interprets instead of showing: control characters, line separators, marks of
# text direction, and surrogates, which cannot be encoded.
_ACTING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MARK = re.compile(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}")


class Mark(NamedTuple):
    """A name in a message that Python and the command line spell differently.

    ``plain`` is the spelling of Python. ``kind`` is "argument" (of a function), "part" (a kernel or scan) or "python"
    (words for users of Python only). ``name`` is the name of the argument or class. ``values`` is the value of the
    argument, if the message gives one, or the parameters of the part, such as ``"keys=blanket"``.
    """

    plain: str
    kind: str
    name: str
    values: tuple[str, ...] = ()


class Text(str):
    """A message in the spelling of Python that keeps its marks."""

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, marked: str) -> Text:
        marked = getattr(marked, "marked", marked)
        text = super().__new__(cls, _spell(marked, lambda mark: mark.plain))
        text.marked = marked
        return text

    def __reduce__(self) -> tuple[type[Text], tuple[str]]:
        return Text, (self.marked,)

    def spelled(self, spell: Callable[[Mark], str]) -> str:
        """Return the message with every mark spelled by a function."""
        return _spell(self.marked, spell)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of the arguments that the message is about, in order."""
        found = [_read(mark[1]) for mark in _MARK.finditer(self.marked)]
        return tuple(mark.name for mark in found if mark.kind == "argument")


def argument(name: str, *value: Any) -> str:
    """Name an argument in a message, or an argument with its value."""
    plain = f"{name}={value[0]!r}" if value else name
    return _mark(plain, "argument", name, *map(str, value))


def part(name: str, plain: str | None = None, **parameters: Any) -> str:
    """Name a kernel or a scan in a message by its class and, if they matter, its parameters.

    ``plain`` is the spelling for Python, by default the call of the constructor.
    """
    if plain is None:
        plain = f"gs.{public_place(name)}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"
    return _mark(plain, "part", name, *(f"{key}={value}" for key, value in parameters.items()))


def in_python(words: str) -> str:
    """Mark words that are for users of Python only."""
    return _mark(words, "python", "")


def _mark(*fields: str) -> str:
    return _OPEN + _NEXT.join(fields) + _CLOSE


def _read(fields: str) -> Mark:
    plain, kind, name, *values = fields.split(_NEXT)
    return Mark(plain, kind, name, tuple(values))


def _spell(marked: str, spell: Callable[[Mark], str]) -> str:
    return _MARK.sub(lambda found: spell(_read(found[1])), marked)


def escaped(text: object, keep: str = "") -> str:
    r"""Return a text in which characters that a terminal or a web page would interpret are escaped.

    Every name, state, path or text from a file is escaped before it is shown. Characters in ``keep``, for example line
    breaks, are not escaped.
    """
    return _ACTING.sub(lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", str(text))


def site_name(site: object) -> object:
    """Return the name of a site that is given as an object, such as a node of a graph: its text.

    Names and positions are returned as they are, and so is what cannot be the node of a graph.

    Examples
    --------
    >>> site_name((0, 1)), site_name("a"), site_name(3)
    ('(0, 1)', 'a', 3)
    """
    if isinstance(site, str | int) or site is None or not isinstance(site, Hashable):
        return site
    if hasattr(site, "__index__") or type(site).__name__ == "bool":  # positions and truth values of NumPy
        return site
    if type(site) is tuple:  # numbers of NumPy are written as those of Python
        return str(tuple(part.item() if hasattr(part, "item") else part for part in site))
    return str(site)


def unknown(what: str, name: object, known: Iterable[object], also: str = "") -> str:
    """Return the message about an unknown name, which suggests the nearest known one and lists all of them.

    ``what`` is the kind of the name, and ``also`` describes what else may be given, beginning with a comma or "or".
    """
    names = [str(each) for each in known]
    near = nearest(name, names)
    opening = f"did you mean {near!r}? There are" if near else "choose one of"
    return f"{what} {name!r} is unknown; {opening} {', '.join(names)}{also}."


def missing(needs: str, package: str, extra: str) -> str:
    """Return the message about an optional package that is not installed, with the command that installs it.

    Examples
    --------
    >>> missing("Plots need", "matplotlib", "report")
    'Plots need matplotlib, which is not installed; in the clone of gibbsite run: pip install -e ".[report]"'
    """
    return f'{needs} {package}, which is not installed; in the clone of gibbsite run: pip install -e ".[{extra}]"'


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a misspelled one, None if none is similar."""
    if not isinstance(name, str):
        return None
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=_LIKE)
    return by_lower[close[0]] if close else None
