"""Weighted constraint satisfaction problems in WCSP, a format of toulbar2.

A file has a name and numbers: variables, the largest number of states, cost functions, the top; the numbers of states;
and for each cost function its variables, a default cost and tuples with other costs. The sum of the costs is an
energy, and the model is ``p(x) ~ exp(-beta * E(x))``; a cost of at least the top is forbidden.
"""

from __future__ import annotations

import re

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.errors import ModelError
from gibbsite.formats.network import MOST_MEMBERS
from gibbsite.formats.objects.bqm import read_beta
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import PathLike, Source, load
from gibbsite.formats.registry import register
from gibbsite.formats.uai import check_unused, numbered_domains, read_cards
from gibbsite.models.factor import TableFactors
from gibbsite.models.factorgraph import FactorGraph, _restore

_NAME = re.compile(rb"\s*+[^\s]++")
_ENTRIES = 1 << 24  # most entries of all tables, which default costs make larger than the file


@checked
def read_wcsp(path: PathLike, *, beta: float = 1.0) -> FactorGraph:
    r"""Read a weighted constraint satisfaction problem.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``, E being the sum of the costs.

    Returns
    -------
    FactorGraph
        Sites "0", "1", ... with states 0, 1, ..., and a table for each cost function, in which costs of at least the
        top are zeros of the model. States whose costs reach the top only as a sum stay possible.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there: also for global and shared cost functions.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pair.wcsp")
    ...     _ = path.write_text("pair 2 2 1 10\n2 2\n2 0 1 0 2\n0 0 3\n1 1 10\n")
    ...     model = read_wcsp(path)
    >>> model.log_potential({"0": 0, "1": 0}), model.log_potential({"0": 1, "1": 1})
    (-3.0, -inf)
    """
    return parse_wcsp(load(path), beta=beta)


def parse_wcsp(source: Source, *, beta: float = 1.0) -> FactorGraph:
    """Return the model in the content of a file."""
    beta = read_beta(beta)
    name = _NAME.match(source.data)
    numbers = Numbers(source, name.end() if name else 0)
    n = numbers.whole(0, "the number of variables", 0, 2**53)
    numbers.whole(1, "the largest number of states", 0, 2**53)
    declared = numbers.whole(2, "the number of cost functions", 0, 2**53)
    top = numbers.whole(3, "the top, which is the cost of what is forbidden", 1, 2**63)
    # costs of 64 bits lie far below what a log-potential may be
    fine = np.abs(numbers.values) < 1e20
    numbers.require(fine, "this number is too large; expected a cost below 1e20.")
    cards = read_cards(numbers, 4, n)
    if declared > (len(numbers) - 4 - n) // 3:
        raise numbers.error(2, f"{declared:,} cost functions are declared, but the file has no room for them.")
    return _read_functions(numbers, cards, declared, float(top), beta)


def _read_functions(numbers: Numbers, cards: np.ndarray, declared: int, top: float, beta: float) -> FactorGraph:
    values, at, spare, offset = numbers.values, 4 + len(cards), _ENTRIES, 0.0
    unused = np.ones(len(cards), np.bool_)
    alike: dict[tuple[int, ...], tuple[list[list[int]], list[Floats]]] = {}
    for k in range(declared):
        arity = at
        if at < len(numbers) and values[at] < 0:
            raise numbers.error(at, "shared cost functions are not read; write each of them out.")
        r = numbers.whole(at, f"the number of variables of cost function {k}", 0, min(len(cards), MOST_MEMBERS))
        members = [numbers.whole(at + 1 + j, "a variable", 0, len(cards) - 1) for j in range(r)]
        at += 1 + r
        if len(set(members)) < r:
            raise numbers.error(arity, f"cost function {k} names a variable twice.")
        if at < len(numbers) and values[at] < 0:
            raise numbers.error(at, "expected a default cost that is not negative; global cost functions are not read.")
        default = float(numbers.whole(at, "a default cost", 0, 2**63))
        if at + 1 < len(numbers) and values[at + 1] < 0:
            raise numbers.error(at + 1, "shared cost functions are not read; write each of them out.")
        count = numbers.whole(at + 1, "the number of tuples", 0, 2**53)
        at += 2
        end = at + count * (r + 1)
        if end > len(numbers):
            raise numbers.error(
                len(numbers), f"the file ends here; expected the {count:,} tuples of cost function {k}."
            )
        if r == 0:
            cost = default if count == 0 else float(values[end - 1])
            if cost >= top:
                raise numbers.error(arity, f"cost function {k} forbids everything.")
            offset -= beta * cost
            at = end
            continue
        shape = tuple(cards[members].tolist())
        spare -= int(np.prod(shape, dtype=object))
        if spare < 0:
            raise numbers.error(
                arity, f"the tables of the cost functions up to {k} have more than {_ENTRIES:,} entries."
            )
        table = np.full(shape, default)
        tuples = values[at:end].reshape(count, r + 1)
        states = tuples[:, :r]
        right = np.ones(tuples.shape, np.bool_)
        right[:, :r] = (states >= 0) & (states < shape) & (states == np.floor(states))
        numbers.require(right.reshape(-1), "expected a state of this variable, found {}.", at)
        right[:, r] = tuples[:, r] >= 0
        numbers.require(right.reshape(-1), "expected a cost that is not negative, found {}.", at)
        table[tuple(states.astype(np.int64).T)] = tuples[:, r]
        forbidden = table >= top
        if forbidden.all():
            raise numbers.error(arity, f"cost function {k} forbids everything.")
        table *= -beta
        table += 0.0  # no negative zeros
        table[forbidden] = -np.inf
        scopes, tables = alike.setdefault(shape, ([], []))
        scopes.append(members)
        tables.append(table)
        unused[members] = False
        at = end
    if at < len(numbers):
        raise numbers.error(at, f"expected the end of the file after {declared} cost functions.")
    check_unused(numbers, 4, cards, unused)
    domains = numbered_domains(cards)
    groups = tuple(TableFactors(scopes, np.stack(tables)) for scopes, tables in alike.values())
    try:
        for group in groups:
            group.check(domains)
    except ModelError as error:
        raise numbers.source.error(str(error)) from None
    return _restore(domains, groups, offset, {}, {})


register(
    name="wcsp",
    suffixes=(".wcsp",),
    parse=parse_wcsp,
    recognise=re.compile(rb"\s*+[A-Za-z_][^\s]*+[ \t]++(?:\d++[ \t]++){3}\d++[ \t]*+\r?\n\s*+\d").match,
    vague=True,
)
