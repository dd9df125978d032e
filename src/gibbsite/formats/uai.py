"""Models of the UAI inference competitions: ``MARKOV`` and ``BAYES`` files.

A file is a word and numbers: variables, their numbers of states, the scopes, the tables (last
variable of a scope fastest). Variables have no names; sites are called "0", "1", ... and states 0, 1, ....
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bools, Floats, Ints, Ints32, Positions
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.formats.network import MOST_MEMBERS
from gibbsite.formats.parsing.numerals import HIGHEST, LOWEST, Numbers, decimals
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, save
from gibbsite.formats.registry import register, sites_are_counted, states_are_counted
from gibbsite.models.domain import MOST_STATES, Domains, SiteNames
from gibbsite.models.factor import TableFactors
from gibbsite.models.factorgraph import FactorGraph, _restore
from gibbsite.models.networks.acyclic import check_network, find_cycle
from gibbsite.models.networks.conditionals import ROW_TOLERANCE

FREE_STATES = 100_000
"""Most states of variables without factors, in addition to twice the numbers of the file."""

_HEADER = re.compile(rb"(?:\s+|(?:#|//)[^\n]*(?:\n|\Z))*+([^\s#]*)")


class _Layout(NamedTuple):
    """The numbers and scopes of the factors of each arity; number of entries and first entry of each factor."""

    scopes: list[tuple[Positions, Ints32]]
    size: Ints
    entry: Ints


@checked
def read_uai(path: PathLike) -> FactorGraph:
    """Read a UAI model.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.

    Returns
    -------
    FactorGraph
        Factors of equal shape in one group. Those of a ``BAYES`` file are directed (a conditional
        table of the last variable) where all rows sum to one.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pair.uai")
    ...     _ = path.write_text("MARKOV 2  2 3  1  2 0 1  6  1 2 3 4 5 6")
    ...     read_uai(path)
    FactorGraph(2 sites of 2 to 3 states, 1 factor in 1 group)
    """
    return parse_uai(load(path))


def parse_uai(source: Source) -> FactorGraph:
    """Return the model in the content of a file."""
    header = _HEADER.match(source.data)
    word = header[1].upper() if header else b""
    if header is None or word not in (b"MARKOV", b"BAYES"):
        found = word[:30].decode(errors="replace")
        raise source.error(f"expected the word MARKOV or BAYES, found {found!r}.", header.start(1) if header else 0)
    numbers = Numbers(source, header.end())
    values = numbers.values
    numbers.require(values < np.inf, "this number is too large; expected one below 1.8e308.")
    numbers.require(values >= 0, "expected a number that is not negative, found {}.")
    n = numbers.whole(0, "the number of variables", 0, 2**53)
    cards = read_cards(numbers, 1, n)
    at = 1 + len(cards)
    # A factor has at least an arity, a table size and an entry.
    room = (len(numbers) - at - 1) // 3
    declared = numbers.whole(at, "the number of factors", 0, 2**53)
    if declared > room:
        raise numbers.error(at, f"{declared:,} factors are declared, but the file has no room for them.")
    layout = _read_layout(numbers, at + 1, declared, cards)
    return _build(numbers, cards, layout, directed=word == b"BAYES")


def read_cards(numbers: Numbers, at: int, n: int) -> Ints32:
    """Return the numbers of states of n variables, which begin at a number of the file."""
    if n > len(numbers) - at:
        raise numbers.error(0, f"{n:,} variables are declared, but only {len(numbers) - at:,} numbers follow.")
    cards = numbers.values[at : at + n]
    fine = (cards >= 1) & (cards < 2**31) & (cards == np.floor(cards))
    numbers.require(fine, "expected a number of states, a whole number of at least 1, found {}.", at)
    few = f"expected at most {MOST_STATES:,} states, found {{}}; join states, or split the variable."
    numbers.require(cards <= MOST_STATES, few, at)
    return cards.astype(np.int32)


def check_unused(numbers: Numbers, at: int, cards: Ints32, unused: Bools) -> None:
    """Refuse variables in no factor that have far more states than the file has numbers."""
    if cards[unused].sum(dtype=np.int64) > FREE_STATES + 2 * len(numbers):
        k = int(np.argmax(cards * unused))
        raise numbers.error(at + k, f"variable {k} has {cards[k]} states, but is in no factor.")


def numbered_domains(cards: Ints32) -> Domains:
    """Return sites named 0, 1 and so on, with the states 0, 1 and so on."""
    first, kind_of = np.unique(cards, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first)  # label tuples in order of appearance
    kinds = tuple(tuple(range(int(cards[k]))) for k in first[order])
    return Domains(SiteNames(len(cards)), kinds, np.argsort(order)[kind_of].astype(np.int32))


def _read_layout(numbers: Numbers, at: int, m: int, cards: Ints32) -> _Layout:
    """Find scopes and tables; every size is checked before anything of that size is made."""
    arity = np.empty(m, np.int64)
    member = np.empty(m, np.int64)
    view, total = memoryview(numbers.values.data), len(numbers)
    most = min(len(cards), MOST_MEMBERS)
    for k in range(m):
        r = view[at] if at < total else -1.0
        if not (0 <= r <= most and r == int(r)):
            numbers.whole(at, f"the number of variables of factor {k}", 0, most)
        arity[k], member[k] = r, at + 1
        at += 1 + int(r)
    if at > total:
        raise numbers.error(total, f"the file ends here; expected the variables of factor {m - 1}.")
    sizes = np.ones(m)
    unused = np.ones(len(cards), np.bool_)
    parts: list[tuple[Positions, Ints32]] = []
    for r in np.unique(arity).tolist():
        rows = np.flatnonzero(arity == r)
        scopes = _scopes(numbers, rows, member, r, len(cards))
        sizes[rows] = cards[scopes].astype(np.float64).prod(axis=1)
        unused[scopes] = False
        parts.append((rows, scopes))
    check_unused(numbers, 1, cards, unused)
    ends = at + np.cumsum(sizes + 1)
    starts = np.concatenate([[at], ends])[:-1] + 1
    fits = int(np.searchsorted(ends, total, "right"))
    # The declared size of the first factor that does not fit is still compared.
    seen = min(m, fits + 1) if fits < m and starts[fits] <= total else fits
    where = starts[:seen].astype(np.int64) - 1
    wrong = numbers.values[where] != sizes[:seen]
    if wrong.any():
        k = int(np.argmax(wrong))
        raise numbers.error(
            int(where[k]),
            f"factor {k} has {sizes[k]:.15g} entries by the states of its variables, but "
            f"{numbers.values[where[k]]:.15g} are declared.",
        )
    if fits < m:
        raise numbers.error(total, f"the file ends here; expected the {sizes[fits]:.15g} entries of factor {fits}.")
    end = int(ends[-1]) if m else at
    if end < total:
        raise numbers.error(end, f"expected the end of the file after the tables of {m} factors.")
    return _Layout(parts, sizes.astype(np.int64), starts.astype(np.int64))


def _scopes(numbers: Numbers, rows: Positions, member: Ints, r: int, n: int) -> Ints32:
    """Return the scopes of some factors of arity r, checked."""
    where = member[rows][:, None] + np.arange(r)
    scopes: Floats = numbers.values[where]
    fine = (scopes < n) & (scopes == np.floor(scopes))
    if not fine.all():
        k = int(where.reshape(-1)[np.argmin(fine)])
        raise numbers.error(k, f"expected a variable from 0 to {n - 1}, found {numbers.values[k]:g}.")
    ordered = np.sort(scopes, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        k = int(np.argmax(twice))
        raise numbers.error(int(where[k, 0]), f"factor {rows[k]} names a variable twice.")
    return scopes.astype(np.int32)


def _build(numbers: Numbers, cards: Ints32, layout: _Layout, directed: bool) -> FactorGraph:
    domains = numbered_domains(cards)
    groups: list[tuple[int, TableFactors]] = []
    offset = 0.0
    for rows, scopes in layout.scopes:
        for part in _alike(cards[scopes]):
            tables = _log_tables(numbers, layout, rows[part])
            if scopes.shape[1] == 0:
                offset = math.fsum(tables.reshape(-1).tolist())
                continue
            tables = tables.reshape(-1, *cards[scopes[part[0]]].tolist())
            proper = np.zeros(len(part), np.bool_)
            if directed:
                wrong = np.abs(np.exp(tables).sum(axis=-1) - 1.0) > ROW_TOLERANCE
                proper = ~wrong.reshape(len(part), -1).any(axis=1)
            for flag in (False, True):
                some = np.flatnonzero(proper == flag)
                if len(some):
                    chosen = tables if len(some) == len(part) else tables[some]
                    chosen.setflags(write=False)
                    group = TableFactors(scopes[part[some]], chosen, directed=flag)
                    groups.append((int(rows[part[some[0]]]), group))
    groups.sort(key=lambda item: item[0])
    if directed:
        try:
            check_network(domains, [group for _, group in groups], complete=True)
        except ModelError as error:
            said = str(error).removesuffix(".")
            raise numbers.source.error(f"{said}; a product of any factors is of type MARKOV.") from None
    return _restore(domains, tuple(group for _, group in groups), offset, {}, {})


def _log_tables(numbers: Numbers, layout: _Layout, rows: Positions) -> Floats:
    """Return the log-potentials (m, entries) of some factors of equal size."""
    starts = layout.entry[rows]
    tables: Floats = numbers.values[starts[:, None] + np.arange(layout.size[rows[0]])]
    possible = tables.any(axis=1)
    if not possible.all():
        k = int(np.argmin(possible))
        raise numbers.error(int(starts[k]), f"factor {rows[k]} is zero everywhere; expected a positive entry.")
    with np.errstate(divide="ignore"):
        return np.log(tables, out=tables)


def _alike(shapes: Ints32) -> list[Positions]:
    """Return the row numbers of each distinct row."""
    if (shapes == shapes[:1]).all():
        return [np.arange(len(shapes))]
    inverse = np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


@checked
def write_uai(model: FactorGraph, path: PathLike) -> None:
    """Write a model as a UAI file.

    Parameters
    ----------
    model : FactorGraph
        The model. Sites are numbered by position, states by code: names and labels are lost, and
        observed sites are no longer there.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.

    Raises
    ------
    IncompatibleError
        When a factor has potentials too far apart for floating-point numbers.

    Examples
    --------
    >>> write_uai(FactorGraph({"a": 2}, [("a", [0.25, 0.75])]), "-")
    MARKOV
    1
    2
    1
    1 0
    <BLANKLINE>
    2
    0.25 0.75
    """
    save(path, format_uai(model))


def format_uai(model: FactorGraph) -> str:
    """Return a model as the text of a UAI file."""
    constant = model.log_offset
    scopes: list[str] = []
    tables: list[str] = []
    for group in model.groups:
        logs = group.log_tables(model.cards)
        logs, shift = _within_range(model, logs.reshape(len(logs), -1), group.scopes)
        constant += float(np.broadcast_to(shift, (group.size,)).sum())
        size = f"\n{logs.shape[1]}\n"
        rows = [size + " ".join(row) for row in decimals(logs).tolist()]
        tables += rows if len(rows) == group.size else rows * group.size
        scopes += [f"{group.arity} " + " ".join(map(str, scope)) for scope in group.scopes.tolist()]
    # A constant beyond the range of numbers becomes the product of several.
    pieces = math.ceil(abs(constant) / HIGHEST)
    if pieces:
        text = decimals(np.array([constant / pieces]))[0]
        scopes += ["0"] * pieces
        tables += [f"\n1\n{text}"] * pieces
    word = "BAYES" if _has_one_table_each(model) else "MARKOV"
    cards = " ".join(map(str, model.cards.tolist()))
    return "\n".join([word, str(model.n_sites), cards, str(len(scopes)), *scopes, *tables, ""])


def _within_range(model: FactorGraph, logs: Floats, scopes: Ints32) -> tuple[Floats, Floats]:
    """Return log-tables whose exponentials are normal numbers, and the constant subtracted from each."""
    finite = np.where(logs > -np.inf, logs, np.inf)
    high, low = logs.max(axis=1, initial=-np.inf), finite.min(axis=1, initial=np.inf)
    shift = np.where((high > HIGHEST) | (low < LOWEST), high, 0.0)
    wide = low - shift < LOWEST
    if wide.any():
        text = model.domains.scope_text(scopes[int(np.argmax(wide))])
        raise IncompatibleError(
            f"the factor over {text} has potentials that differ by a factor of more than 1e300, and the smaller "
            "ones would become zero in a file; make them less extreme."
        )
    return (logs - shift[:, None] if shift.any() else logs), shift


def _has_one_table_each(model: FactorGraph) -> bool:
    """Return whether the scopes are those of a Bayesian network, as in BAYES files."""
    if model.log_offset or not any(group.directed for group in model.groups):
        return False
    parents = {scope[-1]: scope[:-1] for group in model.groups for scope in group.scopes.tolist()}
    if not len(parents) == model.n_sites == sum(group.size for group in model.groups):
        return False
    return find_cycle([parents[site] for site in range(model.n_sites)]) is None


register(
    name="uai",
    suffixes=(".uai",),
    parse=parse_uai,
    write=write_uai,
    recognise=re.compile(COMMENTS + rb"(?i:markov|bayes)\b", re.DOTALL).match,
    keeps_sites=sites_are_counted,
    keeps_states=states_are_counted,
)
