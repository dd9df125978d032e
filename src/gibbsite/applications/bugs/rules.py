"""Rules: all instances of a relation, and deterministic relations of arrays as rules of their entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gibbsite._common.arrays import Ints
from gibbsite.applications.bugs.distributions import Distribution, find_distribution
from gibbsite.applications.bugs.functions import FUNCTIONS, INVERSE_LINKS, SYNONYMS
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Logical, Number, Stochastic, Variable
from gibbsite.applications.bugs.values import NotKnown, Scope, as_expression, fail

_ROW, _COLUMN = ".row", ".column"  # hidden counters of the entries of an array on the left side
MATRIX_FUNCTIONS = ("inverse", "mexp")


@dataclass
class Rule:
    """All instances of a relation.

    Attributes
    ----------
    relation : Logical or Stochastic
        The relation; of deterministic ones, each instance defines one element, apart from matrix functions.
    scope : Scope
        The counters of all instances.
    name : str
        The variable on the left side.
    positions : int array (instances, entries)
        Places in that variable that each instance defines.
    shape : tuple
        The shape of what an instance defines; () for a number.
    """

    relation: Logical | Stochastic
    scope: Scope
    name: str
    positions: Ints
    shape: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """Number of instances."""
        return self.scope.n

    @property
    def distribution(self) -> Distribution | None:
        """The distribution of a stochastic relation."""
        if isinstance(self.relation, Stochastic):
            return find_distribution(self.relation.distribution.function)
        return None


def make_rules(
    relation: Logical | Stochastic, scope: Scope, positions: Ints, target_shape: tuple[int, ...]
) -> list[Rule]:
    """Return the rules of an expanded relation that defines elements of some shape at positions of its variable."""
    if scope.n == 0:
        return []
    name = relation.target.name
    if isinstance(relation, Stochastic):
        return [_sorted(Rule(relation, scope, name, positions, target_shape))]
    if relation.link is not None:
        linked = Call(INVERSE_LINKS[relation.link], (relation.value,), relation.value.at)
        relation = Logical(relation.target, linked, None, relation.at)
    if not target_shape:
        return [_sorted(Rule(relation, scope, name, positions))]
    value = relation.value
    if isinstance(value, Call) and SYNONYMS.get(value.function, value.function) in MATRIX_FUNCTIONS:
        return [Rule(relation, scope, name, positions, target_shape)]
    if isinstance(value, Call) and value.function == "c":
        return _concatenated(relation, scope, name, positions)
    given = scope.shape(value)
    if given and int(np.prod(given)) != positions.shape[1]:
        raise fail(
            relation.at, f"{int(np.prod(given))} values are assigned to {positions.shape[1]} elements of {name!r}"
        )
    # each entry becomes an instance, with counters of its place in the array
    shape = given or target_shape
    many = positions.shape[1]
    wide = scope.taken(np.repeat(np.arange(scope.n), many))
    places = np.unravel_index(np.arange(many), shape, order="F")
    for counter, place in zip((_ROW, _COLUMN), places, strict=False):
        wide.counters[counter] = np.tile(place + 1, scope.n)
    entry = entry_of(value, scope, [Variable(counter) for counter in (_ROW, _COLUMN)[: len(shape)]])
    return [_sorted(Rule(replace(relation, value=entry), wide, name, positions.reshape(-1, 1)))]


def _concatenated(relation: Logical, scope: Scope, name: str, positions: Ints) -> list[Rule]:
    """Return a rule for each argument of ``c(...)``."""
    assert isinstance(relation.value, Call)
    entries = _listed("c", tuple(map(as_expression, relation.value.arguments)), scope)
    if len(entries) != positions.shape[1]:
        raise fail(relation.at, f"{len(entries)} values are assigned to {positions.shape[1]} elements of {name!r}")
    return [
        Rule(replace(relation, value=entry), scope, name, positions[:, k : k + 1]) for k, entry in enumerate(entries)
    ]


def entry_of(expression: Expression, scope: Scope, places: list[Expression]) -> Expression:
    """Return one entry of an expression that is an array; places count from 1."""
    shape = scope.shape(expression)
    if not shape:
        return expression
    if isinstance(expression, Variable):
        return _slice(expression, scope, places)
    assert isinstance(expression, Call)
    name = SYNONYMS.get(expression.function, expression.function)
    arguments = tuple(map(as_expression, expression.arguments))
    if name == "t":
        turned = places[::-1] if len(scope.shape(arguments[0])) == 2 else places[1:]
        return entry_of(arguments[0], scope, turned)
    if name == "%*%":
        return _product(arguments, scope, places, expression)
    if name in ("sort", "rank", "order"):
        return Call(f"{name}.at", (places[0], arguments[0]), expression.at)
    if name in FUNCTIONS:
        return Call(expression.function, tuple(entry_of(each, scope, places) for each in arguments), expression.at)
    if name in ("c", "rep"):
        return _chosen(_listed(name, arguments, scope), places[0], expression)
    try:
        found = scope.entries(expression)
    except NotKnown:
        found = np.zeros((0, 0))
    if len(found) == 1:  # the value is known
        hidden = f".{len(scope.values.arrays)}"
        scope.values.declare(hidden, shape, fixed=True)
        scope.values.arrays[hidden] = found.reshape(shape, order="F")
        return Variable(hidden, tuple(places), expression.at)
    raise fail(
        expression.at, f"{expression.function!r} cannot be used inside an expression of unknowns; assign it first"
    )


def _listed(name: str, arguments: tuple[Expression, ...], scope: Scope) -> list[Expression]:
    """Return the entries of ``c(...)`` or ``rep(...)``."""
    found: list[Expression] = []
    for each in arguments if name == "c" else arguments[:1]:
        size = int(np.prod(scope.shape(each), dtype=np.int64))
        found += [entry_of(each, scope, [Number(k + 1.0)]) for k in range(size)] if scope.shape(each) else [each]
    if name == "c":
        return found
    times = scope.entries(arguments[1])[0].astype(int).tolist()
    return (
        found * times[0]
        if len(times) == 1
        else [one for one, many in zip(found, times, strict=True) for _ in range(many)]
    )


def _chosen(parts: list[Expression], place: Expression, whole: Call) -> Expression:
    """Return the expression at a place of a list, which may be a counter."""
    if isinstance(place, Number):
        return parts[int(place.value) - 1]
    found = parts[-1]
    for k in range(len(parts) - 2, -1, -1):
        found = Call("ifelse", (Call("equals", (place, Number(k + 1.0)), whole.at), parts[k], found), whole.at)
    return found


def _product(arguments: tuple[Expression, ...], scope: Scope, places: list[Expression], whole: Call) -> Expression:
    """Return an entry of a matrix product as an inner product of a row and a column."""
    left, right = arguments
    shapes = [scope.shape(each) for each in arguments]
    if not all(shapes) or shapes[0][-1] != shapes[1][0]:
        raise fail(whole.at, f"a product of arrays of the shapes {shapes[0]} and {shapes[1]} is not defined")
    here = list(places)
    if not isinstance(left, Variable) or not isinstance(right, Variable):
        first = [here.pop(0)] if len(shapes[0]) == 2 else []
        terms = [
            Call("*", (entry_of(left, scope, [*first, k]), entry_of(right, scope, [k, *here])), whole.at)
            for k in (Number(k + 1.0) for k in range(shapes[0][-1]))
        ]
        total: Expression = terms[0]
        for term in terms[1:]:
            total = Call("+", (total, term), whole.at)
        return total
    row = _slice(left, scope, [here.pop(0), Empty()] if len(shapes[0]) == 2 else [Empty()])
    column = _slice(right, scope, [Empty(), here.pop(0)] if len(shapes[1]) == 2 else [Empty()])
    return Call("inprod", (row, column), whole.at)


def _slice(variable: Variable, scope: Scope, places: Sequence[Expression | Empty]) -> Variable:
    """Return an entry of a variable, or of a slice of it, or what is left where a place is empty."""
    given = variable.indices
    if given is None or (len(given) == 1 and isinstance(given[0], Empty)):
        given = tuple(Empty(variable.at) for _ in range(scope.values.find(variable).ndim))
    left, indices = list(places), []
    for index in given:
        is_range = isinstance(index, Call) and index.function == ":"
        if isinstance(index, Empty) or is_range or scope.shape(index):
            place = left.pop(0)
            if isinstance(index, Empty):
                index = place
            elif isinstance(place, Empty):
                pass
            elif isinstance(index, Call) and is_range:
                low = as_expression(index.arguments[0])
                index = Call("-", (Call("+", (low, place), index.at), Number(1.0)), index.at)
            else:
                index = entry_of(index, scope, [place])
        indices.append(index)
    return Variable(variable.name, tuple(indices), variable.at)


def _sorted(rule: Rule) -> Rule:
    """Return a rule whose instances are in the order of the elements that they define."""
    first = rule.positions[:, 0]
    if np.all(first[1:] >= first[:-1]):
        return rule
    order = np.argsort(first, kind="stable")
    return Rule(rule.relation, rule.scope.taken(order), rule.name, rule.positions[order], rule.shape)
