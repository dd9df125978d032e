"""Expand the loops of a program: every relation becomes one rule with arrays of counters and targets.

Nothing here is a Python object for each node. Relations are expanded as soon as the ranges of their loops and their
indices are known; deterministic relations of data are computed on the way, so that later ranges may use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import nearest
from gibbsite.applications.bugs.distributions import DISTRIBUTIONS, find_distribution
from gibbsite.applications.bugs.functions import FUNCTIONS, INVERSE_LINKS, REDUCTIONS, SYNONYMS
from gibbsite.applications.bugs.language.syntax import Call, Empty, Logical, Loop, Program, Stochastic, Variable
from gibbsite.applications.bugs.rules import Rule, make_rules
from gibbsite.applications.bugs.values import NotKnown, Scope, Values, as_expression, fail

_LARGEST = 2**31 - 1  # elements of a variable, or turns of a loop


@dataclass
class _Item:
    """A relation and the loops around it, before and after its expansion."""

    relation: Logical | Stochastic
    loops: tuple[Loop, ...]
    scope: Scope | None = None
    columns: list[Ints] | None = None
    shape: tuple[int, ...] = ()
    known: bool = False
    problem: NotKnown | None = None


def expand(program: Program, data: dict[str, Floats]) -> tuple[Values, list[Rule]]:
    """Return the values and the rules of a program with its data."""
    values = Values()
    for name, array in data.items():
        values.declare(name, array.shape, fixed=True)
        values.arrays[name] = array
    for declared in program.declarations:
        shape = tuple(int(Scope(values).whole(each)[0]) for each in declared.dimensions)
        if declared.name in values.fixed and values.arrays[declared.name].shape != shape:
            raise fail(
                declared.at, f"{declared.name!r} is declared as {_shape_text(shape)} and has another shape in the data"
            )
        values.declare(declared.name, shape, fixed=True)
    if program.data:
        for item in _Expander(values, program.data).run():
            if not item.known:
                raise fail(item.relation.at, "the data block may only hold relations that are computed from data")
        for name in {item.relation.target.name for item in _items(program.data)}:
            values.fixed.add(name)
    items = _Expander(values, program.model).run()
    return values, [rule for item in items if not item.known for rule in _rules_of(item, values)]


def _shape_text(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _items(relations: Iterable[Any], loops: tuple[Loop, ...] = ()) -> Iterator[_Item]:
    stack = [iter(relations)]
    around: list[Loop] = list(loops)
    while stack:
        relation = next(stack[-1], None)
        if relation is None:
            stack.pop()
            if around:
                around.pop()
        elif isinstance(relation, Loop):
            around.append(relation)
            stack.append(iter(relation.body))
        else:
            yield _Item(relation, tuple(around))


class _Expander:
    """Expands the relations of a block, in any order in which they can be resolved."""

    def __init__(self, values: Values, relations: Iterable[Any]) -> None:
        self.values = values
        self.items = list(_items(relations))
        self.missing = {name: np.isnan(array) for name, array in values.arrays.items()}
        for item in self.items:
            _check_relation(item.relation)
        self._count_pending()

    def _count_pending(self) -> None:
        waiting = {item.relation.target.name for item in self.items if item.scope is None}
        self.values.pending = waiting

    def run(self) -> list[_Item]:
        """Expand all relations."""
        progress = True
        while progress:
            progress = False
            for item in self.items:
                if item.scope is None and self._try_to_place(item):
                    progress = True
                    self._count_pending()
                if item.scope is not None and not item.known and isinstance(item.relation, Logical):
                    progress |= self._try_to_compute(item)
        for item in self.items:
            if item.scope is None:
                assert item.problem is not None
                variable = item.problem.variable
                raise fail(
                    variable.at,
                    f"a range or an index depends on {variable.name!r}, whose value is not known before sampling",
                )
        return self.items

    def _try_to_place(self, item: _Item) -> bool:
        try:
            scope = _loop_scope(self.values, item.loops)
            columns, shape = self._target(item, scope)
        except NotKnown as problem:
            item.problem = problem
            return False
        item.scope, item.columns, item.shape = scope, columns, shape
        name = item.relation.target.name
        if scope.n:
            if any((column < 0).any() for column in columns):
                raise fail(item.relation.target.at, f"an index of {name!r} is below 1")
            if any(int(column.max()) >= _LARGEST for column in columns):
                raise fail(item.relation.target.at, f"an index of {name!r} is too large")
            highest = tuple(int(column.max()) + 1 for column in columns)
            if name in self.values.fixed:
                full = self.values.arrays[name].shape
                whole = len(full) == 0 and len(highest) <= 1 and all(size == 1 for size in highest)
                if not whole and (len(full) != len(highest) or any(a > b for a, b in zip(highest, full, strict=True))):
                    raise fail(
                        item.relation.target.at,
                        f"{name!r} has the shape {_shape_text(full)}, and this relation defines an element "
                        f"{_shape_text(highest)}",
                    )
            else:
                self.values.declare(name, highest)
        elif name not in self.values.arrays:
            self.values.declare(name, (0,) * len(columns))
        return True

    def _target(self, item: _Item, scope: Scope) -> tuple[list[Ints], tuple[int, ...]]:
        """Return a column of positions (instances, entries) for each dimension of what is defined, and its shape."""
        target = item.relation.target
        array = self.values.arrays.get(target.name)
        if target.indices is None or all(isinstance(each, Empty) for each in target.indices):
            if array is not None and target.name in self.values.fixed:
                sizes: tuple[int, ...] = array.shape
            else:
                sizes = self._shape_of_value(item.relation, scope)
            if scope.n > 1 and item.loops:
                raise fail(target.at, f"{target.name!r} is defined once for each turn of a loop; give it an index")
            return [np.arange(size)[None] for size in sizes], () if np.prod(sizes) == 1 and not sizes else sizes
        columns, shape = [], []
        if array is not None and target.name in self.values.fixed and array.ndim not in (0, len(target.indices)):
            raise fail(
                target.at,
                f"{target.name!r} has {array.ndim} dimensions and is defined with {len(target.indices)} indices",
            )
        if array is not None and not array.ndim:
            array = array.reshape((1,) * len(target.indices))
        for k, index in enumerate(target.indices):
            if isinstance(index, Empty):
                if array is None or target.name not in self.values.fixed:
                    raise fail(index.at, f"the size of {target.name!r} is not known; write the range of its index")
                size = array.shape[k]
                columns.append(np.arange(size)[None])
                shape.append(size)
                continue
            size = array.shape[k] if array is not None and target.name in self.values.fixed else 1 << 40
            found, many, counts = scope._index(target, index, size, k)
            if counts is not None:
                raise fail(target.at, f"the range of an index of {target.name!r} differs between turns of the loop")
            columns.append(found)
            if many is not None:
                shape.append(many)
        return [np.broadcast_to(each, (scope.n, each.shape[1])) for each in columns], tuple(shape)

    def _shape_of_value(self, relation: Logical | Stochastic, scope: Scope) -> tuple[int, ...]:
        if isinstance(relation, Logical):
            return scope.shape(relation.value)
        distribution = find_distribution(relation.distribution.function)
        assert distribution is not None
        if distribution.value == "s":
            return ()
        return scope.shape(as_expression(relation.distribution.arguments[0]))

    def _try_to_compute(self, item: _Item) -> bool:
        """Compute a deterministic relation of data."""
        relation, scope = item.relation, item.scope
        assert isinstance(relation, Logical) and scope is not None and item.columns is not None
        if scope.n == 0:
            item.known = True
            return True
        try:
            found = scope.entries(relation.value)
        except NotKnown:
            return False
        except np.linalg.LinAlgError:
            raise fail(relation.at, "this matrix cannot be inverted") from None
        if relation.link is not None:
            found = FUNCTIONS[INVERSE_LINKS[relation.link]].compute(found)
        name = relation.target.name
        positions = _positions(item.columns, self.values.arrays[name].shape, scope.n)
        if found.shape[1] not in (1, positions.shape[1]):
            raise fail(
                relation.at, f"{found.shape[1]} values are assigned to {positions.shape[1]} elements of {name!r}"
            )
        if np.isnan(found).any():
            raise fail(relation.at, f"the value of {name!r} is not a number")
        array = self.values.arrays[name]
        flat = array.ravel(order="F").copy()
        if name in self.missing and not self.missing[name].ravel(order="F")[positions].all():
            raise fail(relation.at, f"{name!r} is in the data and is defined here, too")
        flat[positions] = found
        self.values.arrays[name] = flat.reshape(array.shape, order="F")
        item.known = True
        return True


def _loop_scope(values: Values, loops: tuple[Loop, ...]) -> Scope:
    scope = Scope(values)
    for loop in loops:
        if isinstance(loop.range, Call) and loop.range.function == ":":
            low, high = (scope.whole(as_expression(each)) for each in loop.range.arguments)
            low, high = (np.broadcast_to(each, (scope.n,)) for each in (low, high))
            many = np.maximum(high - low + 1, 0)
            if many.sum() >= _LARGEST:
                raise fail(loop.at, f"the loop over {loop.counter!r} has too many turns")
            rows = np.repeat(np.arange(scope.n), many)
            counter = np.arange(rows.size) - np.repeat(np.cumsum(many) - many, many) + low[rows]
        else:
            entries = scope.entries(loop.range).astype(np.int64)
            entries = np.broadcast_to(entries, (scope.n, entries.shape[1]))
            rows = np.repeat(np.arange(scope.n), entries.shape[1])
            counter = entries.ravel()
        scope = scope.taken(rows)
        scope.counters[loop.counter] = counter
    return scope


def _positions(columns: list[Ints], shape: tuple[int, ...], n: int) -> Ints:
    """Return places in a variable (instances, entries), first index fastest."""
    rows, stride = np.zeros((1, 1), np.int64), 1
    for column, size in zip(columns, shape, strict=False):
        both = rows[:, None, :] + stride * column[:, :, None]
        rows = both.reshape(len(both), both.shape[1] * both.shape[2])
        stride *= size
    return np.broadcast_to(rows, (n, rows.shape[1]))


def _check_relation(relation: Logical | Stochastic) -> None:
    """Refuse unknown distributions and functions, and wrong numbers of arguments."""
    if isinstance(relation, Stochastic):
        call = relation.distribution
        found = find_distribution(call.function)
        if found is None:
            near = nearest(call.function, tuple(DISTRIBUTIONS))
            hint = f"; did you mean {near!r}?" if near else ""
            raise fail(call.at, f"there is no distribution {call.function!r}{hint}")
        if len(call.arguments) != len(found.parameters):
            names = ", ".join(found.parameters) or "none"
            raise fail(
                call.at,
                f"{call.function!r} has {len(found.parameters)} parameters ({names}), not {len(call.arguments)}",
            )
        if relation.bounded is not None and not (found.scalar and found.name not in ("dbern",)):
            raise fail(call.at, f"{call.function!r} cannot be truncated or censored")
        for each in call.arguments:
            _check_functions(as_expression(each))
    else:
        if relation.link is not None and relation.link not in INVERSE_LINKS:
            raise fail(relation.at, f"{relation.link!r} is not a link; the links are {', '.join(INVERSE_LINKS)}")
        _check_functions(relation.value)


_OTHERS = (":", "c", "length", "inverse", "mexp", "t", "%*%", "rep", "seq", "sort", "rank", "order", "dim")


def _check_functions(expression: Any) -> None:
    stack = [expression]
    while stack:
        each = stack.pop()
        if isinstance(each, Call):
            name = SYNONYMS.get(each.function, each.function)
            if name not in FUNCTIONS and name not in REDUCTIONS and name not in _OTHERS:
                if find_distribution(name) is not None:
                    raise fail(each.at, f"the distribution {name!r} stands where a value is needed; write ~ before it")
                near = nearest(name, (*FUNCTIONS, *REDUCTIONS, *_OTHERS))
                hint = f"; did you mean {near!r}?" if near else ""
                raise fail(each.at, f"there is no function {name!r}{hint}")
            stack += each.arguments
        elif isinstance(each, Variable):
            stack += each.indices or ()


def _rules_of(item: _Item, values: Values) -> list[Rule]:
    assert item.scope is not None and item.columns is not None
    positions = _positions(item.columns, values.arrays[item.relation.target.name].shape, item.scope.n)
    return make_rules(item.relation, item.scope, positions, item.shape)
