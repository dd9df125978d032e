"""Events: statements about states of sites, such as ``A = yes and (B = low or not C = 3)``.

An event is a tree of conditions on single sites. :func:`truth_table` evaluates it for all states of its sites;
:func:`add_event` adds sites to a model, each the conjunction or disjunction of two others, so that an exact answer
never needs a table of all sites of the event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import describe
from gibbsite._common.arrays import Bools
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError
from gibbsite.models import FactorGraph
from gibbsite.models.extension import extend_model, fresh_name

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<sign><=|>=|==|!=|=|<|>|\(|\)|\{|\}|,|&&?|\|\|?|!)"""
    r"""|(?P<word>[^\s()<>=!{},&|"']+))"""
)
_COMPARE = {"=", "==", "!=", "<", "<=", ">", ">="}
_WORDS = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}
_MOST_ENTRIES = 1 << 20  # of a table of all sites of an event


class Condition(NamedTuple):
    """A site, by position, is in one of the marked states."""

    site: int
    states: Bools


class Both(NamedTuple):
    """All parts hold (``every``), or at least one of them."""

    every: bool
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Event:
    """A statement about the states of some sites of a model.

    Attributes
    ----------
    text : str
        The statement as it was written.
    tree : Condition, Both or bool
        Conditions on single sites, joined by "and" and "or"; True or False if the evidence decides the event.

    Examples
    --------
    >>> import gibbsite as gs
    >>> event = read_event(gs.example("asia"), "lung = yes and not smoke = yes")
    >>> event.text, event.sites
    ('lung = yes and not smoke = yes', [2, 3])
    """

    text: str
    tree: Any

    @property
    def sites(self) -> list[int]:
        """Positions of its sites in ascending order."""
        return sorted({condition.site for condition in _conditions(self.tree)})


def read_event(model: FactorGraph, given: Any) -> Event:
    """Return the event that a text describes, or a mapping of sites to states, all of which have to hold.

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia")
    >>> read_event(asia, {"lung": "yes", "tub": "no"}).text
    "lung = 'yes' and tub = 'no'"
    >>> read_event(asia.observe({"lung": "yes"}), "lung = yes or tub = yes").tree
    True
    """
    if isinstance(given, Event):
        return given
    if isinstance(given, Mapping):
        if not given:
            raise ArgumentError("An event is about at least one site; the mapping is empty.")
        parts = [_condition(model, site, {_code(model, site, state)}) for site, state in given.items()]
        text = " and ".join(f"{site} = {state!r}" for site, state in given.items())
        return Event(text, _joined(True, parts))
    if not isinstance(given, str):
        raise ArgumentError(f"An event is a text such as 'A = yes and B = no', or a mapping, got {describe(given)}.")
    return Event(given.strip(), _Reader(model, given).read())


def truth_table(model: FactorGraph, event: Event) -> Bools:
    """Return whether an event holds, for all states of its sites: one axis for each, in ascending order.

    Examples
    --------
    >>> import gibbsite as gs
    >>> pair = gs.FactorGraph({"a": 2, "b": 3})
    >>> truth_table(pair, read_event(pair, "a = 1 and b > 0")).astype(int).tolist()
    [[0, 0, 0], [0, 1, 1]]
    """
    sites = event.sites
    cards = [int(model.cards[site]) for site in sites]
    size = float(np.prod(np.array(cards, float)))
    if size > _MOST_ENTRIES or len(sites) > 24:
        raise ArgumentError(
            f"The event is about {len(sites)} sites with {size:.3g} configurations together, too many to be followed "
            "in a sampled run; ask about fewer sites at a time, or solve the model exactly."
        )

    def evaluate(node: Any) -> Any:
        if isinstance(node, bool):
            return np.array(node)
        if isinstance(node, Condition):
            axis = sites.index(node.site)
            return node.states.reshape([-1 if k == axis else 1 for k in range(len(sites))])
        tables = [evaluate(part) for part in node.parts]
        found = tables[0]
        for table in tables[1:]:
            found = found & table if node.every else found | table
        return found

    whole: Bools = np.broadcast_to(evaluate(event.tree), cards).copy()
    return whole


def add_event(model: FactorGraph, event: Event) -> tuple[FactorGraph, str, Bools]:
    """Return the model with sites that decide an event, the name of the last of them, and its states that mean yes.

    Examples
    --------
    >>> import gibbsite as gs
    >>> coins = gs.FactorGraph({"a": 2, "b": 2, "c": 2})
    >>> wider, name, yes = add_event(coins, read_event(coins, "a = 1 and (b = 1 or c = 1)"))
    >>> p = gs.solve_exact(wider).marginals[name]
    >>> wider.n_sites, round(sum(p[state] for state in p if yes[state]), 3)
    (5, 0.375)
    """
    sites: dict[str, int] = {}
    tables: list[tuple[tuple[str, str, str], Any]] = []

    def decide(node: Any) -> tuple[str, Bools]:
        if isinstance(node, Condition):
            return model.sites[node.site], node.states
        name, yes = decide(node.parts[0])
        for part in node.parts[1:]:
            other, also = decide(part)
            holds = yes[:, None] & also if node.every else yes[:, None] | also
            new = fresh_name(model, f"event {len(sites)}")
            sites[new] = 2
            tables.append(((name, other, new), np.stack([~holds, holds], axis=-1).astype(float)))
            name, yes = new, np.array([False, True])
        return name, yes

    name, yes = decide(event.tree)
    return (extend_model(model, sites, tables, directed=True) if sites else model), name, yes


def _conditions(node: Any) -> Iterator[Condition]:
    if isinstance(node, Condition):
        yield node
    elif isinstance(node, Both):
        for part in node.parts:
            yield from _conditions(part)


