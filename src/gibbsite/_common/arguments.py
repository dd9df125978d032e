"""Check that arguments of public functions have the types that the functions declare.

What an annotation cannot express, such as the range of a number, functions check themselves.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from math import inf
from numbers import Integral, Real
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from gibbsite._common.wording import argument, site_name
from gibbsite.errors import ArgumentError

if TYPE_CHECKING:
    from gibbsite._common.arrays import Ints

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K", bound=type[Any])

_MOST_SHOWN = 60  # characters of a wrong argument
#: Larger values of these arguments are refused as mistakes: they would exhaust the memory before the first draw.
_LARGEST = {
    "chains": 10_000_000,
    "particles": 100_000_000,
    "repeats": 10_000_000,
    "size": 100_000_000,
    "many": 100_000_000,
    "bins": 10_000_000,
    "places": 100_000,
    "clusters": 10_000_000,
    "pairs": 10_000_000,
}


def is_path(value: Any) -> bool:
    r"""Tell whether a value can be the path of a file."""
    if not isinstance(value, str | os.PathLike):
        return False
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # an unpaired surrogate
        return False


def is_number(value: Any) -> bool:
    """Tell whether a value is a real number that a float can hold; True and False do not count."""
    if not isinstance(value, Real) or is_flag(value):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_flag(value: Any) -> bool:
    """Tell whether an argument is a boolean of Python or of NumPy, without loading NumPy."""
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def is_iterable(value: Any) -> bool:
    """Tell whether a value can be iterated over; sparse matrices and arrays without dimensions cannot."""
    try:
        iter(value)
    except TypeError:
        return False
    return not hasattr(value, "tocsr")


def is_numeric(value: Any) -> bool:
    """Tell whether a value is, or can be converted to, an array of real numbers or booleans."""
    import numpy as np

    try:
        return np.asarray(value).dtype.kind in "biuf"
    except Exception:  # conversion of an arbitrary object may raise anything
        return False


# For each annotation: types that always fit, a test for values of other types, and the word used in messages. Arguments
# with other annotations are not checked.
_LISTS: set[type] = {list, tuple, set, frozenset, dict}
_KNOWN: dict[str, tuple[set[type], Callable[[Any], bool], str]] = {
    "None": ({type(None)}, lambda value: False, "None"),
    "bool": ({bool}, is_flag, "True or False"),
    "float": ({float}, is_number, "a number"),
    "str": ({str}, lambda value: isinstance(value, str), "text"),
    "Path": (set(), is_path, "a path"),
    "PathLike": (set(), is_path, "a path"),
    "Mapping": ({dict}, lambda value: isinstance(value, Mapping), "a mapping"),
    "Sequence": (_LISTS, is_iterable, "a list"),
    "Iterable": (_LISTS, is_iterable, "a list"),
    "Collection": (_LISTS, lambda value: isinstance(value, Collection) and is_iterable(value), "a list"),
    "list": (_LISTS, is_iterable, "a list"),
    "tuple": (_LISTS, is_iterable, "a list"),
    "dict": ({dict}, lambda value: isinstance(value, Mapping), "a mapping"),
    "Callable": ({FunctionType}, callable, "a function"),
    "int": ({int}, is_number, "a whole number"),
    **dict.fromkeys(("Array", "Floats", "Ints", "Integers", "Bytes"), (set(), is_numeric, "an array of numbers")),
}
# Classes by name, so that they need not be loaded: the base class that identifies them, and the word used in messages.
_CLASSES = {
    **dict.fromkeys(("Model", "FactorGraph", "ContinuousModel"), ("Model", "a model")),
    "Conditionals": ("Conditionals", "a model of gs.Conditionals"),
    **dict.fromkeys(("StoredPairs", "StoredPotts"), ("StoredPairs", "a model of gs.open_model")),
    "Graph": ("Graph", "an answer of gs.graphs.compile_graph"),
    "Interval": ("Interval", "an interval, such as gs.Interval(0, 1)"),
    "Kernel": ("Kernel", "a kernel, such as gs.Gibbs()"),
    "Proposal": ("Proposal", "a proposal, such as gs.kernels.Proposal(...)"),
    "ImportanceProposal": ("ImportanceProposal", "a proposal, such as gs.importance.Forward()"),
    "Ladder": ("Ladder", "a ladder that a run has found"),
    "Criteria": ("Criteria", "gs.Criteria(...)"),
    "Sweeps": ("Sweeps", "gs.Sweeps(...)"),
    "Steps": ("Steps", "gs.Steps(...)"),
    "Checkpoint": ("Checkpoint", "gs.Checkpoint(...)"),
    "Axes": ("Axes", "axes of Matplotlib"),
    **dict.fromkeys(("Figure", "SubFigure"), ("FigureBase", "a figure of Matplotlib")),
    "Scan": ("Scan", "a scan, such as gs.Systematic()"),
    "Result": ("Result", "an answer of gs.sample"),
    "Document": ("Document", "a document"),
    "Tagged": ("Tagged", "an answer of EntityRecognizer.tag"),
    "Descriptors": ("Descriptors", "descriptors of an image"),
    "SiteTable": ("SiteTable", "a table of marginals"),
    "Generator": ("Generator", "a generator of NumPy"),
    "Enumeration": ("Enumeration", "an answer of gs.exact.enumerate"),
    "Legend": ("Legend", "an answer of gs.applications.segmentation.make_legend"),
    "LabelledImages": ("LabelledImages", "labelled images; see gs.applications.segmentation.read_labelled"),
}


def _all(fits: Callable[[Any], bool], value: Any, once: bool) -> bool:
    """Tell whether all items of a list fit; an iterator passes if the argument is read only ``once``."""
    if not isinstance(value, Collection) or not is_iterable(value):
        return once and is_iterable(value)
    return all(map(fits, value))


def _rule(name: str, items: str = "") -> tuple[set[type], Callable[[Any], bool], str] | None:
    """Return the rule for arguments of a declared type; None if this module does not know the type."""
    item = _rule(items) if items in (*_CLASSES, "PathLike") else None
    if item is not None and name in ("Sequence", "Iterable", "Collection", "list"):
        return set(), lambda value: _all(item[1], value, name == "Iterable"), f"a list in which every item is {item[2]}"
    if name in _KNOWN or name.rpartition(".")[2] not in _CLASSES:
        return _KNOWN.get(name)
    base, word = _CLASSES[name.rpartition(".")[2]]
    return set(), lambda value: base in [kind.__name__ for kind in type(value).__mro__], word


def checked(function: F) -> F:
    """Make a function refuse arguments whose types differ from those it declares, for all types known to this module.

    For a class, this applies to all of its public methods.
    """
    if isinstance(function, type):
        for name, method in vars(function).copy().items():
            if not name.startswith("_") and isinstance(method, FunctionType):
                setattr(function, name, checked(method))
        return function
    rules: dict[str, tuple[set[type], list[Callable[[Any], bool]], str]] = {}
    places: list[str] = []
    of_class: set[str] = set()  # arguments that can be checked by their type alone
    models: list[tuple[int, str]] = []  # places and names of arguments that can be networks, which have a model
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            places.append(parameter.name)
        text = str(parameter.annotation)
        names = _alternatives(text)
        # a text is a valid path
        items = dict(re.findall(r"(?:^|\| *)(\w+)\[(?:\w+\.)*(\w+)\]", text))
        found = [_rule(name, items.get(name, "")) for name in names if not (name == "str" and "Path" in names)]
        known = [one for one in found if one is not None]
        if any(_CLASSES.get(name.rpartition(".")[2], ("",))[0] == "Model" for name in (*names, *items.values())):
            models.append((len(places) - 1 if parameter.name in places else sys.maxsize, parameter.name))
        if len(known) == len(found) and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            words = " or ".join(dict.fromkeys(word for _, _, word in known))
            if all(name.rpartition(".")[2] in _CLASSES for name in names):
                of_class.add(parameter.name)
            rules[parameter.name] = (
                set().union(*(types for types, _, _ in known)),
                [fits for _, fits, _ in known],
                words,
            )

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for place, name in models:
            if name in given:
                given[name] = as_model(given[name])
            elif place < len(args):
                args = (*args[:place], as_model(args[place]), *args[place + 1 :])
        for name, value in (*zip(places, args, strict=False), *given.items()):
            if name in rules:
                types, tests, words = rules[name]
                if type(value) not in types:
                    if not any(fits(value) for fits in tests):
                        raise ArgumentError(f"{argument(name)} must be {words}, got {describe(value)}.")
                    if name in of_class:
                        types.add(type(value))
        return function(*args, **given)

    return call  # type: ignore[return-value]


def as_model(value: Any) -> Any:
    """Return the model of a network, and of each network in a list; other values as they are."""
    if hasattr(type(value), "to_model"):
        return value.to_model()
    if isinstance(value, list | tuple) and any(hasattr(type(each), "to_model") for each in value):
        return [as_model(each) for each in value]
    return value


def checked_constructor(kind: K) -> K:
    """Make the constructor of a class refuse what :func:`checked` refuses."""
    kind.__init__ = checked(kind.__init__)
    return kind


def check_count(name: str, value: Any) -> None:
    """Refuse an argument that is not a whole number of at least zero."""
    whole = isinstance(value, Integral) and not is_flag(value)
    if not whole or not 0 <= int(value) <= sys.maxsize:
        raise ArgumentError(f"{argument(name)} must be a whole number of at least 0, got {describe(value)}.")


def check_seconds(seconds: Any) -> float:
    """Return a time limit, infinite for None; refuse anything but a positive number."""
    if seconds is None:
        return inf
    if not (is_number(seconds) and 0.0 < seconds < inf):
        raise ArgumentError(f"{argument('seconds')} must be a positive number, got {seconds!r}.")
    return float(seconds)


def check_share(name: str, value: Any) -> float:
    """Return a number strictly between 0 and 1; refuse anything else."""
    if not (is_number(value) and 0.0 < value < 1.0):
        raise ArgumentError(f"{argument(name)} must be a number between 0 and 1, got {value!r}.")
    return float(value)


def check_number(name: str, value: Any, *, zero: bool = False, below: float = inf) -> float:
    """Return a number above 0, or at least 0 if ``zero`` is true, and below a bound; refuse anything else.

    Examples
    --------
    >>> check_number("coupling", 0, zero=True)
    0.0
    """
    if not (is_number(value) and 0.0 <= value < below and (zero or value > 0.0)):
        bounds = ("of at least 0" if zero else "above 0") + (f" and below {below:g}" if below < inf else "")
        raise ArgumentError(f"{argument(name)} must be a number {bounds}, got {value!r}.")
    return float(value)


def check_iteration(damping: Any, tolerance: Any) -> tuple[float, float]:
    """Return the damping and the tolerance of a fixed-point iteration; refuse invalid values."""
    if not is_number(damping) or not 0.0 < damping <= 1.0:
        raise ArgumentError(f"{argument('damping')} must be a number above 0 and at most 1, got {damping!r}.")
    if not is_number(tolerance) or not 0.0 <= tolerance < inf:
        raise ArgumentError(f"{argument('tolerance')} must be a number of at least 0, got {tolerance!r}.")
    return float(damping), float(tolerance)


def check_flags(**given: Any) -> None:
    """Refuse arguments that are neither True nor False."""
    for name, value in given.items():
        if value is not True and value is not False and not is_flag(value):
            raise ArgumentError(f"{argument(name)} must be True or False, got {describe(value)}.")


def check_integer(name: str, value: Any, least: int, largest: float = math.inf) -> int:
    """Return an argument that is a whole number, such as 4 or 4.0; refuse anything else."""
    whole = type(value) is int or (is_number(value) and math.isfinite(value) and int(value) == value)
    if not whole or value < least:
        raise ArgumentError(f"{argument(name)} must be a whole number of at least {least}, got {describe(value)}.")
    largest = min(largest, _LARGEST.get(name, math.inf))
    if value > largest:
        raise ArgumentError(f"{argument(name)} must be at most {largest:,}, got {describe(value)}.")
    return int(value)


def read_integers(name: str, value: Any, least: int = 0, largest: int = sys.maxsize) -> Ints:
    """Return an array of whole numbers, of any shape, given as an argument.

    Examples
    --------
    >>> read_integers("sweeps", [3, 4.0]).tolist()
    [3, 4]
    """
    import numpy as np

    if is_numeric(value):
        array = np.asarray(value)
        with np.errstate(invalid="ignore"):
            whole = array.astype(np.int64)
        if (whole == array).all() and (whole >= least).all() and (whole <= largest).all():
            return whole
    limit = f"at least {least}" if largest == sys.maxsize else f"{least} to {largest}"
    raise ArgumentError(f"{argument(name)} must be whole numbers of {limit}, got {describe(value)}.")


def read_sizes(name: str, value: Any, length: int, least: int = 1, largest: int = 100_000) -> tuple[int, ...]:
    """Return ``length`` whole numbers, such as the two sizes of an image."""
    found = read_integers(name, value, least, largest)
    if found.shape != (length,):
        raise ArgumentError(f"{argument(name)} must be {length} whole numbers, got {describe(value)}.")
    return tuple(found.tolist())


def describe(value: Any) -> str:
    """Return a short description of a wrong argument."""
    if _is_array(value):
        return f"an array of shape {value.shape}"
    kind = type(value).__name__
    if isinstance(value, int) and abs(value) > 10**18:
        return "a whole number that is too large"
    try:
        shown = repr(value)
    except Exception:
        return f"an object of type {kind}"
    return shown if len(shown) <= _MOST_SHOWN and "\n" not in shown else f"an object of type {kind}"


def read_query(model: Any, query: Any) -> list[int] | None:
    """Return the sorted positions of the free sites that a query names; None, which stands for all, stays None."""
    if query is None:
        return None
    seen = getattr(model, "evidence", {})
    sites = check_sites("query", query)
    return sorted(
        {int(model.index(site)) for site in sites if not (isinstance(site_name(site), str) and site_name(site) in seen)}
    )


def check_sites(name: str, sites: Any) -> tuple[Any, ...]:
    """Return a list of sites as a tuple; refuse a single name and anything else that is not a list."""
    if isinstance(sites, str) or not is_iterable(sites):
        raise ArgumentError(f"{argument(name)} must be a list of sites, got {describe(sites)}.")
    return tuple(sites)


def check_list(name: str, value: Any, items: str) -> list[Any]:
    """Return the items of a list; refuse text and anything else that is not a list."""
    if isinstance(value, str | bytes) or not is_iterable(value):
        raise ArgumentError(f"{argument(name)} must be a list of {items}, got {describe(value)}.")
    return list(value)


def _alternatives(annotation: str) -> list[str]:
    """Return the names of the types in a union, without their type arguments."""
    while (bare := re.sub(r"\[[^][]*\]", "", annotation)) != annotation:
        annotation = bare
    return [name.strip() for name in annotation.split("|")]
