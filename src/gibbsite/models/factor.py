"""Groups of factors of equal shape, and the general one: tables of log-potentials.

A group holds m factors over r sites each as arrays, with no Python object per factor. Groups
whose factors have a single weight are in `weighted`, regular lattices in `lattice`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked, is_iterable
from gibbsite._common.arrays import Floats, Ints32, Positions
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, Scope, frozen

if TYPE_CHECKING:
    from gibbsite.models.evidence import Folding

_ROW_TOLERANCE = 1e-2  # published networks round their tables
LARGEST = 1e100
"""Largest size of a weight or log-potential: sums of any number of them, and their squares, are finite."""
TOO_LARGE = f"weights and log-potentials lie between -{LARGEST:g} and {LARGEST:g}"
"""The same for messages."""


class FactorGroup(Protocol):
    """Some factors of equal shape.

    The groups of the library are frozen dataclasses: `TableFactors`, `SpinFactors`, `AgreementFactors`,
    `LatticeFactors`, `FieldFactors` and `DistanceFactors`.
    """

    @property
    def name(self) -> str | None:
        """What `FactorGraph.reweight` and `FactorGraph.group` call the group."""

    @property
    def size(self) -> int:
        """Number of factors m."""

    @property
    def arity(self) -> int:
        """Number of sites r of each factor."""

    @property
    def scopes(self) -> Ints32:
        """Positions of the sites, shape (m, r)."""

    @property
    def weights(self) -> Floats | tuple[Floats, ...]:
        """The numbers `reweighted` replaces."""

    @property
    def directed(self) -> bool:
        """Whether each factor is a conditional table of its last site given the others."""

    def log_tables(self, cards: Ints32) -> Floats:
        """Return log-potentials (m or 1, K1, ..., Kr); 1 when all factors share one table."""

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at the state codes ``x`` of all sites."""

    def check(self, domains: Domains) -> None:
        """Raise `ModelError`, naming site or factor, unless the group fits the sites."""

    def check_weights(self, domains: Domains) -> None:
        """Do the same for a group that :meth:`reweighted` has made from one that fits the sites."""

    def reweighted(self, weights: Any) -> FactorGroup:
        """Return the same structure with other weights; the scopes are not copied."""

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Return what remains of the factors on the free sites, and the constant part."""


class WeightedGroup:
    """Members that groups of factors with weights, and without tables, have in common."""

    def __reduce__(self) -> tuple[Any, ...]:
        record: Any = self
        return type(self), tuple(getattr(record, field.name) for field in fields(record))

    @property
    def size(self) -> int:
        """Number of factors."""
        record: Any = self
        return len(record.scopes)

    @property
    def arity(self) -> int:
        """Number of sites per factor."""
        return 2

    @property
    def directed(self) -> bool:
        """Never a conditional table."""
        return False

    def check_weights(self, domains: Domains) -> None:
        """Raise `ModelError` unless the group fits the sites; its scopes are known to do so."""
        record: Any = self
        record.check(domains)

    def reweighted(self, weights: Any) -> Any:
        """Return the group with other weights, given as in the constructor."""
        record: Any = self
        return replace(record, weights=weights)


@dataclass(frozen=True, eq=False, init=False)
class TableFactors:
    """Factors given by tables of log-potentials.

    Note that these are *logarithms*, as in ``log_factors`` of :class:`FactorGraph`; its ``factors``, pairs
    ``(scope, table)``, are potentials themselves.

    Parameters
    ----------
    scopes : int array (m, r)
        Positions of the sites.
    log_tables : float array (m or 1, K1, ..., Kr)
        Logarithms of the potentials, ``-inf`` for impossible; first axis 1 when all factors share one table.
    directed : bool
        Each factor is a conditional probability table of its last site given the others.
    name : str, optional
        Name of the group.

    Examples
    --------
    >>> import numpy as np
    >>> chain = TableFactors([[0, 1], [1, 2]], np.log([[[0.9, 0.1], [0.2, 0.8]]]))
    >>> chain.size, chain.arity, round(float(np.exp(chain.log_potential(np.array([0, 1, 1])))), 3)
    (2, 2, 0.08)
    """

    scopes: Ints32
    weights: Floats
    directed: bool
    name: str | None

    @checked
    def __init__(
        self, scopes: npt.ArrayLike, log_tables: npt.ArrayLike, directed: bool = False, name: str | None = None
    ) -> None:
        rows = read_scopes(scopes)
        tables = frozen(read_reals(log_tables, f"the log-tables of {group_text(name)}"), np.float64)
        m, r = rows.shape
        if tables.ndim != r + 1 or tables.shape[0] not in (1, m):
            raise ModelError(
                f"{group_text(name)} has scopes of shape {rows.shape} and log-tables of "
                f"shape {tables.shape}; expected ({m} or 1, K1, ..., K{r})."
            )
        store(self, scopes=rows, weights=tables, directed=bool(directed), name=name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.scopes, self.weights, self.directed, self.name)

    @property
    def size(self) -> int:
        """Number of factors."""
        return len(self.scopes)

    @property
    def arity(self) -> int:
        """Number of sites per factor."""
        return int(self.scopes.shape[1])

    def log_tables(self, cards: Ints32) -> Floats:
        """Return the tables as stored."""
        return self.weights

    def log_potential(self, x: Ints32) -> float:
        """Return the sum of all log-potentials at ``x``."""
        which = np.zeros(1, np.intp) if len(self.weights) == 1 else np.arange(self.size)
        return float(self.weights[(which, *x[self.scopes].T)].sum())

    def check(self, domains: Domains) -> None:
        """Raise `ModelError` unless tables and sites fit and every factor is possible."""
        check_scopes(self, domains)
        shape = self.weights.shape[1:]
        fits = domains.cards[self.scopes] == np.array(shape, np.int32)
        if not fits.all():
            k = int(np.argmin(fits.all(axis=1)))
            raise _wrong_shape(factor_text(self, k, domains), shape, self.scopes[k], domains)
        self.check_weights(domains)

    def check_weights(self, domains: Domains) -> None:
        """Raise `ModelError` unless every factor is possible, and normalised where it is conditional."""
        check_values(self.weights, domains, self.scopes, lambda k: factor_text(self, k, domains), log=True)
        if self.directed:
            check_rows(self.weights, domains, self.scopes, lambda k: factor_text(self, k, domains))

    def reweighted(self, weights: Any) -> TableFactors:
        """Return the group with other log-tables: (m or 1, K1, ..., Kr), or one table for all."""
        tables = read_reals(weights, f"the log-tables of {group_text(self.name)}")
        shape = self.weights.shape[1:]
        if tables.shape == shape:
            tables = tables[None]
        if tables.shape not in ((self.size, *shape), (1, *shape)):
            raise ModelError(
                f"{group_text(self.name)} needs log-tables of shape {(self.size, *shape)}, "
                f"{(1, *shape)} or {shape}, got {tables.shape}."
            )
        return TableFactors(self.scopes, tables, self.directed, self.name)

    def fold(self, folding: Folding) -> tuple[list[FactorGroup], float]:
        """Slice every table at the observed codes of its sites."""
        codes = folding.codes[self.scopes]
        patterns = (codes >= 0) @ (1 << np.arange(self.arity, dtype=np.int64))
        groups: list[FactorGroup] = []
        constant = 0.0
        # Pattern 0, no site observed, is always included: a named group stays even without factors.
        for pattern in np.union1d(patterns, [0]).tolist():
            rows = np.flatnonzero(patterns == pattern)
            axes = [a for a in range(self.arity) if pattern >> a & 1]
            free = [a for a in range(self.arity) if not pattern >> a & 1]
            scopes = folding.position[self.scopes[rows][:, free]]
            if not axes:
                tables = self.weights if len(self.weights) == 1 else self.weights[rows]
                groups.append(TableFactors(scopes, tables, self.directed, self.name))
                continue
            tables = self._slices(rows, axes, codes[rows][:, axes])
            possible = tables.reshape(len(rows), -1).max(axis=1) > -np.inf
            if not possible.all():
                k = int(rows[np.argmin(possible)])
                raise folding.impossible(factor_text(self, k, folding.domains), self.scopes[k])
            if free:
                # Without its child a conditional table is a likelihood of the parents.
                directed = self.directed and free[-1] == self.arity - 1
                groups.append(TableFactors(scopes, tables, directed))
            else:
                constant += float(tables.sum())
        return groups, constant

    def _slices(self, rows: Positions, axes: list[int], codes: Ints32) -> Floats:
        """Return the tables of some factors at given codes of some axes, free axes in order."""
        shared = len(self.weights) == 1
        tables = self.weights if shared else self.weights[rows]
        observed = [tables.shape[1 + a] for a in axes]
        tables = np.moveaxis(tables, [1 + a for a in axes], range(1, 1 + len(axes)))
        tables = tables.reshape(len(tables), -1, *tables.shape[1 + len(axes) :])
        entry = np.ravel_multi_index(tuple(codes.T), tuple(observed))
        sliced: Floats = tables[np.zeros(1, np.intp) if shared else np.arange(len(rows)), entry]
        return sliced


def gather_tables(
    domains: Domains,
    factors: Iterable[tuple[Scope, npt.ArrayLike]],
    log_factors: Iterable[tuple[Scope, npt.ArrayLike]],
    *,
    directed: bool,
) -> tuple[list[TableFactors], float]:
    """Merge single (scope, table) factors into one group per shape, and the log of those over no site at all."""
    shapes: dict[tuple[int, ...], list[tuple[Ints32, Floats]]] = {}
    for log, given in ((False, factors), (True, log_factors)):
        for shape, part in _stack(domains, given, log=log, directed=directed):
            shapes.setdefault(shape, []).append(part)
    groups: list[TableFactors] = []
    offset = 0.0
    for shape, parts in shapes.items():
        scopes, tables = parts[0]
        if len(parts) > 1:
            scopes = np.concatenate([each for each, _ in parts])
            tables = np.concatenate([each for _, each in parts])
        if shape:
            tables.setflags(write=False)
            groups.append(TableFactors(scopes, tables, directed))
        else:
            offset = float(tables.sum())
    return groups, offset


def _stack(
    domains: Domains, factors: Iterable[tuple[Scope, npt.ArrayLike]], *, log: bool, directed: bool
) -> Iterable[tuple[tuple[int, ...], tuple[Ints32, Floats]]]:
    """Yield per shape the scopes and the checked log-tables of single factors."""
    what = "log_factors" if log else "factors"
    if not is_iterable(factors):
        raise ModelError(f"{what} must be a list of pairs (scope, table), got {factors!r}.")
    cards = domains.cards
    buckets: dict[tuple[int, ...], tuple[list[int], list[tuple[int, ...]], list[Floats]]] = {}
    for k, item in enumerate(factors):
        try:
            scope, values = item
        except (TypeError, ValueError):
            raise ModelError(f"{what}[{k}] is not a pair (scope, table).") from None
        where = domains.positions(scope, f"{what}[{k}]")
        shape = tuple([int(cards[p]) for p in where])
        table = read_reals(values, f"the entries of {what}[{k}] over {domains.scope_text(where)}")
        if table.shape != shape:
            if table.size != math.prod(shape) or table.ndim > 1:
                text = f"{what}[{k}] over {domains.scope_text(where)}"
                raise _wrong_shape(text, table.shape, where, domains)
            table = table.reshape(shape)
        bucket = buckets.setdefault(shape, ([], [], []))
        bucket[0].append(k)
        bucket[1].append(where)
        bucket[2].append(table)
    for shape, (numbers, scopes, tables) in buckets.items():
        stack = np.stack(tables)
        rows = np.array(scopes, np.int32).reshape(len(scopes), len(shape))

        def text_of(k: int, numbers: list[int] = numbers, scopes: list[tuple[int, ...]] = scopes) -> str:
            return f"{what}[{numbers[k]}] over {domains.scope_text(scopes[k])}"

        check_values(stack, domains, rows, text_of, log=log)
        if not log:
            with np.errstate(divide="ignore"):
                np.log(stack, out=stack)
        if directed and not shape:
            raise ModelError(f"{what}[{numbers[0]}] has no site, so it is no conditional table; remove it.")
        if directed:
            check_rows(stack, domains, rows, text_of)
        yield shape, (rows, stack)


def store(group: object, **values: object) -> None:
    """Set the fields of a frozen dataclass from its own constructor."""
    for name, value in values.items():
        object.__setattr__(group, name, value)


def read_scopes(scopes: npt.ArrayLike) -> Ints32:
    """Return scopes as a read-only int32 array of shape (m, r), r at least 1."""
    try:
        array = np.asarray(scopes)
    except (TypeError, ValueError):
        raise ModelError("scopes must have one row per factor, all of equal length.") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise ModelError(f"scopes must have shape (m, r) with one row per factor, got shape {array.shape}.")
    if array.dtype.kind not in "iu" and array.size:
        raise ModelError(f"scopes must hold integer site positions, got {array.dtype} numbers.")
    if array.dtype != np.int32 and array.size and not -1 < array.min() <= array.max() < 2**31:
        raise ModelError("scopes must hold site positions from 0 on, and fewer than 2**31 sites.")
    result: Ints32 = frozen(scopes, np.int32)
    return result


def check_scopes(group: FactorGroup, domains: Domains) -> None:
    """Raise `ModelError` unless all positions exist and no factor has a site twice."""
    scopes = group.scopes
    if scopes.size == 0:
        return
    if scopes.min() < 0 or scopes.max() >= domains.n_sites:
        k = int(np.argmax(((scopes < 0) | (scopes >= domains.n_sites)).any(axis=1)))
        raise ModelError(
            f"factor {k} of {group_text(group.name)} names the site positions "
            f"{scopes[k].tolist()}, but the model has {domains.n_sites} sites."
        )
    twice = np.zeros(len(scopes), np.bool_)
    for first, second in itertools.combinations(scopes.T, 2):
        twice |= first == second
    if twice.any():
        k = int(np.argmax(twice))
        raise ModelError(f"{factor_text(group, k, domains)} names a site twice; a scope lists each site once.")


def check_values(tables: Floats, domains: Domains, scopes: Ints32, text_of: Callable[[int], str], *, log: bool) -> None:
    """Raise `ModelError` for NaN, infinite or negative entries and for all-zero factors."""
    if tables.size == 0:
        return
    lowest = -np.inf if log else 0.0
    # Two reductions find every bad entry: NaN spreads through both.
    if not (tables.min() >= lowest and tables.max() < np.inf):
        bad = ~((tables >= lowest) & (tables < np.inf))
        k, *codes = np.unravel_index(int(np.argmax(bad)), tables.shape)
        value = tables[(k, *codes)]
        entry = domains.entry_text(scopes[k], codes)
        at = f" at {entry}" if entry else ""
        noun = "log-potential" if log else "potential"
        if np.isnan(value):
            problem, advice = f"the {noun} NaN", "give a number"
        elif value > 0:
            problem, advice = f"an infinite {noun}", f"give a finite {noun}"
        else:
            problem = f"the negative potential {value:g}"
            advice = "potentials are not negative; log-potentials go into log_factors"
        raise ModelError(f"{text_of(int(k))} has {problem}{at}; {advice}.")
    if log:
        far = (np.abs(tables) > LARGEST) & (tables > -np.inf)
        if far.any():
            k, *codes = np.unravel_index(int(np.argmax(far)), tables.shape)
            raise ModelError(
                f"{text_of(int(k))} has the log-potential {tables[(k, *codes)]:g}; {TOO_LARGE}, and "
                "-inf is the log-potential of what is impossible."
            )
    possible = tables.reshape(len(tables), -1).max(axis=1) > lowest
    if not possible.all():
        raise ModelError(
            f"{text_of(int(np.argmin(possible)))} is zero everywhere, so no state is possible; "
            "make at least one entry positive."
        )


def check_rows(tables: Floats, domains: Domains, scopes: Ints32, text_of: Callable[[int], str]) -> None:
    """Raise `ModelError` unless each table sums to one over its last site."""
    sums = np.exp(tables).sum(axis=-1)
    wrong = np.abs(sums - 1.0) > _ROW_TOLERANCE
    if wrong.any():
        k, *codes = np.unravel_index(int(np.argmax(wrong)), sums.shape)
        given = domains.entry_text(scopes[k][:-1], codes)
        row = f"at {given} " if given else ""
        raise ModelError(
            f"{text_of(int(k))} is declared conditional but {row}sums to "
            f"{sums[(k, *codes)]:.4g} over its last site {domains.names[int(scopes[k][-1])]!r}; "
            + (
                "these log-potentials are probabilities themselves: take their logarithms."
                if np.allclose(tables.sum(axis=-1), 1.0, atol=_ROW_TOLERANCE)
                else "put the child last and normalise, or pass directed=False."
            )
        )


def group_text(name: str | None) -> str:
    """Return a group for a message."""
    return "a factor group" if name is None else f"group {name!r}"


def factor_text(group: FactorGroup, k: int, domains: Domains) -> str:
    """Return one factor of a group for a message."""
    owner = "" if group.name is None else f" {k} of group {group.name!r}"
    return f"the factor{owner} over {domains.scope_text(group.scopes[k])}"


def _wrong_shape(text: str, got: tuple[int, ...], scope: Iterable[Any], domains: Domains) -> ModelError:
    sites = [int(p) for p in scope]
    shape = tuple(int(domains.cards[p]) for p in sites)
    by_site = ", ".join(f"{domains.names[p]} has {n}" for p, n in zip(sites, shape, strict=True))
    count = int(np.prod(shape, dtype=np.int64))
    return ModelError(
        f"{text} has a table of shape {got} with {int(np.prod(got, dtype=np.int64))} entries, "
        f"expected shape {shape} or {count} entries in a row (states: {by_site or 'no sites'})."
    )
