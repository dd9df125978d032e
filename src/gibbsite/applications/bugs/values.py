"""Values of variables while a model is built, and expressions of them computed with NumPy.

Expressions are computed for all instances of a relation at once: counters of loops are arrays (instances,), numbers
become arrays (instances,) or (1,), and slices arrays (instances, entries).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.wording import nearest
from gibbsite.applications.bugs.functions import ARRAY_FUNCTIONS, FUNCTIONS, REDUCTIONS, SYNONYMS
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Number, Place, Variable
from gibbsite.errors import ModelError


class NotKnown(Exception):
    """The value of an expression is not known when the model is built."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(variable)
        self.variable = variable


def fail(at: Place, problem: str) -> ModelError:
    """Return the error for a problem at a place of the text."""
    return ModelError(f"{str(at).capitalize()}: {problem}.")


@dataclass
class Values:
    """The shapes and known values of variables; NaN where a value is not known.

    ``pending`` are variables whose size may still grow, because not all relations that define them are expanded.
    """

    arrays: dict[str, Floats] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)

    def declare(self, name: str, shape: tuple[int, ...], fixed: bool = False) -> None:
        """Make sure that a variable has at least this shape; a fixed one never grows."""
        old = self.arrays.get(name)
        if old is None:
            self.arrays[name] = np.full(shape, np.nan)
        elif old.shape != shape and name not in self.fixed:
            if old.ndim != len(shape):
                raise ModelError(f"{name!r} is used with {old.ndim} and with {len(shape)} indices.")
            grown = np.full(np.maximum(old.shape, shape), np.nan)
            grown[tuple(map(slice, old.shape))] = old
            self.arrays[name] = grown
        if fixed:
            self.fixed.add(name)

    def find(self, variable: Variable) -> Floats:
        """Return the array of a variable that is used; refuse unknown names."""
        found = self.arrays.get(variable.name)
        if found is None:
            if variable.name in self.pending:
                raise NotKnown(variable)
            near = nearest(variable.name, tuple(self.arrays))
            hint = f"; did you mean {near!r}?" if near else ""
            raise fail(variable.at, f"{variable.name!r} is used, but neither defined nor in the data{hint}")
        return found


@dataclass(frozen=True)
class Elements:
    """Elements of a variable for all instances of a relation.

    ``positions`` (instances or 1, entries) are places in the variable, first index fastest; -1 pads rows whose
    ``counts`` is smaller. ``shape`` is the shape of a slice, () of a single element.
    """

    positions: Ints
    shape: tuple[int, ...]
    counts: Ints | None = None


