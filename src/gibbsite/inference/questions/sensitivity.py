"""How an answer of a Bayesian network depends on the entries of its tables.

When an entry changes, the others of its row change in proportion, so that the row still sums to one. The probability of
the evidence is then linear in the entry, and so is that of evidence and answer together; their ratio is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import check_integer, checked, is_number
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, escaped
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.inference.questions.derivatives import differentiate
from gibbsite.inference.questions.evidence import _read_hard
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.models.networks.conditionals import Table, conditional_tables


@dataclass(frozen=True)
class Entry:
    """An entry of a table, and how the answer depends on it.

    Attributes
    ----------
    site, state : str and label
        The entry is the probability of this state ...
    parents : dict
        ... given these states of the parents.
    value : float
        The probability in the table.
    derivative : float
        Derivative of the answer by it.
    low, high : float
        The answer where the odds of the entry are divided and multiplied by the factor asked for.

    Examples
    --------
    >>> Entry("a", "yes", {}, 0.5, 2.0, 0.1, 0.4).swing
    0.30000000000000004
    """

    site: str
    state: Any
    parents: Mapping[str, Any]
    value: float
    derivative: float
    low: float
    high: float

    @property
    def swing(self) -> float:
        """How far the answer moves."""
        return abs(self.high - self.low)

    def __str__(self) -> str:
        given = ", ".join(f"{escaped(name)} = {escaped(label)}" for name, label in self.parents.items())
        return f"P({escaped(self.site)} = {escaped(self.state)}{' | ' if given else ''}{given})"


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Shown):
    """How the probability of a state depends on every entry of every table.

    Attributes
    ----------
    model : FactorGraph
        The network, before the evidence.
    evidence : dict
        What is observed.
    target, state : str and label
        The answer is the probability of this state.
    probability : float
        The answer.
    factor : float
        By how much the odds of entries are multiplied and divided.
    tables : list of Table
        The tables, one for each site.
    slopes : list of pairs of arrays
        For each table the derivatives of the logarithms of P(answer, evidence) and of P(evidence) by its entries.
    complement : bool
        Whether the first of these is about all other states, because the probability of the answer is zero.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})
    >>> round(found.probability, 4), [str(entry) for entry in found.top(2)]
    (0.4887, ['P(lung = yes | smoke = yes)', 'P(xray = yes | either = no)'])
    """

    model: FactorGraph
    evidence: Mapping[str, Any]
    target: str
    state: Any
    probability: float
    factor: float
    tables: list[Table]
    slopes: list[tuple[Floats, Floats]]
    complement: bool = False

    @cached_property
    def derivatives(self) -> list[Floats]:
        """Derivatives of the answer by the entries of each table, in the shape of the table."""
        sign = -1.0 if self.complement else 1.0
        share = 1.0 - self.probability if self.complement else self.probability
        return [sign * share * (first - second) for first, second in self._linear]

    @cached_property
    def _linear(self) -> list[tuple[Floats, Floats]]:
        """Relative slopes of the two probabilities, if the other entries of a row change in proportion."""
        found = []
        for table, pair in zip(self.tables, self.slopes, strict=True):
            p = np.exp(table.logs)
            p = p / np.maximum(p.sum(axis=-1, keepdims=True), 1e-300)
            found.append((_along_rows(p, pair[0]), _along_rows(p, pair[1])))
        return found

    @cached_property
    def _ends(self) -> list[tuple[Floats, Floats]]:
        """The answer at both ends of the range of each entry."""
        found = []
        for k, table in enumerate(self.tables):
            p = np.exp(table.logs)
            with np.errstate(divide="ignore"):
                odds = p / (1.0 - p)
            ends = []
            for times in (1.0 / self.factor, self.factor):
                moved = np.where(np.isinf(odds), p, times * odds / (1.0 + times * np.where(np.isinf(odds), 0.0, odds)))
                ends.append(self._answer(k, moved - p))
            found.append((ends[0], ends[1]))
        return found

    def _answer(self, k: int, change: Floats) -> Floats:
        """Return the answer where entries of a table are changed one by one."""
        first, second = self._linear[k]
        share = 1.0 - self.probability if self.complement else self.probability
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = share * (1.0 + change * first) / (1.0 + change * second)
        found: Floats = np.clip(1.0 - moved if self.complement else moved, 0.0, 1.0)
        return found

    def top(self, many: int = 20) -> list[Entry]:
        """Return the entries for which the answer moves most; of a row with two entries only the first."""
        many = check_integer("many", many, 0)
        swings = []
        for low, high in self._ends:
            swing = np.abs(high - low)
            if swing.shape[-1] == 2:  # both entries of the row are the same number
                swing[..., 1] = 0.0
            swings.append(swing.ravel())
        sizes = [swing.size for swing in swings]
        whole = np.nan_to_num(np.concatenate(swings))
        # rounded, so that ties, as of two entries of a row, keep the order of the tables
        best = [place for place in np.argsort(-whole.round(12), kind="stable")[:many].tolist() if whole[place] > 1e-12]
        start = np.concatenate([[0], np.cumsum(sizes)])
        found = []
        for place in best:
            k = int(np.searchsorted(start, place, side="right")) - 1
            found.append(self._entry(k, np.unravel_index(place - int(start[k]), self.tables[k].logs.shape)))
        return found

    def entry(self, site: str, state: Any, parents: Mapping[str, Any] | None = None) -> Entry:
        """Return one entry."""
        k, at = self._find(site, state, parents or {})
        return self._entry(k, at)

    def curve(
        self, site: str, state: Any, parents: Mapping[str, Any] | None = None, values: npt.ArrayLike | None = None
    ) -> tuple[Floats, Floats]:
        """Return the answer for values of an entry, by default 101 from 0 to 1.

        Examples
        --------
        >>> import gibbsite as gs
        >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})
        >>> found.curve("smoke", "yes", values=[0.0, 0.5, 1.0])[1].round(4).tolist()
        [0.1423, 0.4887, 0.646]
        """
        k, at = self._find(site, state, parents or {})
        given = np.linspace(0.0, 1.0, 101) if values is None else np.asarray(values, float)
        if not ((given >= 0.0) & (given <= 1.0)).all():
            raise ArgumentError(f"{argument('values')} must be probabilities, from 0 to 1.")
        p = math.exp(self.tables[k].logs[at])
        first, second = (float(part[at]) for part in self._linear[k])
        share = 1.0 - self.probability if self.complement else self.probability
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = share * (1.0 + (given - p) * first) / (1.0 + (given - p) * second)
        return given, 1.0 - moved if self.complement else moved

    def surface(
        self, one: tuple[str, Any, Mapping[str, Any]], other: tuple[str, Any, Mapping[str, Any]], many: int = 21
    ) -> tuple[Floats, Floats]:
        """Return the answer for pairs of values of two entries: values from 0 to 1, and answers (values, values).

        Both probabilities are linear in each of the two entries, so that four solutions determine the surface. The
        entries belong to different rows.

        Examples
        --------
        >>> import gibbsite as gs
        >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "lung", "yes", {"xray": "yes"})
        >>> values, answers = found.surface(("smoke", "yes", {}), ("asia", "yes", {}), many=3)
        >>> answers.shape
        (3, 3)
        """
        places = [self._find(*each) for each in (one, other)]
        if places[0][0] == places[1][0] and places[0][1][:-1] == places[1][1][:-1]:
            raise ArgumentError("The two entries belong to the same row; name entries of different rows.")
        corners = np.zeros((2, 2, 2))
        for a in (0, 1):
            for b in (0, 1):
                tables = [Table(table.scope, table.logs.copy()) for table in self.tables]
                for (k, at), value in zip(places, (a, b), strict=True):
                    with np.errstate(divide="ignore"):
                        tables[k].logs[at[:-1]] = np.log(_moved_row(np.exp(tables[k].logs[at[:-1]]), at[-1], value))
                corners[a, b] = _pair(self.model, tables, self.evidence, self.target, self.state)
        values = np.linspace(0.0, 1.0, check_integer("many", many, 2))
        weights = np.stack([1.0 - values, values])
        top, bottom = np.einsum("ai,bj,abk->kij", weights, weights, corners)
        with np.errstate(divide="ignore", invalid="ignore"):
            return values, top / bottom

    def _entry(self, k: int, at: tuple[Any, ...]) -> Entry:
        table, model = self.tables[k], self.model
        labels = [model.labels(site)[int(code)] for site, code in zip(table.scope, at, strict=True)]
        names = [model.sites[site] for site in table.scope]
        low, high = (float(end[at]) for end in self._ends[k])
        parents = dict(zip(names[:-1], labels[:-1], strict=True))
        value, slope = math.exp(table.logs[at]), float(self.derivatives[k][at])
        return Entry(names[-1], labels[-1], parents, value, slope, low, high)

    def _find(self, site: str, state: Any, parents: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
        model = self.model
        k = model.index(site)
        scope = self.tables[k].scope
        named = {model.index(name): label for name, label in parents.items()}
        if set(named) != set(scope[:-1]):
            wanted = ", ".join(repr(model.sites[one]) for one in scope[:-1]) or "none"
            raise ArgumentError(f"An entry of the table of {site!r} needs the states of its parents: {wanted}.")
        named[k] = state
        return k, tuple(model.domains.code(one, named[one]) for one in scope)

    def __repr__(self) -> str:
        return f"Sensitivity({next(self.lines(0)).partition(';')[0]})"

    def lines(self, most: int = 10) -> Iterator[str]:
        """Yield the entries that matter most line by line."""
        given = ", ".join(f"{escaped(name)} = {escaped(label)}" for name, label in self.evidence.items())
        name = f"P({escaped(self.target)} = {escaped(self.state)}{' | ' if given else ''}{given})"
        yield f"{name} = {self.probability:.4f}; with the odds of one entry divided or multiplied by {self.factor:g}:"
        entries = self.top(most)
        width = max((len(str(entry)) for entry in entries), default=0)
        for entry in entries:
            ends = f"{entry.low:.4f} to {entry.high:.4f}"
            yield f"  {entry!s:<{width}} = {entry.value:<8.4g} {ends}   derivative {entry.derivative:.4g}"


def _along_rows(p: Floats, slopes: Floats) -> Floats:
    """Return derivatives along changes of one entry, with the others of the row in proportion."""
    rest = 1.0 - p
    states = p.shape[-1]
    total = (p * slopes).sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(rest > 1e-15, (total - p * slopes) / rest, np.nan)
    equal = (slopes.sum(axis=-1, keepdims=True) - slopes) / max(states - 1, 1)
    return slopes - np.where(np.isnan(others), equal, others)


def _moved_row(row: Floats, state: int, value: float) -> Floats:
    """Return a row with another value of one entry and the others in proportion."""
    others = np.delete(row, state)
    total = others.sum()
    others = others * ((1.0 - value) / total) if total > 1e-15 else np.full(others.size, (1.0 - value) / others.size)
    return np.insert(others, state, value)


@checked
def analyse_sensitivity(
    model: FactorGraph, target: str, state: Any, evidence: Mapping[str, Any] | None = None, *, factor: float = 2.0
) -> Sensitivity:
    """Return how the probability of a state depends on every entry of every table of a Bayesian network.

    Parameters
    ----------
    model : FactorGraph
        A Bayesian network, before the evidence, that can be solved exactly.
    target, state : site and label
        The answer is the probability of this state given the evidence.
    evidence : mapping, optional
        Site -> state.
    factor : float
        To show how much an entry matters, its odds are divided and multiplied by this.

    Returns
    -------
    Sensitivity

    Raises
    ------
    TooLargeError
        If the model cannot be solved exactly in memory.

    References
    ----------
    Darwiche (2003), A differential approach to inference in Bayesian networks. Chan and Darwiche (2002), When do
    numbers really matter?

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.questions.analyse_sensitivity(gs.example("asia"), "tub", "yes", {"xray": "yes"})
    >>> for line in found.lines(2):
    ...     print(line)
    P(tub = yes | xray = yes) = 0.0924; with the odds of one entry divided or multiplied by 2:
      P(tub = yes | asia = no)    = 0.01     0.0506 to 0.1658   derivative 8.068
      P(xray = yes | either = no) = 0.05     0.1165 to 0.0668   derivative -0.7836
    """
    if not is_number(factor) or not 1.0 < factor < math.inf:
        raise ArgumentError(f"{argument('factor')} must be a number above 1, got {factor!r}.")

    def refuse(reason: str) -> IncompatibleError:
        return IncompatibleError(f"Sensitivity is that of the tables of a Bayesian network, but {reason}.")

    tables = conditional_tables(model, refuse)
    observed = _read_hard(model, evidence or {}, 0)
    at = model.index(target)
    name = model.sites[at]
    if name in observed:
        raise ArgumentError(f"The target {name!r} is observed; ask about another site.")
    code = model.domains.code(at, state)
    wanted = np.zeros(int(model.cards[at]))
    wanted[code] = 1.0
    below, bottom = _slopes(model, tables, observed, at, np.ones(wanted.size))
    if math.isinf(below):
        raise ArgumentError("The observations are impossible together.")
    above, top = _slopes(model, tables, observed, at, wanted)
    complement = math.isinf(above)
    if complement:
        above, top = _slopes(model, tables, observed, at, 1.0 - wanted)
    p = math.exp(min(above - below, 0.0))
    pairs = list(zip(top, bottom, strict=True))
    label = model.labels(at)[code]
    answer = 1.0 - p if complement else p
    return Sensitivity(model, observed, name, label, answer, float(factor), tables, pairs, complement)


def _slopes(
    model: FactorGraph, tables: list[Table], observed: Mapping[str, Any], target: int, wanted: Floats
) -> tuple[float, list[Floats]]:
    """Return log P(evidence, wanted states of the target), and its derivatives by all entries."""
    codes = _codes(model, observed)
    scopes, cut, places = [], [], []
    for table in tables:
        at = tuple(slice(None) if codes[site] < 0 else int(codes[site]) for site in table.scope)
        places.append(at)
        scopes.append(tuple(site for site in table.scope if codes[site] < 0))
        cut.append(np.exp(table.logs[at]))
    cards = np.where(codes < 0, model.cards, 1)
    log_p, found = differentiate([*scopes, (target,)], [*cut, wanted], cards)
    whole = []
    for table, at, slope in zip(tables, places, found, strict=False):
        wide = np.zeros(table.logs.shape)
        wide[at] = slope
        whole.append(wide)
    return log_p, whole


def _pair(model: FactorGraph, tables: list[Table], observed: Mapping[str, Any], target: str, state: Any) -> Floats:
    """Return P(evidence, answer) and P(evidence) for other tables."""
    at = model.index(target)
    wanted = np.zeros(int(model.cards[at]))
    wanted[model.domains.code(at, state)] = 1.0
    logs = [_slopes(model, tables, observed, at, each)[0] for each in (wanted, np.ones(wanted.size))]
    found: Floats = np.exp(np.array(logs))
    return found


def _codes(model: FactorGraph, observed: Mapping[str, Any]) -> Ints:
    codes = np.full(model.n_sites, -1, np.int64)
    for name, label in observed.items():
        at = model.index(name)
        codes[at] = model.domains.code(at, label)
    return codes
