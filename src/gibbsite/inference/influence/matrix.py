"""The influence matrix in compressed rows.

Entry (i, j) is an upper bound on Dobrushin's influence of site j on site i, the largest total variation between two
conditional distributions of i whose conditions differ at j alone (Mitliagkas and Mackey 2017, equation 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bools, Floats, Ints, Words32
from gibbsite._numba.jit import compiled, compiled_loop
from gibbsite.errors import ArgumentError
from gibbsite.graphs.rows import row_lengths, row_starts


class InfluenceRows(NamedTuple):
    """An influence matrix for compiled code.

    Row i is ``start[i]`` to ``start[i + 1]``, neighbours ascending; ``value`` is the influence of the neighbour on i,
    ``back`` that of i on the neighbour. The pattern is symmetric.
    """

    start: Words32
    neighbour: Words32
    value: Floats
    back: Floats


class Norms(NamedTuple):
    """Norms of an influence matrix.

    Attributes
    ----------
    row_sum : float
        The largest total influence on a site.
    column_sum : float
        The largest total influence of a site.
    spectral : float
        An upper bound on the spectral norm, tight unless the graph is disconnected.
    radius : float
        An upper bound on the spectral radius: the row-sum norm in the best weighting of sites found.
    """

    row_sum: float
    column_sum: float
    spectral: float
    radius: float


@checked
@dataclass(frozen=True, eq=False)
class Influence:
    """Upper bounds on the influence of sites on each other, sparse.

    Attributes
    ----------
    start, neighbour : integer arrays
        Compressed rows: the sites that influence site i are ``neighbour[start[i] : start[i + 1]]``.
    value : float array
        The bounds, between 0 and 1; of sites that are numbers, not negative.
    exact : bool array (sites,)
        Whether the row is the exact influence, not merely a bound.

    Examples
    --------
    >>> import gibbsite as gs
    >>> influence = gs.influence.bound_influence(gs.ising_grid((1, 3), coupling=0.5))
    >>> influence.to_dense().round(3).tolist()
    [[0.0, 0.462, 0.0], [0.381, 0.0, 0.381], [0.0, 0.462, 0.0]]
    >>> influence.statement
    'Total influence is at most 0.593 < 1: every scan that keeps visiting all sites converges.'
    """

    start: Words32
    neighbour: Words32
    value: Floats
    exact: Bools

    @property
    def n_sites(self) -> int:
        """Number of sites."""
        return int(self.start.size - 1)

    @cached_property
    def rows(self) -> InfluenceRows:
        """The matrix together with its transpose."""
        back = np.empty_like(self.value)
        _fill_back(self.start, self.neighbour, self.value, self.start[:-1].copy(), back)
        return InfluenceRows(self.start, self.neighbour, self.value, back)

    @cached_property
    def norms(self) -> Norms:
        """Row sum, column sum, spectral norm and spectral radius."""
        return _norms(self.start, self.neighbour, self.value)

    @property
    def total(self) -> float:
        """The smallest of the norms; below 1, Gibbs sampling forgets its start at a geometric rate."""
        return float(min(self.norms))

    @property
    def statement(self) -> str:
        """Whether the total influence is below 1, in a sentence."""
        if self.total < 1.0:
            return (
                f"Total influence is at most {self.total:.3g} < 1: every scan that keeps visiting all sites converges."
            )
        full = int(np.count_nonzero(self.value >= 1.0))
        why = f" {full} pairs have influence 1 (hard zeros, or bounds that say nothing)." if full else ""
        return (
            f"Total influence may reach {self.total:.3g} >= 1: nothing follows about convergence, and bounds "
            f"may not fall.{why}"
        )

    def to_dense(self) -> Floats:
        """Return the matrix as an array; for small models."""
        dense = np.zeros((self.n_sites, self.n_sites))
        row = np.repeat(np.arange(self.n_sites), row_lengths(self.start))
        dense[row, self.neighbour] = self.value
        return dense

    def to_scipy(self) -> Any:
        """Return the matrix as a SciPy sparse array in compressed rows."""
        from scipy.sparse import csr_array

        parts = (self.value, self.neighbour.astype(np.int32), self.start.astype(np.int32))
        return csr_array(parts, shape=(self.n_sites, self.n_sites))

    def scaled(self, factor: float) -> Influence:
        """Return looser bounds: all entries times a factor, and none raised above 1."""
        factor = float(factor)
        if not (np.isfinite(factor) and factor >= 1.0):
            raise ArgumentError(f"Scaling keeps bounds valid only for a factor of at least 1, got {factor!r}.")
        value = np.maximum(self.value, np.minimum(self.value * factor, 1.0))
        return Influence(self.start, self.neighbour, value, self.exact & (factor == 1.0))

    def __repr__(self) -> str:
        return f"Influence({self.n_sites} sites, {self.value.size} entries, {self.norms})"

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [(name.replace("_", " "), f"{norm:.4g}") for name, norm in self.norms._asdict().items()]
        about = f"{self.n_sites:,} sites, {self.value.size:,} entries"
        return card("Influence", [about, self.statement], table=grid(("norm", "at most"), rows))


@checked
def read_influence(given: Any, n_sites: int, most: float = 1.0) -> Influence:
    """Read bounds given by the user: an Influence, an array, or a SciPy sparse matrix.

    Parameters
    ----------
    given : Influence, array or sparse matrix
        Entry (i, j) bounds the influence of site j on site i.
    n_sites : int
        Number of free sites of the model.
    most : float
        The largest entry allowed; infinite for sites that are numbers.

    Raises
    ------
    ArgumentError
        For a wrong shape, entries outside [0, 1] (or below 0, or infinite), or a site that influences itself.

    Examples
    --------
    >>> read_influence([[0, 0.25], [0.5, 0]], 2).norms.row_sum
    0.5
    """
    shape: tuple[int, ...]
    if isinstance(given, Influence):
        found, shape = given, (given.n_sites, given.n_sites)
    else:
        row, column, value, shape = _entries(given)
        found = None
    if shape != (n_sites, n_sites):
        raise ArgumentError(f"The influence matrix has shape {shape}; the model needs {(n_sites, n_sites)}.")
    if found is not None:
        return found
    bad = np.flatnonzero(~((value >= 0.0) & (value <= most) & np.isfinite(value)))
    if bad.size:
        at = (int(row[bad[0]]), int(column[bad[0]]))
        allowed = "lie in [0, 1]" if most == 1.0 else "be finite and not negative"
        raise ArgumentError(f"Influence must {allowed}, but entry {at} is {value[bad[0]]}.")
    own = np.flatnonzero((row == column) & (value > 0))
    if own.size:
        raise ArgumentError(f"Site {row[own[0]]} has influence {value[own[0]]} on itself; the diagonal must be zero.")
    off = row != column
    return from_entries(row[off], column[off], value[off], n_sites)


def _entries(given: Any) -> tuple[Ints, Ints, Floats, tuple[int, ...]]:
    if hasattr(given, "tocoo"):  # any SciPy sparse format, without importing SciPy
        given = given.tocsr()
        given.sum_duplicates()
        coo = given.tocoo()
        return (
            np.asarray(coo.row, np.int64),
            np.asarray(coo.col, np.int64),
            np.asarray(coo.data, np.float64),
            tuple(coo.shape),
        )
    try:
        dense = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"Influence must be a matrix of numbers, got {type(given).__name__}.") from None
    if dense.ndim != 2:
        raise ArgumentError(f"Influence must be a square matrix, got an array of shape {dense.shape}.")
    row, column = np.nonzero(dense != 0)
    return row, column, dense[row, column], dense.shape


def from_entries(row: Ints, column: Ints, value: Floats, n_sites: int) -> Influence:
    """Build the matrix from single entries; of repeated entries the largest is used."""
    n = max(n_sites, 1)
    # the mirrored entries keep the pattern symmetric
    keys = np.concatenate([row * n + column, column * n + row])
    values = np.concatenate([value, np.zeros(len(value))])
    order = np.lexsort((-values, keys))
    keys, values = keys[order], values[order]
    first = np.ones(keys.size, bool)
    first[1:] = keys[1:] != keys[:-1]
    keys, values = keys[first], values[first]
    start = row_starts(np.bincount(keys // n, minlength=n_sites), np.uint32)
    return Influence(start, (keys % n).astype(np.uint32), values, np.broadcast_to(np.asarray(False), (n_sites,)))


@compiled_loop
def _fill_back(start: Words32, neighbour: Words32, value: Floats, cursor: Words32, back: Floats) -> None:
    # Rows are visited in ascending order and are sorted, so the next free entry of row j is (j, i).
    for i in range(start.size - 1):
        for k in range(start[i], start[i + 1]):
            j = neighbour[k]
            back[cursor[j]] = value[k]
            cursor[j] += np.uint32(1)


@compiled_loop
def multiply(start: Words32, neighbour: Words32, value: Floats, x: Floats, y: Floats) -> None:
    """Write C x into y."""
    for i in range(start.size - 1):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += value[k] * x[neighbour[k]]
        y[i] = total


@compiled_loop
def _multiply_back(start: Words32, neighbour: Words32, value: Floats, x: Floats, y: Floats) -> None:
    """Write C' x into y."""
    y[:] = 0.0
    for i in range(start.size - 1):
        for k in range(start[i], start[i + 1]):
            y[neighbour[k]] += value[k] * x[i]


