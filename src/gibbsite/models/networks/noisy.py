"""Nodes whose parents act independently: noisy or, noisy maximum, and logistic nodes.

Such a node has a few numbers for each of its parents, in place of a row for each combination of their states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked_constructor, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_real, read_reals
from gibbsite.errors import ModelError
from gibbsite.models.domain import Domains, frozen
from gibbsite.models.networks.reading import check_size

_TOLERANCE = 1e-6  # how far a row may be from the sum one


@dataclass(frozen=True, eq=False)
class Causes:
    """A noisy node by the codes of its parents.

    Attributes
    ----------
    kind : {"max", "logistic"}
        The node is the largest of independent effects, or has two states and a log-odds that is a sum.
    effects : tuple of arrays
        For each parent: the distribution of its effect in each of its states, shape (states, levels), the levels in the
        order of the states of the node; or the summand of each of its states, shape (states,).
    leak : array
        The distribution of the effect of what is not in the model, or the constant summand, shape ().
    descending : bool
        The first state of the node is the strongest, not the last.
    """

    kind: str
    effects: tuple[Floats, ...]
    leak: Floats
    descending: bool = False

    def same(self, other: object) -> bool:
        """Return whether two nodes are equal."""
        return (
            isinstance(other, Causes)
            and (self.kind, self.descending, len(self.effects)) == (other.kind, other.descending, len(other.effects))
            and all(map(np.array_equal, (self.leak, *self.effects), (other.leak, *other.effects)))
        )

    def logs(self) -> tuple[Floats, tuple[Floats, ...]]:
        """Return leak and effects as a group of factors has them.

        These are logarithms of the probability that an effect is at most as strong as each level, the weakest level
        first, or summands of the log-odds.
        """
        if self.kind == "logistic":
            return self.leak, self.effects
        rows = [each[..., ::-1] if self.descending else each for each in (self.leak, *self.effects)]
        leak, *effects = map(_log_cumulative, rows)
        return leak, tuple(effects)

    def probabilities(self) -> Floats:
        """Return the whole conditional table."""
        leak, effects = self.logs()
        return frozen(np.exp(log_conditional(self.kind, leak, effects, self.descending)), np.float64)


def log_conditional(kind: str, leak: Floats, effects: tuple[Floats, ...], descending: bool) -> Floats:
    """Return the logarithms of a conditional table, shape (states of each parent ..., states of the node)."""
    n = len(effects)
    shapes = [tuple(len(each) if k == axis else 1 for k in range(n)) for axis, each in enumerate(effects)]
    cards = tuple(map(len, effects))
    if kind == "logistic":
        odds = np.zeros(cards) + leak
        for shape, each in zip(shapes, effects, strict=True):
            odds = odds + each.reshape(shape)
        pair: Floats = -np.logaddexp(0.0, np.stack([odds, -odds], axis=-1))
        return pair
    total = np.zeros((*cards, leak.size)) + leak
    for shape, each in zip(shapes, effects, strict=True):
        total = total + each.reshape(*shape, leak.size)
    found = difference(total)
    return found[..., ::-1] if descending else found


def difference(total: Floats) -> Floats:
    """Return the logarithms of probabilities, given those of their cumulative sums along the last axis."""
    below = np.concatenate([np.full((*total.shape[:-1], 1), -np.inf), total[..., :-1]], axis=-1)
    possible = total > -np.inf
    with np.errstate(divide="ignore"):
        gap = np.where(possible, below, 0.0) - np.where(possible, total, 1.0)
        found: Floats = np.where(possible, total + np.log(-np.expm1(np.minimum(gap, 0.0))), -np.inf)
    return found


def _log_cumulative(rows: Floats) -> Floats:
    rows = rows / rows.sum(axis=-1, keepdims=True)
    tail = np.concatenate([rows[..., :0:-1].cumsum(axis=-1)[..., ::-1], np.zeros((*rows.shape[:-1], 1))], axis=-1)
    head = rows.cumsum(axis=-1)
    with np.errstate(divide="ignore"):
        # each of the two sums is accurate where it is small
        logs = np.where(tail < 0.5, np.log1p(-np.minimum(tail, 1.0)), np.log(np.minimum(head, 1.0)))
    return frozen(logs, np.float64)


@checked_constructor
@dataclass(frozen=True, eq=False)
class NoisyMax:
    """A node that is the strongest of independent effects of its parents, given to `BayesianNetwork.add` as a table.

    The states of the node run from none to the strongest.

    Parameters
    ----------
    effects : mapping
        Parent -> its effects: a mapping from its states to the probabilities of the states of the node if this parent
        alone acted; a state that is left out has no effect, which is the first state of the node. Or an array with a
        row for each state of the parent.
    leak : sequence of float, optional
        The distribution of the effect of everything that is not a parent, by default none.
    descending : bool
        The states of the node run from the strongest to none, as in many files of GeNIe. With the strongest state
        "no", a noisy maximum is a noisy and.

    See Also
    --------
    NoisyOr : The case of two states.
    Logistic : Log-odds that are sums.

    Notes
    -----
    Conditional probabilities are computed in a time linear in the number of parents (Díez 1993, Parameter adjustment in
    Bayes networks: the generalized noisy OR-gate). The number of parents is not limited.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> net.add("flu", ["no", "yes"], table=[0.9, 0.1])
    >>> net.add("cold", ["no", "yes"], table=[0.7, 0.3])
    >>> effects = {"flu": {"yes": [0.2, 0.3, 0.5]}, "cold": {"yes": [0.6, 0.3, 0.1]}}
    >>> net.add("fever", ["none", "mild", "high"], table=gs.factors.NoisyMax(effects, leak=[0.99, 0.01, 0.0]))
    >>> net.table("fever")
    fever |  flu  cold    none    mild  high
             no   no      0.99    0.01     0
             no   yes    0.594   0.306   0.1
             yes  no     0.198   0.302   0.5
             yes  yes   0.1188  0.3312  0.55
    """

    effects: Mapping[str, Any]
    leak: Any = None
    descending: bool = False

    def read(self, domains: Domains) -> Causes:
        """Return the node by codes; its parents and, last, itself are the sites of ``domains``."""
        child = domains.n_sites - 1
        levels = int(domains.cards[child])
        none = np.zeros(levels)
        none[-1 if self.descending else 0] = 1.0
        effects = []
        for k in range(child):
            given, name, card = self.effects[domains.names[k]], domains.names[k], int(domains.cards[k])
            what = f"the effects of {name!r} on {domains.names[child]!r}"
            if isinstance(given, Mapping):
                rows = np.tile(none, (card, 1))
                for label, row in given.items():
                    rows[domains.code(k, label)] = self._row(row, levels, f"{what} in the state {label!r}")
            else:
                rows = read_reals(given, what)
                if rows.shape != (card, levels):
                    raise ModelError(f"{what} have shape {rows.shape}, expected {(card, levels)}.")
                rows = np.stack([self._row(row, levels, f"{what} in row {a}") for a, row in enumerate(rows)])
            effects.append(frozen(rows, np.float64))
        leak = none if self.leak is None else self._row(self.leak, levels, f"the leak of {domains.names[child]!r}")
        return Causes("max", tuple(effects), frozen(leak, np.float64), bool(self.descending))

    def _row(self, given: Any, levels: int, what: str) -> Floats:
        row = read_reals(given, what)
        if row.shape != (levels,):
            raise ModelError(f"{what} need {levels} probabilities, got {describe(given)}.")
        if not ((row >= 0) & (row <= 1)).all() or abs(row.sum() - 1.0) > _TOLERANCE:
            raise ModelError(f"{what} must be probabilities that sum to one, got {describe(given)}.")
        return row


@checked_constructor
@dataclass(frozen=True, eq=False)
class NoisyOr:
    """A node of two states that each of its parents can cause on its own, given to `BayesianNetwork.add` as a table.

    Parameters
    ----------
    causes : mapping
        Parent -> the probability that it causes the effect, the last state of the node, if it is in its own last
        state; or a mapping from states of the parent to probabilities, zero for states that are left out.
    leak : float
        The probability of the effect without any of these causes.
    descending : bool
        The effect is the first state of the node.

    See Also
    --------
    NoisyMax : A node of more than two states.
    Logistic : Log-odds that are sums.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> net.add("flu", ["no", "yes"], table=[0.9, 0.1])
    >>> net.add("smoker", ["never", "some", "much"], table=[0.6, 0.3, 0.1])
    >>> cough = gs.factors.NoisyOr({"flu": 0.8, "smoker": {"some": 0.1, "much": 0.5}}, leak=0.02)
    >>> net.add("cough", ["no", "yes"], table=cough)
    >>> net.table("cough")
    cough |  flu  smoker      no     yes
             no   never     0.98    0.02
             no   some     0.882   0.118
             no   much      0.49    0.51
             yes  never    0.196   0.804
             yes  some    0.1764  0.8236
             yes  much     0.098   0.902
    """

    causes: Mapping[str, Any]
    leak: float = 0.0
    descending: bool = False

    @property
    def effects(self) -> Mapping[str, Any]:
        """The parents."""
        return self.causes

    def read(self, domains: Domains) -> Causes:
        """Return the node by codes; its parents and, last, itself are the sites of ``domains``."""
        child = domains.n_sites - 1
        name = domains.names[child]
        if int(domains.cards[child]) != 2:
            raise ModelError(f"the noisy or {name!r} has {domains.cards[child]} states; it needs two, or NoisyMax.")
        effects = []
        for k in range(child):
            given, parent, card = self.causes[domains.names[k]], domains.names[k], int(domains.cards[k])
            values = np.zeros(card)
            if isinstance(given, Mapping):
                for label, value in given.items():
                    values[domains.code(k, label)] = _probability(value, f"{parent}={label!r} in {name!r}")
            elif card != 2:
                raise ModelError(
                    f"the parent {parent!r} of the noisy or {name!r} has {card} states; give a mapping from its states "
                    "to probabilities."
                )
            else:
                values[-1] = _probability(given, f"{parent!r} in {name!r}")
            effects.append(self._rows(values))
        leak = self._rows(np.array(_probability(self.leak, f"the leak of {name!r}")))
        return Causes("max", tuple(effects), leak, bool(self.descending))

    def _rows(self, values: Floats) -> Floats:
        rows = np.stack([1.0 - values, values][:: -1 if self.descending else 1], axis=-1)
        return frozen(rows, np.float64)


@checked_constructor
@dataclass(frozen=True, eq=False)
class Logistic:
    """A node of two states whose log-odds is a sum over its parents, given to `BayesianNetwork.add` as a table.

    Parameters
    ----------
    weights : mapping
        Parent -> what its last state adds to the log-odds of the last state of the node; or a mapping from its states
        to what they add, zero for states that are left out.
    intercept : float
        The log-odds without any of these.

    See Also
    --------
    NoisyOr : Independent causes.

    Examples
    --------
    >>> import gibbsite as gs
    >>> net = gs.BayesianNetwork()
    >>> net.add("age", ["young", "middle", "old"], table=[0.3, 0.4, 0.3])
    >>> net.add("ill", ["no", "yes"], table=gs.factors.Logistic({"age": {"middle": 1.0, "old": 2.0}}, intercept=-2.0))
    >>> net.table("ill")["old"]
    {'no': 0.5, 'yes': 0.5}
    """

    weights: Mapping[str, Any]
    intercept: float = 0.0

    @property
    def effects(self) -> Mapping[str, Any]:
        """The parents."""
        return self.weights

    def read(self, domains: Domains) -> Causes:
        """Return the node by codes; its parents and, last, itself are the sites of ``domains``."""
        child = domains.n_sites - 1
        name = domains.names[child]
        if int(domains.cards[child]) != 2:
            raise ModelError(f"the logistic node {name!r} has {domains.cards[child]} states; it needs two.")
        summands = []
        for k in range(child):
            given, parent, card = self.weights[domains.names[k]], domains.names[k], int(domains.cards[k])
            values = np.zeros(card)
            if isinstance(given, Mapping):
                for label, value in given.items():
                    values[domains.code(k, label)] = _finite(value, f"{parent}={label!r} in {name!r}")
            elif card != 2:
                raise ModelError(
                    f"the parent {parent!r} of the logistic node {name!r} has {card} states; give a mapping from its "
                    "states to summands."
                )
            else:
                values[-1] = _finite(given, f"{parent!r} in {name!r}")
            summands.append(frozen(values, np.float64))
        intercept = np.array(_finite(self.intercept, f"the intercept of {name!r}"))
        return Causes("logistic", tuple(summands), frozen(intercept, np.float64))


Noisy = NoisyMax | NoisyOr | Logistic
"""How people write a noisy node."""


def describe_causes(causes: Causes, domains: Domains) -> Noisy:
    """Return a noisy node as people write it, with all states named."""
    names = [domains.names[k] for k in range(domains.n_sites - 1)]
    labels = [domains.labels(k) for k in range(len(names))]
    by_state = [
        dict(zip(states, each.tolist(), strict=True)) for states, each in zip(labels, causes.effects, strict=True)
    ]
    effects: dict[str, Any] = dict(zip(names, by_state, strict=True))
    if causes.kind == "logistic":
        return Logistic(effects, float(causes.leak))
    if causes.leak.size == 2:
        at = 0 if causes.descending else 1
        pairs = {name: {label: row[at] for label, row in each.items()} for name, each in effects.items()}
        return NoisyOr(pairs, float(causes.leak[at]), causes.descending)
    return NoisyMax(effects, causes.leak.tolist(), causes.descending)


def full_table(causes: Causes, domains: Domains) -> Floats:
    """Return the whole table of a noisy node; refuse one that is too large."""
    check_size(domains)
    return causes.probabilities()


def _probability(value: Any, what: str) -> float:
    number = read_real(value, f"the probability of {what}")
    if not 0.0 <= number <= 1.0:
        raise ModelError(f"the probability of {what} must be from 0 to 1, got {number:g}.")
    return number


def _finite(value: Any, what: str) -> float:
    number = read_real(value, f"the summand of {what}")
    if not np.isfinite(number):
        raise ModelError(f"the summand of {what} must be finite, got {number:g}.")
    return number