def _code(model: FactorGraph, site: Any, state: Any) -> int:
    """Return the code of a state of a site, whether or not the site is observed."""
    if isinstance(site, str) and site in model.evidence:
        labels = model.evidence_labels[site]
        texts = [str(label) for label in labels]
        if str(state) not in texts:
            raise ArgumentError(unknown(f"state of the site {site!r}", str(state), texts))
        return texts.index(str(state))
    at = model.index(site)
    return model.domains.code(at, state)


def _condition(model: FactorGraph, site: Any, codes: set[int]) -> Condition | bool:
    """Return the condition that a site is in one of some states; what is certain is True or False."""
    if isinstance(site, str) and site in model.evidence:
        return _code(model, site, model.evidence[site]) in codes
    at = model.index(site)
    states = np.zeros(int(model.cards[at]), np.bool_)
    states[list(codes)] = True
    return bool(states[0]) if states.all() or not states.any() else Condition(at, states)


def _joined(every: bool, parts: list[Any]) -> Any:
    """Join parts by "and" or "or", and conditions on the same site into one."""
    conditions: dict[int, Bools] = {}
    others: list[Any] = []
    for part in parts:
        if isinstance(part, bool):
            if part != every:
                return part
        elif isinstance(part, Condition):
            known = conditions.get(part.site)
            merged = part.states if known is None else known & part.states if every else known | part.states
            conditions[part.site] = merged
        else:
            others.extend(part.parts if part.every == every else [part])
    if any((states.all() if not every else not states.any()) for states in conditions.values()):
        return not every
    found = [*(Condition(site, states) for site, states in conditions.items()), *others]
    if not found:
        return every
    return found[0] if len(found) == 1 else Both(every, tuple(found))


def _negated(node: Any) -> Any:
    if isinstance(node, bool):
        return not node
    if isinstance(node, Condition):
        return Condition(node.site, ~node.states)
    return Both(not node.every, tuple(_negated(part) for part in node.parts))


class _Reader:
    """Reads an event from a text."""

    def __init__(self, model: FactorGraph, text: str) -> None:
        self.model, self.text, self.tokens, self.at = model, text, [], 0
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ArgumentError(f"The event {text!r} has a quotation mark without its partner.")
            kind = str(found.lastgroup)
            token = found.group(kind)
            self.tokens.append((kind, token[1:-1] if kind == "quoted" else token))
            place = found.end()

    tokens: list[tuple[str, str]]

    def read(self) -> Any:
        """Return the tree of the whole text."""
        tree = self._some()
        if self.at < len(self.tokens):
            raise self._fail(f"expected 'and', 'or' or the end before {self.tokens[self.at][1]!r}")
        return tree

    def _fail(self, what: str) -> ArgumentError:
        return ArgumentError(
            f"The event {self.text!r} cannot be read: {what}. Write conditions such as A = yes, B != 3 or C >= 10, "
            "joined by and, or, not and parentheses; put names and states with spaces or signs into quotation marks."
        )

    def _next(self, *words: str) -> bool:
        """Skip a word if it is the next one."""
        if self.at < len(self.tokens):
            kind, token = self.tokens[self.at]
            word = _WORDS.get(token, token.lower()) if kind != "quoted" else None
            if word in words:
                self.at += 1
                return True
        return False

    def _take(self, what: str) -> str:
        """Return the next name or state."""
        if self.at == len(self.tokens):
            raise self._fail(f"expected {what} at the end")
        kind, token = self.tokens[self.at]
        if kind == "sign":
            raise self._fail(f"expected {what} instead of {token!r}")
        self.at += 1
        return token

    def _some(self) -> Any:
        parts = [self._all()]
        while self._next("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else _joined(False, parts)

    def _all(self) -> Any:
        parts = [self._one()]
        while self._next("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else _joined(True, parts)

    def _one(self) -> Any:
        if self._next("not"):
            return _negated(self._one())
        if self._next("("):
            inside = self._some()
            if not self._next(")"):
                raise self._fail("a parenthesis is not closed")
            return inside
        return self._comparison()

    def _comparison(self) -> Any:
        site = self._take("the name of a site")
        if self._next("in"):
            states = self._set(site)
            return _condition(self.model, site, {_code(self.model, site, state) for state in states})
        if self.at == len(self.tokens) or self.tokens[self.at][1] not in _COMPARE:
            raise self._fail(f"expected a comparison such as {site} = STATE after {site!r}")
        sign = self.tokens[self.at][1]
        self.at += 1
        state = self._take(f"a state of {site!r}")
        if sign in ("=", "==", "!="):
            tree = _condition(self.model, site, {_code(self.model, site, state)})
            return _negated(tree) if sign == "!=" else tree
        return self._ordered(site, sign, state)

    def _set(self, site: str) -> list[str]:
        if not self._next("{"):
            raise self._fail(f"expected states in braces, such as {site} in {{a, b}}")
        states = [self._take(f"a state of {site!r}")]
        while self._next(","):
            states.append(self._take(f"a state of {site!r}"))
        if not self._next("}"):
            raise self._fail("a brace is not closed")
        return states

    def _ordered(self, site: str, sign: str, state: str) -> Any:
        """Return the condition that the numeric label of a site is less or greater than a number."""
        labels = self.model.evidence_labels.get(site) or self.model.labels(site)
        try:
            numbers, bound = np.array([float(label) for label in labels]), float(state)
        except ValueError:
            raise ArgumentError(
                f"{site} {sign} {state} compares numbers, and the states of {site!r} are "
                f"{', '.join(map(str, labels[:8]))}; use = or in."
            ) from None
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[sign]
        return _condition(self.model, site, set(np.flatnonzero(compare(numbers, bound)).tolist()))