@compiled
def _ratio(x: Floats, y: Floats) -> float:
    """Return the largest y / x."""
    top = 0.0
    for i in range(x.size):
        top = max(top, y[i] / x[i])
    return top


_ROUNDS = 60
_FLOOR = 1e-6  # lower limit of a weight, so that ratios stay sharp if components of the graph differ


def _norms(start: Words32, neighbour: Words32, value: Floats) -> Norms:
    n = start.size - 1
    if n == 0 or value.size == 0:
        return Norms(0.0, 0.0, 0.0, 0.0)
    x, y, z = np.ones(n), np.empty(n), np.empty(n)
    multiply(start, neighbour, value, x, y)
    row_sum = float(y.max())
    _multiply_back(start, neighbour, value, x, y)
    column_sum = float(y.max())
    # For a nonnegative matrix M and any x > 0, the largest (M x)_i / x_i bounds the spectral radius from
    # above (Collatz and Wielandt); power iteration makes it sharp. With M = C it is the row-sum norm in the
    # weighting x, with M = C'C the square of the spectral norm. Large models get fewer rounds.
    rounds = int(min(_ROUNDS, max(2, 4e7 // value.size)))
    radius, square = row_sum, row_sum * column_sum
    x = np.ones(n)
    for _ in range(rounds):
        multiply(start, neighbour, value, x, y)
        radius = min(radius, _ratio(x, y))
        y += x  # otherwise the iteration alternates between the two colors of bipartite graphs
        x = np.maximum(y / y.max(), _FLOOR)
    x = np.ones(n)
    for _ in range(rounds):
        multiply(start, neighbour, value, x, y)
        _multiply_back(start, neighbour, value, y, z)
        square = min(square, _ratio(x, z))
        x = np.maximum(z / max(z.max(), 1e-300), _FLOOR)
    return Norms(row_sum, column_sum, float(np.sqrt(square)), float(radius))
