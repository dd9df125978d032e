"""Sites and their states: labels, or intervals of numbers.

A lattice of a million equal sites needs no Python object per site: names are implicit numbers, and each distinct tuple
of labels is stored once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import describe, is_iterable, is_number
from gibbsite._common.arrays import Array, Bools, Floats, Ints, Ints32
from gibbsite._common.wording import nearest, site_name
from gibbsite.errors import ArgumentError, ModelError

Label: TypeAlias = str | int
"""What a state is called."""

SiteKey: TypeAlias = str | int
"""A site by name, or by position."""

Scope: TypeAlias = Sequence[SiteKey] | SiteKey
"""The sites of one factor; a single site may stand alone."""


MOST_STATES = 32_767
"""Most states a site can have: their codes are 16-bit numbers where they are sampled."""

_MOST_NAMES_TO_COMPARE = 20_000  # with a misspelt one


def frozen(values: npt.ArrayLike, dtype: type[Any]) -> Array:
    """Return a read-only, C-ordered array; copy only when the caller could still write to it."""
    array = np.asarray(values, dtype=dtype, order="C")
    if array.flags.writeable:
        if isinstance(values, np.ndarray) and np.may_share_memory(array, values):
            array = array.copy()
        array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Interval:
    """The values of a site that is a real number: those between two bounds, by default all real numbers.

    Parameters
    ----------
    low, high : float
        Bounds, low < high; they may be infinite.

    Examples
    --------
    >>> Interval(-6, 6)
    Interval(low=-6.0, high=6.0)
    """

    low: float = -math.inf
    high: float = math.inf
    #: The moments reported of such a site, in place of the probabilities of its states.
    moments: ClassVar[tuple[Label, ...]] = ("mean", "sd")

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not is_number(bound) or math.isnan(bound):
                raise ModelError(f"the bounds of an interval must be numbers, got {describe(bound)}.")
        if not self.low < self.high:
            raise ModelError(f"the interval from {self.low} to {self.high} is empty; low must be below high.")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))

    def __len__(self) -> int:
        return len(self.moments)


@dataclass(frozen=True, init=False)
class Angle(Interval):
    """The values of a site that is an angle, at the end of which they begin again.

    Proposals cross this end. Results report the mean direction and the resultant length, which is 1 if all directions
    are the same and 0 if they cancel, in place of mean and standard deviation.

    Parameters
    ----------
    period : float
        Length of a turn, 2 pi by default.
    low : float
        The smallest value; those of a site are from ``low`` to ``low + period``.

    Examples
    --------
    >>> Angle(360), Angle(low=-180, period=360).high
    (Angle(low=0.0, high=360.0), 180.0)
    """

    moments: ClassVar[tuple[Label, ...]] = ("mean", "resultant")

    def __init__(self, period: float = 2.0 * math.pi, low: float = 0.0) -> None:
        for name, value in (("period", period), ("low", low)):
            if not is_number(value) or not math.isfinite(value):
                raise ModelError(f"the {name} of an angle must be a finite number, got {describe(value)}.")
        if not period > 0:
            raise ModelError(f"the period of an angle must be positive, got {period!r}.")
        object.__setattr__(self, "low", float(low))
        object.__setattr__(self, "high", float(low) + float(period))

    @property
    def period(self) -> float:
        """Length of a turn."""
        return self.high - self.low


SiteKind: TypeAlias = tuple[Label, ...] | Interval
"""The states of a site: labels, or an interval of numbers."""


class SiteNames:
    """The names of n sites: ``names``, or ascending ``numbers``, or without both "0", "1", ..., "n - 1"."""

    __slots__ = ("_all", "_lookup", "_names", "_numbers", "n")

    def __init__(self, n: int, names: tuple[str, ...] | None = None, numbers: Ints32 | None = None) -> None:
        self.n, self._names, self._numbers = n, names, numbers
        self._all: tuple[str, ...] | None = names
        self._lookup: dict[str, int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return SiteNames, (self.n, self._names, self._numbers)

    def __getitem__(self, position: int) -> str:
        if self._names is not None:
            return self._names[position]
        return str(position if self._numbers is None else int(self._numbers[position]))

    def all(self) -> tuple[str, ...]:
        """Return every name, made at the first call."""
        if self._all is None:
            numbers = range(self.n) if self._numbers is None else self._numbers.tolist()
            self._all = tuple(map(str, numbers))
        return self._all

    def __iter__(self) -> Iterator[str]:
        yield from (self[k] for k in range(self.n)) if self._all is None else self._all

    def find(self, name: str) -> int | None:
        """Return the position of a name, or None."""
        if self._names is not None:
            if self._lookup is None:
                self._lookup = {each: k for k, each in enumerate(self._names)}
            return self._lookup.get(name)
        if not (name.isascii() and name.isdigit()) or (name[0] == "0" and len(name) > 1):
            return None
        number = int(name)
        if self._numbers is None:
            return number if number < self.n else None
        at = int(np.searchsorted(self._numbers, number))
        return at if at < self.n and int(self._numbers[at]) == number else None

    def keep(self, mask: Bools) -> SiteNames:
        """Return the names where the mask is true, order kept."""
        n = int(np.count_nonzero(mask))
        if self._names is not None:
            return SiteNames(n, tuple(self._names[k] for k in np.flatnonzero(mask).tolist()))
        numbers = np.flatnonzero(mask) if self._numbers is None else self._numbers[mask]
        return SiteNames(n, None, frozen(numbers.astype(np.int32), np.int32))

    def identity(self) -> tuple[str, ...] | Ints32 | None:
        """Return what distinguishes two sets of names, for the digest."""
        return self._names if self._names is not None else self._numbers


class Domains:
    """All sites of a model with their labels.

    Parameters
    ----------
    names : SiteNames
        The names.
    kinds : tuple of label tuples and intervals
        The distinct label tuples; an interval where sites are real numbers.
    kind_of : int array (n,)
        Which of them each site has; not read when there is only one.

    Attributes
    ----------
    n_sites : int
        Number of sites.
    cards : int array (n,)
        Number of states of each site; of a number, how many moments are reported.
    numbers : bool array (n,)
        Which sites are real numbers.

    Examples
    --------
    >>> domains = make_domains({"rain": ["no", "yes"], "sky": 3})
    >>> domains.cards.tolist(), domains.labels(0), domains.code(0, "yes"), domains.code(1, "2")
    ([2, 3], ('no', 'yes'), 1, 2)
    """

    __slots__ = ("_codes", "cards", "kind_of", "kinds", "n_sites", "names", "numbers")

    def __init__(self, names: SiteNames, kinds: tuple[SiteKind, ...], kind_of: Ints32) -> None:
        self.names, self.kinds, self.n_sites = names, kinds, names.n
        real = np.array([isinstance(kind, Interval) for kind in kinds], bool)
        if len(kinds) == 1:
            # One value stands for all sites: a view with stride zero costs nothing per site.
            self.kind_of: Ints32 = np.broadcast_to(np.zeros(1, np.int32), (names.n,))
            self.cards: Ints32 = np.broadcast_to(np.array([len(kinds[0])], np.int32), (names.n,))
            self.numbers: Bools = np.broadcast_to(real, (names.n,))
        else:
            self.kind_of = frozen(kind_of, np.int32)
            sizes = np.array([len(kind) for kind in kinds], np.int32)
            self.cards = frozen(sizes[self.kind_of], np.int32)
            self.numbers = frozen(real[self.kind_of], np.bool_)
        self._codes: dict[int, dict[Any, int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        kind_of = self.kind_of[:0] if len(self.kinds) == 1 else self.kind_of
        return Domains, (self.names, self.kinds, kind_of)

    def kind(self, position: int) -> SiteKind:
        """Return the states of one site: labels, or an interval."""
        return self.kinds[int(self.kind_of[position])]

    def labels(self, position: int) -> tuple[Label, ...]:
        """Return the state labels of one site, or the moments reported of a number."""
        kind = self.kinds[int(self.kind_of[position])]
        return kind.moments if isinstance(kind, Interval) else kind

    def among(self, positions: Array) -> Domains:
        """Return some of the sites, in the order given.

        Examples
        --------
        >>> make_domains({"rain": ["no", "yes"], "sky": 3}).among(np.array([1])).names.all()
        ('sky',)
        """
        names = SiteNames(len(positions), tuple(self.names[int(i)] for i in positions))
        return Domains(names, self.kinds, self.kind_of[positions])

    def content(self) -> Iterator[bytes]:
        """Yield what distinguishes these sites from others, for the digest of a model."""
        yield repr((self.names.identity(), self.kinds)).encode()
        yield np.ascontiguousarray(self.kind_of).tobytes()

    @property
    def offset(self) -> Ints:
        """Where the cells of each site start, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.cards, dtype=np.int64)])

    @property
    def periods(self) -> Floats:
        """Length of a turn of the sites that are angles, 0 for others."""
        turn = [kind.period if isinstance(kind, Angle) else 0.0 for kind in self.kinds]
        return np.array(turn, float)[self.kind_of]

    @property
    def angular(self) -> Floats:
        """NaN for sites with states, 0 for numbers, and radians per unit for angles.

        Runs record x and its square for a number x, and for an angle the cosine and sine of x in radians.
        """
        found = np.where(self.numbers, 0.0, np.nan)
        turns = self.periods > 0
        found[turns] = 2.0 * np.pi / self.periods[turns]
        return found

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Smallest and largest value of every site; of labels, codes."""
        pairs = [(k.low, k.high) if isinstance(k, Interval) else (0.0, len(k) - 1.0) for k in self.kinds]
        low, high = np.array(pairs, float).reshape(-1, 2).T
        return low[self.kind_of], high[self.kind_of]

    def code(self, position: int, label: object) -> int:
        """Return the state code of a label ("1" also means 1); unknown labels are an error."""
        kind = int(self.kind_of[position])
        codes = self._codes.get(kind)
        if codes is None:
            codes = {}
            for code, each in enumerate(self.labels(position)):
                codes[each] = codes[str(each)] = code
            self._codes[kind] = codes
        try:
            found = codes.get(label)
        except TypeError:  # unhashable, so certainly not a label
            found = None
        if found is None:
            found = codes.get(str(label))
        if found is None:
            labels = self.labels(position)
            near = nearest(label, (str(each) for each in islice(labels, _MOST_NAMES_TO_COMPARE)))
            meant = "" if near is None else f" (did you mean {near!r}?)"
            raise ArgumentError(
                f"site {self.names[position]!r} has no state {label!r}; its states are {_listing(labels)}{meant}."
            )
        return found

    def position(self, site: object, where: str = "", wrong: type[ModelError] = ArgumentError) -> int:
        """Return the position of a site; ``where`` opens the message of an error if there is none."""
        subject = f"{where} names an unknown site" if where else "there is no site"
        if isinstance(site, str):
            found = self.names.find(site)
            if found is None:
                raise wrong(f"{subject} {site!r}; {self._hint(site)}")
            return found
        if isinstance(site, (int, np.integer)) and not isinstance(site, (bool, np.bool_)):
            if 0 <= site < self.n_sites:
                return int(site)
            positions = f"from 0 to {self.n_sites - 1}" if self.n_sites else "nowhere: the model is empty"
            raise wrong(f"{subject} at position {site}; positions run {positions}.")
        found = self.names.find(name) if isinstance(name := site_name(site), str) else None
        if found is not None:
            return found
        raise wrong(f"{subject} {site!r}; give a name (str) or a position (int).")

    def positions(self, scope: Scope, where: str) -> tuple[int, ...]:
        """Return the positions of a scope, all different."""
        alone = isinstance(scope, (str, int, np.integer))
        if not (alone or is_iterable(scope)):
            raise ModelError(f"{where} has the scope {scope!r}; give the names or positions of its sites.")
        members: Iterable[Any] = (scope,) if alone else iter(scope)  # type: ignore[arg-type]
        found = tuple(self.position(site, where, ModelError) for site in members)
        if len(set(found)) < len(found):
            twice = next(p for k, p in enumerate(found) if p in found[:k])
            raise ModelError(f"{where} names the site {self.names[twice]!r} twice; a scope lists each site once.")
        return found

    def keep(self, mask: Bools) -> Domains:
        """Return the sites where the mask is true, order kept."""
        return Domains(self.names.keep(mask), self.kinds, self.kind_of[mask])

    def scope_text(self, positions: Iterable[Any]) -> str:
        """Return a scope for a message: ``(A, B)``."""
        return f"({', '.join(self.names[int(p)] for p in positions)})"

    def entry_text(self, positions: Iterable[Any], codes: Iterable[Any]) -> str:
        """Return an assignment for a message: ``A='yes', B=1``."""
        return ", ".join(
            f"{self.names[int(p)]}={self.labels(int(p))[int(c)]!r}" for p, c in zip(positions, codes, strict=True)
        )

    def _hint(self, name: str) -> str:
        if self.n_sites <= _MOST_NAMES_TO_COMPARE:
            near = nearest(name, self.names.all())
            if near is not None:
                return f"did you mean {near!r}?"
        if self.n_sites == 0:
            return "the model has no sites."
        return f"the sites are {_listing(self.names[k] for k in range(min(self.n_sites, 9)))}."


def make_domains(
    sites: Mapping[str, Sequence[Label] | int | Interval] | Sequence[str] | int,
    states: Sequence[Label] | int | Interval | None = None,
) -> Domains:
    """Return the domains of sites: a mapping name -> states, or names or a number of sites that all have ``states``."""
    if isinstance(sites, Mapping):
        if states is not None:
            raise ModelError("states= is given twice: the mapping of sites already lists them.")
        names = _read_names(sites)
        # (0, 1) == (False, True), so the types of the labels are part of the key.
        kinds: dict[tuple[SiteKind, tuple[type, ...]], int] = {}
        kind_of = np.empty(len(sites), np.int32)
        for k, (name, given) in enumerate(sites.items()):
            kind = given if isinstance(given, Interval) else read_labels(given, f"site {name!r}")
            types = () if isinstance(kind, Interval) else tuple(map(type, kind))
            kind_of[k] = kinds.setdefault((kind, types), len(kinds))
        return Domains(names, tuple(labels for labels, _ in kinds), kind_of)
    if isinstance(sites, (int, np.integer)):
        if sites < 0:
            raise ModelError(f"the number of sites must not be negative, got {sites}.")
        if sites >= 2**31:
            raise ModelError(f"a model has fewer than 2**31 sites, got {sites:,}.")
        names = SiteNames(int(sites))
    else:
        names = _read_names(sites)
    if states is None:
        raise ModelError("the sites have no states; pass states=2, or a list of labels, or a mapping name -> labels.")
    kind = states if isinstance(states, Interval) else read_labels(states, "every site")
    return Domains(names, (kind,), np.zeros(0, np.int32))


def _read_names(given: Iterable[str]) -> SiteNames:
    if isinstance(given, (str, bytes)):
        raise ModelError(f"sites must be a list of names, not the single string {given!r}.")
    if not is_iterable(given):
        raise ModelError(
            f"sites must be a mapping name -> states, a list of names, or the number of sites, got {given!r}."
        )
    names = tuple(str(name) if isinstance(name, str) else name for name in given)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise ModelError(
                f"a site name must be a string, got {name!r} ({type(name).__name__}); integers are positions."
            )
        if name in seen:
            raise ModelError(f"the site name {name!r} is given twice; names must differ.")
        seen.add(name)
    if all(name == str(k) for k, name in enumerate(names)):
        return SiteNames(len(names))
    return SiteNames(len(names), names)


def read_labels(given: Sequence[Label] | int, owner: str) -> tuple[Label, ...]:
    """Return the state labels of a site, which messages call ``owner``; refuse anything else."""
    if isinstance(given, (str, bool)) or not (isinstance(given, (int, np.integer)) or is_iterable(given)):
        raise ModelError(f"{owner} needs a sequence of state labels or a number of states, got {given!r}.")
    if isinstance(given, (int, np.integer)):
        given = range(int(given))
    labels = tuple(_read_label(label, owner) for label in islice(given, MOST_STATES + 1))
    if len(labels) > MOST_STATES:
        raise ModelError(
            f"{owner} has more than {MOST_STATES:,} states, which is the limit; join states, split the "
            "site into several, or make it a number (gs.Interval in gs.ContinuousModel)."
        )
    if not labels:
        raise ModelError(f"{owner} has no states; a site needs at least one.")
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts) or len(set(labels)) < len(labels):
        twice = next(label for k, label in enumerate(labels) if texts[k] in texts[:k] or label in labels[:k])
        raise ModelError(f"{owner} has the state label {twice!r} twice; labels must differ.")
    return labels


def _read_label(label: object, owner: str) -> Label:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (bool, np.bool_)):
        return bool(label)
    if isinstance(label, (int, np.integer)):
        return int(label)
    raise ModelError(f"{owner} has the state label {label!r} ({type(label).__name__}); labels are strings or integers.")


def _listing(items: Iterable[object], most: int = 8) -> str:
    shown = [repr(item) for item in items]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
