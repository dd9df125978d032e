"""How far two answers are apart: any two objects with marginals, whatever method gave them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any, NamedTuple, Protocol

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bools, Floats, Ints
from gibbsite.errors import ArgumentError
from gibbsite.results.table import SiteTable
from gibbsite.results.wording import in_words

# Standard errors stem from batch means in single precision: smaller differences are rounding.
_ROUNDING = 1e-7
_SHOWN = 5


class HasMarginals(Protocol):
    """What can be compared: a sampling result, an exact one, a variational one."""

    @property
    def marginals(self) -> SiteTable:
        """Probability of every state of every site."""
        ...


class Difference(NamedTuple):
    """One state of one site in two answers; ``z`` is None where no standard error is known."""

    site: str
    state: Any
    a: float
    b: float
    z: float | None


@dataclass(frozen=True, repr=False)
class Comparison:
    """How far two sets of marginals are apart.

    Sites observed in both, in the same state, agree by construction and are not counted.

    Attributes
    ----------
    sites : int
        Number of sites compared.
    max_abs, mean_abs : float
        Largest and mean absolute difference over all states of all sites.
    site, state : optional
        Where the largest difference is.
    max_tv, mean_tv : float, optional
        Largest and mean total variation distance of a site with states; None if there is none.
    max_hellinger, mean_hellinger : float, optional
        Largest and mean Hellinger distance of a site with states; None if there is none.
    max_z : float, optional
        Largest difference in units of its standard error, infinite where the error is zero; None if
        neither answer has errors. Over many states even good runs reach 3 to 5.
    z_site, z_state : optional
        Where that is.
    worst : tuple of Difference
        The largest differences, each site once, largest first.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"]}, [("a", [1, 3])])
    >>> gs.compare(gs.solve_exact(model), gs.solve_exact(model)).max_abs
    0.0
    """

    sites: int
    max_abs: float
    mean_abs: float
    site: str | None
    state: Any
    max_tv: float | None
    mean_tv: float | None
    max_hellinger: float | None
    mean_hellinger: float | None
    max_z: float | None
    z_site: str | None
    z_state: Any
    worst: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain data."""
        return {**asdict(self), "worst": [row._asdict() for row in self.worst]}

    def __repr__(self) -> str:
        if not self.sites:
            return "Comparison of 0 sites: nothing differs"
        lines = [
            f"Comparison of {self.sites:,} sites".ljust(26) + f"{'largest':>10} {'mean':>10}",
            f"  absolute difference     {self.max_abs:10.3g} {self.mean_abs:10.3g}",
        ]
        distances = {
            "total variation": (self.max_tv, self.mean_tv),
            "Hellinger distance": (self.max_hellinger, self.mean_hellinger),
        }
        for name, (largest, mean) in distances.items():
            if largest is not None:
                lines.append(f"  {name:<23} {largest:10.3g} {mean:10.3g}")
        if self.max_z is not None:
            most = in_words(self.max_z, ".3g")
            lines.append(f"  in standard errors      {most:>10}   at {self.z_site} = {self.z_state}")
        width = max(len(f"{row.site} = {row.state}") for row in self.worst)
        width = max(width, len("largest at"))
        lines.append(f"  {'largest at':<{width}}  {'a':>8}  {'b':>8}  {'a - b':>9}")
        for row in self.worst:
            place = f"{row.site} = {row.state}"
            a, b = (f"{value:8.4f}" if abs(value) < 1e3 else f"{value:8.6g}" for value in (row.a, row.b))
            lines.append(f"  {place:<{width}}  {a}  {b}  {row.a - row.b:+9.2e}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from gibbsite._common.html import card, grid

        rows = [
            ("absolute difference", f"{self.max_abs:.3g}", f"{self.mean_abs:.3g}"),
            ("total variation", in_words(self.max_tv, ".3g"), in_words(self.mean_tv, ".3g")),
            ("Hellinger distance", in_words(self.max_hellinger, ".3g"), in_words(self.mean_hellinger, ".3g")),
            ("in standard errors", in_words(self.max_z, ".3g"), f"at {self.z_site} = {self.z_state}"),
        ]
        known = (True, self.max_tv is not None, self.max_hellinger is not None, self.max_z is not None)
        worst = [(row.site, row.state, f"{row.a:.4g}", f"{row.b:.4g}", f"{row.a - row.b:+.2e}") for row in self.worst]
        sizes = grid(("difference", "largest", "mean"), list(compress(rows, known)))
        places = grid(("largest at", "state", "a", "b", "a - b"), worst)
        about = f"{self.sites:,} site{'s' * (self.sites != 1)}"
        return card("Comparison", [about if self.sites else "of 0 sites: nothing differs"], table=[*sizes, *places])


class _Columns(NamedTuple):
    """Both answers site by site, one entry per state; ``start`` locates the states of each site."""

    start: Ints
    a: Floats
    b: Floats
    error: Floats | None
    names: Any
    labels: Any
    numbers: Bools


@checked
def compare(a: SiteTable | HasMarginals, b: SiteTable | HasMarginals) -> Comparison:
    """Compare the marginals of two answers.

    Parameters
    ----------
    a, b : SiteTable or object with ``marginals``
        For example a sampling result and an exact one; if one of them has ``mcse``, differences are
        also given in standard errors. Both must have the same sites with the same states; the order
        of sites and states does not matter, nor does which of the sites are observed.

    Returns
    -------
    Comparison

    Raises
    ------
    ModelError
        If the sites or the states of a site differ.

    See Also
    --------
    plots.plot_comparison : Draw the two answers against each other.
    Result : What a run returns.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": ["no", "yes"], "b": 2}, [(("a", "b"), [[4, 1], [1, 2]])])
    >>> result = gs.sample(model, sweeps=2000, rng=1, progress=False)
    >>> found = gs.compare(result, gs.solve_exact(model))
    >>> found.max_abs < 0.02, found.max_z < 5
    (True, True)
    """
    tables = read_table(a), read_table(b)
    errors = [table for table in (read_errors(a), read_errors(b)) if table is not None]
    line_up = _columns_by_cell if same_layout(*tables) else _columns_by_name
    return _summarise(line_up(*tables, errors))


def read_table(answer: Any) -> SiteTable:
    """Return the marginals of an answer, or the answer itself if it is a table."""
    if isinstance(answer, SiteTable):
        return answer
    table = getattr(answer, "marginals", None)
    if not isinstance(table, SiteTable):
        raise ArgumentError(
            f"an answer needs marginals, but {type(answer).__name__} has none; give a result or its marginals."
        )
    return table


def read_errors(answer: Any) -> SiteTable | None:
    """Return the standard errors of an answer, if they are known."""
    table = getattr(answer, "mcse", None)
    return table if isinstance(table, SiteTable) and not np.isnan(table.cells).any() else None


def same_layout(a: SiteTable, b: SiteTable) -> bool:
    """Whether both have the same free sites and labels in the same order, and equal evidence."""
    if dict(a.observed) != dict(b.observed):
        return False
    mine, other = a.domains, b.domains
    if mine is other:
        return True
    mine_names, other_names = mine.names.identity(), other.names.identity()
    if mine.n_sites != other.n_sites or mine.kinds != other.kinds:
        return False
    if isinstance(mine_names, np.ndarray) and isinstance(other_names, np.ndarray):
        same = np.array_equal(mine_names, other_names)
    else:
        same = type(mine_names) is type(other_names) and bool(mine_names == other_names)
    return same and np.array_equal(mine.kind_of, other.kind_of)


def _columns_by_cell(a: SiteTable, b: SiteTable, errors: list[SiteTable]) -> _Columns:
    squares = [np.square(_flatten(table)) for table in errors]
    error = np.sqrt(sum(squares)) if squares else None
    return _Columns(
        a.domains.offset, _flatten(a), _flatten(b), error, a.domains.names, a.domains.labels, a.domains.numbers
    )


def _flatten(table: SiteTable) -> Floats:
    """Return one number per state; tables of two-state sites may store one per site."""
    return table.to_array().ravel() if table.binary else table.cells


def _columns_by_name(a: SiteTable, b: SiteTable, errors: list[SiteTable]) -> _Columns:
    names: list[str] = []
    labels: list[tuple[Any, ...]] = []
    columns: list[list[float]] = [[], [], []]
    for site in a:
        if site not in b:
            raise ArgumentError(f"site {site!r} is in the first answer only; compare the same sites.")
        mine, other = a[site], b[site]
        if set(mine) != set(other):
            raise ArgumentError(
                f"site {site!r} has the states {list(mine)} in the first answer and {list(other)} in "
                "the second; compare the same states."
            )
        if site in a.observed and site in b.observed and mine == other:
            continue
        names.append(site)
        labels.append(tuple(mine))
        columns[0] += mine.values()
        columns[1] += (other[state] for state in mine)
        spread = [table[site] for table in errors]
        columns[2] += (sum(each[state] ** 2 for each in spread) for state in mine)
    if len(b) > len(a):
        extra = next(site for site in b if site not in a)
        raise ArgumentError(f"site {extra!r} is in the second answer only; compare the same sites.")
    first, second, squares = (np.array(column, np.float64) for column in columns)
    start = np.concatenate([[0], np.cumsum([len(each) for each in labels])]).astype(np.int64)
    error = np.sqrt(squares) if errors else None
    numbers = np.array([a.is_number(name) for name in names], bool)
    return _Columns(start, first, second, error, names, labels.__getitem__, numbers)


def _summarise(columns: _Columns) -> Comparison:
    start, a, b, error, names, labels, numbers = columns
    sites = start.size - 1
    if not sites:
        return Comparison(0, 0.0, 0.0, None, None, 0.0, 0.0, 0.0, 0.0, None, None, None, ())
    apart = np.abs(a - b)
    variation = 0.5 * np.add.reduceat(apart, start[:-1])[~numbers]
    roots = np.square(np.sqrt(np.maximum(a, 0.0)) - np.sqrt(np.maximum(b, 0.0)))
    hellinger = np.sqrt(0.5 * np.add.reduceat(roots, start[:-1]))[~numbers]
    distances = [float(f(each)) if each.size else None for each in (variation, hellinger) for f in (np.max, np.mean)]
    z = None
    if error is not None and error.any():  # exact answers have standard errors of zero everywhere
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(apart > _ROUNDING, apart / error, 0.0)

    def place(cell: int) -> tuple[str, Any]:
        site = int(np.searchsorted(start, cell, side="right")) - 1
        return names[site], labels(site)[cell - int(start[site])]

    largest = np.maximum.reduceat(apart, start[:-1])
    shown = np.argsort(-largest, kind="stable")[:_SHOWN].tolist()
    worst = []
    for number in shown:
        first, last = start[number : number + 2].tolist()
        cell = first + int(np.argmax(apart[first:last]))
        scaled = None if z is None else float(z[cell])
        worst.append(Difference(*place(cell), float(a[cell]), float(b[cell]), scaled))
    z_site, z_state = (None, None) if z is None else place(int(np.argmax(z)))
    return Comparison(
        sites=sites,
        max_abs=float(apart.max()),
        mean_abs=float(apart.mean()),
        site=worst[0].site,
        state=worst[0].state,
        max_tv=distances[0],
        mean_tv=distances[1],
        max_hellinger=distances[2],
        mean_hellinger=distances[3],
        max_z=None if z is None else float(z.max()),
        z_site=z_site,
        z_state=z_state,
        worst=tuple(worst),
    )