@dataclass
class Scope:
    """The counters of the loops around a relation, for all of its instances."""

    values: Values
    n: int = 1
    counters: dict[str, Ints] = field(default_factory=dict)

    def taken(self, chosen: Array) -> Scope:
        """Return the scope of some instances, in a given order."""
        return Scope(self.values, len(chosen), {name: each[chosen] for name, each in self.counters.items()})

    def number(self, expression: Expression) -> Floats:
        """Return the value of an expression that is a number: (instances,) or (1,)."""
        if isinstance(expression, Number):
            return np.array([expression.value])
        if isinstance(expression, Variable):
            counter = self.counters.get(expression.name)
            if counter is not None and expression.indices is None:
                return counter.astype(float)
            found = self.entries(expression)
            if found.shape[1] != 1:
                raise fail(expression.at, f"{expression.name!r} is an array where a number is needed")
            return found[:, 0]
        return self._call(expression)

    def _call(self, call: Call) -> Floats:
        try:
            return self._computed(call)
        except (ModelError, NotKnown):
            raise
        except (ValueError, IndexError, np.linalg.LinAlgError):
            raise fail(call.at, f"{call.function!r} is not defined for arguments of these numbers and shapes") from None

    def _computed(self, call: Call) -> Floats:
        name = SYNONYMS.get(call.function, call.function)
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            if len(call.arguments) != function.arity:
                raise wrong_count(call, function.arity)
            with np.errstate(all="ignore"):
                given = [self.number(as_expression(each)) for each in call.arguments]
                return np.asarray(function.compute(*given), float)
        if name == "length":
            return np.array([float(_size(self.shape(as_expression(call.arguments[0]))))])
        if name in ("min", "max", "sum") and len(call.arguments) > 1:
            parts = [self.entries(as_expression(each)) for each in call.arguments]
            rows = max(map(len, parts))
            joined = np.concatenate([np.broadcast_to(part, (rows, part.shape[1])) for part in parts], axis=1)
            return np.asarray(REDUCTIONS[name].compute(joined), float)
        if name in REDUCTIONS:
            reduction = REDUCTIONS[name]
            if len(call.arguments) != reduction.arrays + reduction.leading:
                raise wrong_count(call, reduction.arrays + reduction.leading)
            lead = [self.number(as_expression(each)) for each in call.arguments[: reduction.leading]]
            parts = [self.entries(as_expression(each)) for each in call.arguments[reduction.leading :]]
            rows = max(map(len, [*lead, *parts]))
            lead = [np.broadcast_to(each, (rows,)) for each in lead]
            return np.asarray(
                reduction.compute(*lead, *[np.broadcast_to(each, (rows, each.shape[1])) for each in parts]), float
            )
        found = self.entries(call)
        if found.shape[1] != 1:
            raise fail(call.at, f"{call.function}(...) is an array where a number is needed")
        return found[:, 0]

    def entries(self, expression: Expression) -> Floats:
        """Return the entries of an expression that may be an array: (instances or 1, entries)."""
        try:
            return self._entries(expression)
        except (ModelError, NotKnown):
            raise
        except (ValueError, IndexError, np.linalg.LinAlgError):
            name = expression.function if isinstance(expression, Call) else "this expression"
            raise fail(
                place_of(expression), f"{name!r} is not defined for arguments of these numbers and shapes"
            ) from None

    def _entries(self, expression: Expression) -> Floats:
        if isinstance(expression, Variable) and expression.name not in self.counters:
            array = self.values.find(expression)
            elements = self.elements(expression)
            flat = array.ravel(order="F")
            found = flat[np.maximum(elements.positions, 0)]
            if elements.counts is not None:
                found = np.where(elements.positions >= 0, found, 0.0)
            if np.isnan(found).any():
                raise NotKnown(expression)
            return np.asarray(found, float)
        if isinstance(expression, Call):
            name = SYNONYMS.get(expression.function, expression.function)
            if name == ":":
                low, high = (self.whole(as_expression(each)) for each in expression.arguments)
                if len(set(low.tolist())) > 1 or len(set(high.tolist())) > 1:
                    raise fail(expression.at, "a range of different lengths cannot be used here")
                return np.arange(int(low[0]), int(high[0]) + 1, dtype=float)[None]
            if name == "c":
                parts = [self.entries(as_expression(each)) for each in expression.arguments]
                rows = max(map(len, parts))
                return np.concatenate([np.broadcast_to(part, (rows, part.shape[1])) for part in parts], axis=1)
            if name == "dim":
                return np.array([self.shape(as_expression(expression.arguments[0])) or (1,)], float)
            if name in ARRAY_FUNCTIONS:
                return self._array(name, expression)
            if name in FUNCTIONS and not any(isinstance(each, Empty) for each in expression.arguments):
                given = [self.entries(as_expression(each)) for each in expression.arguments]
                if max(each.shape[1] for each in given) > 1:
                    return np.asarray(FUNCTIONS[name].compute(*given), float)
        return self.number(expression)[:, None]

    def _array(self, name: str, call: Call) -> Floats:
        """Return the value of a function whose value is an array, computed from data."""
        parts = [self.entries(as_expression(each)) for each in call.arguments]
        if any(len(part) > 1 for part in parts):
            raise NotKnown(Variable(call.function, at=call.at))
        first = parts[0][0]
        if name in ("sort", "rank", "order"):
            order = np.argsort(first, kind="stable")
            ranks = np.empty(order.size)
            ranks[order] = np.arange(1, order.size + 1)
            found: Floats = {"sort": first[order], "order": order + 1.0, "rank": ranks}[name][None]
            return found
        if name == "rep":
            times = parts[1][0].astype(int)
            return (np.repeat(first, times) if times.size > 1 else np.tile(first, int(times[0])))[None]
        if name == "seq":
            step = parts[2][0][0] if len(parts) > 2 else 1.0
            return np.arange(first[0], parts[1][0][0] + step / 2, step)[None]
        shapes = [self.shape(as_expression(each)) for each in call.arguments]
        matrices = [part[0].reshape(shape, order="F") for part, shape in zip(parts, shapes, strict=True)]
        if name == "inverse":
            value = np.linalg.inv(matrices[0])
        elif name == "t":
            value = matrices[0].T if matrices[0].ndim == 2 else matrices[0][None]
        elif name == "mexp":
            from scipy.linalg import expm

            value = expm(matrices[0])
        else:
            value = matrices[0] @ matrices[1]
        return np.asarray(value, float).ravel(order="F")[None]

    def shape(self, expression: Expression) -> tuple[int, ...]:
        """Return the shape of an expression; () of a number."""
        if isinstance(expression, Number):
            return ()
        if isinstance(expression, Variable):
            if expression.name in self.counters and expression.indices is None:
                return ()
            return self._shape_of(expression)
        name = SYNONYMS.get(expression.function, expression.function)
        shapes = [self.shape(as_expression(each)) for each in expression.arguments if name != ":"]
        if name == "%*%":
            left, right = shapes
            return tuple(left[:-1]) + tuple(right[1:])
        if name == "t":
            return shapes[0][::-1] if len(shapes[0]) == 2 else (1, *shapes[0])
        if name in ("inverse", "mexp", "sort", "rank", "order"):
            return shapes[0]
        if name in ("c", "dim"):
            return (sum(map(_size, shapes)) if name == "c" else max(len(shapes[0]), 1),)
        if name == "rep":
            times = self.entries(as_expression(expression.arguments[1]))[0]
            return (int(times.sum()) * (_size(shapes[0]) if times.size == 1 else 1),)
        if name in (":", "seq"):
            return (self.entries(expression).shape[1],)
        if name in FUNCTIONS:
            return max(shapes, key=len)
        return ()

    def _shape_of(self, variable: Variable) -> tuple[int, ...]:
        """Return the shape of a variable or a slice of it, whose indices need not be known."""
        array = self.values.find(variable)
        given = variable.indices
        if given is None or (len(given) == 1 and isinstance(given[0], Empty)):
            return self.elements(variable).shape
        found: list[int] = []
        for k, index in enumerate(given):
            if isinstance(index, Empty):
                found.append(array.shape[k])
            elif isinstance(index, Call) and index.function in (":", "c"):
                found += [size for size in [self._index(variable, index, array.shape[k], k)[1]] if size is not None]
            elif isinstance(index, Variable) and index.name not in self.counters:
                found += self.shape(index)
        return tuple(found)

    def whole(self, expression: Expression) -> Ints:
        """Return the value of an index or a bound of a loop: (instances,) or (1,)."""
        found = self.number(expression)
        rounded = np.rint(found)
        if not np.all(np.abs(found - rounded) < 1e-7):
            raise fail(place_of(expression), f"an index must be a whole number, and this one is {found[0]:g}")
        return rounded.astype(np.int64)

    def elements(self, variable: Variable) -> Elements:
        """Return which elements of a variable are meant; all indices must be known."""
        array = self.values.find(variable)
        given = variable.indices
        growing = variable.name in self.values.pending and variable.name not in self.values.fixed
        if growing and array.ndim and (given is None or any(isinstance(each, Empty) for each in given)):
            raise NotKnown(variable)
        if given is None or (len(given) == 1 and isinstance(given[0], Empty)):
            shape = tuple(array.shape)
            return Elements(np.arange(array.size, dtype=np.int64)[None], shape if array.size != 1 else ())
        if len(given) != array.ndim:
            if array.size == 1 and array.ndim == 0 and len(given) == 1:
                array = array.reshape(1)
            else:
                raise fail(
                    variable.at, f"{variable.name!r} has {array.ndim} dimensions and is used with {len(given)} indices"
                )
        rows, counts, stride = np.zeros((1, 1), np.int64), None, 1
        sizes: list[int] = []
        for k, index in enumerate(given):
            column, size, many = self._index(variable, index, array.shape[k], k)
            outside = (column >= array.shape[k]) & (column >= 0)
            if outside.any() or (column < -1).any() or ((column < 0).any() and many is None):
                bad = column[outside][0] + 1 if outside.any() else column.min() + 1
                if variable.name in self.values.pending and bad > 0 and variable.name not in self.values.fixed:
                    raise NotKnown(variable)
                raise fail(variable.at, f"index {bad} of {variable.name!r} is outside its dimension 1:{array.shape[k]}")
            counts = many if many is not None else counts
            if size is not None:
                sizes.append(size)
            both = rows[:, None, :] + stride * column[:, :, None]
            if many is not None:
                both = np.where(column[:, :, None] < 0, -1, both)
            rows = both.reshape(len(both), -1)
            stride *= array.shape[k]
        return Elements(rows, tuple(sizes), counts)

    def _index(self, variable: Variable, index: Any, size: int, k: int) -> tuple[Ints, int | None, Ints | None]:
        """Return positions of an index (instances or 1, entries), its number of entries if a slice, and counts."""
        if isinstance(index, Empty):
            return np.arange(size)[None], size, None
        if isinstance(index, Call) and index.function == ":":
            low, high = (self.whole(as_expression(each)) for each in index.arguments)
            low, high = np.broadcast_arrays(low, high)
            many = high - low + 1
            most = int(many.max(initial=0))
            if (many < 1).any():
                raise fail(index.at, f"the range of an index of {variable.name!r} is empty")
            found = low[:, None] - 1 + np.arange(most)
            if (many == most).all():
                return found, most, None
            return np.where(np.arange(most) < many[:, None], found, -1), most, many
        if isinstance(index, Call) and index.function == "c":
            entries = self.entries(index)
            return entries.astype(np.int64) - 1, entries.shape[1], None
        if isinstance(index, Variable) and index.name not in self.counters:
            entries = self.entries(index)
            if entries.shape[1] > 1:
                return entries.astype(np.int64) - 1, entries.shape[1], None
        return self.whole(index)[:, None] - 1, None, None


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def as_expression(given: Expression | Empty) -> Expression:
    """Return an argument of a function; refuse one that is left out."""
    if isinstance(given, Empty):
        raise fail(given.at, "an argument is missing")
    return given


def place_of(expression: Expression | Empty) -> Place:
    """Return where an expression stands."""
    return expression.at


def wrong_count(call: Call, wanted: int) -> ModelError:
    """Return the error for a wrong number of arguments."""
    many = "argument" if wanted == 1 else "arguments"
    return fail(call.at, f"{call.function!r} takes {wanted} {many}, not {len(call.arguments)}")


def variables_of(expression: Expression | Empty) -> list[Variable]:
    """Return all variables of an expression, those in indices included."""
    if isinstance(expression, Variable):
        inner = [each for index in expression.indices or () for each in variables_of(index)]
        return [expression, *inner]
    if isinstance(expression, Call):
        return [each for argument in expression.arguments for each in variables_of(argument)]
    return []


def substituted(expression: Any, names: Mapping[str, Expression]) -> Any:
    """Return an expression with plain variables replaced."""
    if isinstance(expression, Variable):
        if expression.indices is None:
            return names.get(expression.name, expression)
        return Variable(expression.name, tuple(substituted(each, names) for each in expression.indices), expression.at)
    if isinstance(expression, Call):
        return Call(
            expression.function, tuple(substituted(each, names) for each in expression.arguments), expression.at
        )
    return expression
