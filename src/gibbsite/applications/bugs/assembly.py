"""Turn rules into instructions over one array of values.

Every element of every variable has a place in the array of values of a chain. The expressions of a rule become a
straight sequence of instructions on registers, each of which holds the value of many instances at once. What is read
for instance k is described by a *leaf*: one element for all instances, elements at equal distances, or a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite.applications.bugs.distributions import Distribution
from gibbsite.applications.bugs.functions import FUNCTIONS, REDUCTIONS, SYNONYMS, Operation
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Logical, Number, Stochastic, Variable
from gibbsite.applications.bugs.nodes import Compiled, Instruction
from gibbsite.applications.bugs.rules import Rule, entry_of
from gibbsite.applications.bugs.tables import (
    AFFINE,
    BOUNDED,
    CENSORED,
    CODE,
    CODE_BEGIN,
    CODE_END,
    ENTRIES,
    FIRST,
    INSTANCES,
    KIND,
    LOGICAL,
    LOWER,
    MATRIX,
    SINGLE,
    STOCHASTIC,
    STOCHASTIC_ARRAY,
    TABLE,
    TARGET,
    TRUNCATED,
    UNBOUNDED,
    UPPER,
    VALUE,
    WIDTH,
    Tables,
)
from gibbsite.applications.bugs.values import (
    Elements,
    NotKnown,
    Scope,
    Values,
    as_expression,
    fail,
    place_of,
    wrong_count,
)

_MATRIX_CODES = {"inverse": 0, "mexp": 1}


class Assembly:
    """The places of all elements, and the instructions of all rules.

    Attributes
    ----------
    offset : dict
        First place of each variable.
    start : list of arrays
        Initial values of all places, NaN where unknown.
    compiled : list of Compiled
        The rules; those that hold hidden variables come before the rules that use them.
    """

    def __init__(self, values: Values, rules: list[Rule]) -> None:
        self.values = values
        self.offset: dict[str, int] = {}
        self.parts: list[Floats] = []
        self.size = 0
        self.constants: dict[float, int] = {}
        self.leaves: dict[tuple[Any, ...], int] = {}
        self.leaf_rows: list[tuple[int, int, int, int]] = []
        self.index_parts: list[Ints32] = []
        self.index_size = 0
        self.slice_rows: list[tuple[int, int, int, int]] = []
        self.step_rows: list[tuple[int, int]] = []
        self.compiled: list[Compiled] = []
        self.registers = 1
        for rule in rules:
            self.place(rule.name)
        for rule in rules:
            self._add(rule)

    def place(self, name: str) -> int:
        """Return the first place of a variable."""
        if name not in self.offset:
            self.offset[name] = self.reserve(self.values.arrays[name].ravel(order="F"))
        return self.offset[name]

    def reserve(self, values: Floats) -> int:
        """Return the first place of some new values."""
        begin = self.size
        self.parts.append(np.asarray(values, float))
        self.size += values.size
        return begin

    def constant(self, value: float) -> int:
        """Return the number of a constant."""
        return self.constants.setdefault(float(value), len(self.constants))

    def leaf(self, places: Ints, n: int) -> int:
        """Return the leaf that reads these places, (instances,) or (1,)."""
        if places.size == 1 or (places == places[0]).all():
            return self._leaf(SINGLE, int(places[0]), 0, 0)
        distance = int(places[1] - places[0])
        if (np.diff(places) == distance).all():
            return self._leaf(AFFINE, int(places[0]), distance, 0)
        key = (places.astype(np.int32).tobytes(),)
        if key not in self.leaves:
            self.leaves[key] = len(self.leaf_rows)
            return self._leaf(TABLE, 0, 0, self.indices(places))
        return self.leaves[key]

    def _leaf(self, *row: int) -> int:
        if row not in self.leaves:
            self.leaves[row] = len(self.leaf_rows)
            self.leaf_rows.append(row)  # type: ignore[arg-type]
        return self.leaves[row]

    def indices(self, places: Array) -> int:
        """Keep a table of places; return where it starts."""
        begin = self.index_size
        self.index_parts.append(np.asarray(places, np.int32))
        self.index_size += places.size
        return begin

    def _add(self, rule: Rule) -> Compiled:
        compiled = _Compiler(self, rule).run()
        self.compiled.append(compiled)
        return compiled

    def lift(self, expression: Expression, scope: Scope, shape: tuple[int, ...]) -> Variable:
        """Return a slice of a hidden variable that holds an array, which a new rule computes for each instance."""
        name = f".{len(self.values.arrays)}"
        many = int(np.prod(shape))
        full = (scope.n, *shape)
        self.values.declare(name, full, fixed=True)
        here = np.arange(1, scope.n + 1)
        scope.counters[".instance"] = here
        wide = scope.taken(np.repeat(np.arange(scope.n), many))
        counters = [Variable(counter) for counter in (".row", ".column")][: len(shape)]
        spots = np.unravel_index(np.arange(many), shape, order="F")
        for counter, spot in zip(counters, spots, strict=True):
            wide.counters[counter.name] = np.tile(spot + 1, scope.n)
        value = entry_of(expression, scope, list(counters))
        target = Variable(name, (Variable(".instance"), *counters), place_of(expression))
        positions = scope.n * np.tile(np.arange(many), scope.n) + np.repeat(np.arange(scope.n), many)
        rule = Rule(Logical(target, value, None, target.at), wide, name, positions[:, None])
        self.place(name)
        self._add(rule)
        return Variable(name, (Variable(".instance"), *(Empty() for _ in shape)), target.at)

    def tables(self) -> tuple[Tables, Floats]:
        """Return everything as arrays, and the initial values of all places."""
        code: list[tuple[int, ...]] = []
        rows = []
        for each in self.compiled:
            each.row[CODE_BEGIN] = len(code)
            code += [(int(one.operation), one.result, *one.operands) for one in each.code]
            each.row[CODE_END] = len(code)
            rows.append(each.row)
        tables = Tables(
            code=np.array(code, np.int32).reshape(-1, 5),
            constants=np.array(list(self.constants), float),
            leaf=np.array(self.leaf_rows, np.int64).reshape(-1, 4),
            places=np.concatenate([*self.index_parts, np.zeros(1, np.int32)]),
            slices=np.array(self.slice_rows, np.int64).reshape(-1, 4),
            steps=np.array(self.step_rows, np.int64).reshape(-1, 2),
            rule=np.array(rows, np.int64).reshape(-1, 16),
        )
        return tables, np.concatenate([*self.parts, np.zeros(0)])


class _Compiler:
    """Compiles one rule."""

    def __init__(self, assembly: Assembly, rule: Rule) -> None:
        self.assembly, self.rule, self.scope = assembly, rule, rule.scope
        begin = assembly.place(rule.name)
        self.compiled = Compiled(rule, rule.positions + begin)
        self.known: dict[Any, int] = {}
        self.registers = 0

    def run(self) -> Compiled:
        """Compile the rule."""
        compiled, relation = self.compiled, self.rule.relation
        row = compiled.row
        row[INSTANCES] = self.rule.n
        row[LOWER] = row[UPPER] = -1
        row[WIDTH] = compiled.targets.shape[1]
        relative = compiled.targets - compiled.targets[:, :1]
        if (relative != relative[0]).any():
            raise fail(relation.at, "the elements that a relation defines must lie alike in all turns of the loop")
        row[ENTRIES] = self.assembly.indices(relative[0])
        row[TARGET] = self.assembly.leaf(compiled.targets[:, 0], self.rule.n)
        if isinstance(relation, Stochastic):
            self._stochastic(relation, row)
        elif self.rule.shape:
            assert isinstance(relation.value, Call)
            row[KIND] = MATRIX
            row[CODE] = _MATRIX_CODES[SYNONYMS.get(relation.value.function, relation.value.function)]
            row[FIRST] = self.slice(as_expression(relation.value.arguments[0]))
        else:
            row[KIND] = LOGICAL
            row[VALUE] = self.register(relation.value)
        self.assembly.registers = max(self.assembly.registers, self.registers)
        return compiled

    def _stochastic(self, relation: Stochastic, row: list[int]) -> None:
        distribution = self.rule.distribution
        assert distribution is not None
        row[KIND] = STOCHASTIC if distribution.scalar else STOCHASTIC_ARRAY
        row[CODE] = distribution.code
        width = self.compiled.targets.shape[1]
        if distribution.value == "s":
            if width != 1:
                raise fail(relation.at, f"{distribution.name!r} is a distribution of numbers, not of {width} values")
            row[VALUE] = self.emit(Operation.LOAD, row[TARGET])
        for k, (shape, each) in enumerate(zip(distribution.shapes, relation.distribution.arguments, strict=True)):
            given = as_expression(each)
            found = self.register(given) if shape == "s" else self.slice(given)
            row[FIRST + k] = found
            self.compiled.parameters.append(found)
            if shape != "s":
                self._check_size(distribution, k, found, width, given)
        if relation.bounded is not None:
            row[BOUNDED] = TRUNCATED if relation.bounded == "T" else CENSORED
            if relation.lower is not None:
                row[LOWER] = self.register(relation.lower)
            if relation.upper is not None:
                row[UPPER] = self.register(relation.upper)
            if relation.lower is None and relation.upper is None:
                row[BOUNDED] = UNBOUNDED

    def _check_size(self, distribution: Distribution, k: int, found: int, width: int, given: Expression) -> None:
        size = self.assembly.slice_rows[found][2]
        if distribution.value == "s":
            return
        side = round(width**0.5) if distribution.value == "m" else width
        wanted = side if distribution.shapes[k] == "v" else side * side
        if size != wanted:
            raise fail(
                place_of(given),
                f"the {distribution.parameters[k]} of {distribution.name!r} must have {wanted} entries for a value of "
                f"{width}, and has {size}",
            )

    def emit(self, operation: Operation, *operands: int, reads: Ints | None = None) -> int:
        """Add an instruction, unless it is there; return the register of its result."""
        a, b, c = (*operands, 0, 0, 0)[:3]
        key = (operation, a, b, c)
        if key not in self.known:
            self.known[key] = self.registers
            self.compiled.code.append(Instruction(operation, self.registers, (a, b, c), reads))
            self.registers += 1
        return self.known[key]

    def register(self, expression: Expression) -> int:
        """Return the register that holds the value of an expression."""
        try:
            found = self.scope.number(expression)
        except NotKnown:
            pass
        else:
            return self._held(found, expression)
        if isinstance(expression, Variable):
            return self._variable(expression)
        assert isinstance(expression, Call)
        name = SYNONYMS.get(expression.function, expression.function)
        if name in ("min", "max", "sum") and (len(expression.arguments) > 1):
            parts = [self._total(name, as_expression(each)) for each in expression.arguments]
            joint = {"min": Operation.LOWER, "max": Operation.LARGER, "sum": Operation.ADD}[name]
            found_register = parts[0]
            for part in parts[1:]:
                found_register = self.emit(joint, found_register, part)
            return found_register
        if name in REDUCTIONS:
            reduction = REDUCTIONS[name]
            if len(expression.arguments) != reduction.arrays + reduction.leading:
                raise wrong_count(expression, reduction.arrays + reduction.leading)
            given = list(map(as_expression, expression.arguments))
            lead = [self.register(each) for each in given[: reduction.leading]]
            arrays = [self.slice(each) for each in given[reduction.leading :]]
            sizes = {self.assembly.slice_rows[each][2] for each in arrays}
            if len(sizes) > 1:
                raise fail(expression.at, f"the arrays of {expression.function!r} have different sizes")
            return self.emit(reduction.operation, *lead, *arrays)
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            if len(expression.arguments) != function.arity:
                raise wrong_count(expression, function.arity)
            given_registers = [self.register(as_expression(each)) for each in expression.arguments]
            if function.operation == Operation.DISTRIBUTION:
                return self.emit(
                    function.operation, given_registers[0], self._side_by_side(given_registers[1:]), function.number
                )
            return self.emit(function.operation, *given_registers)
        raise fail(expression.at, f"{expression.function!r} gives an array, and a number is needed here")

    def _side_by_side(self, registers: list[int]) -> int:
        """Copy values to neighbouring registers, four of them; return the first one."""
        first = self.registers
        for each in (*registers, *(registers[-1],) * (4 - len(registers))):
            self.compiled.code.append(Instruction(Operation.LOWER, self.registers, (each, each, 0)))
            self.registers += 1
        return first

    def _total(self, name: str, expression: Expression) -> int:
        return (
            self.emit(REDUCTIONS[name].operation, self.slice(expression))
            if self._is_array(expression)
            else (self.register(expression))
        )

    def _is_array(self, expression: Expression) -> bool:
        return bool(self.scope.shape(expression))

    def _held(self, values: Floats, expression: Expression) -> int:
        """Return a register for values that are known."""
        if np.isnan(values).any():
            raise fail(place_of(expression), "this value is not a number")
        if values.size == 1 or (values == values[0]).all():
            return self.emit(Operation.CONSTANT, self.assembly.constant(values[0]))
        if isinstance(expression, Variable) and expression.name not in self.scope.counters:
            begin = self.assembly.place(expression.name)
            places = self.scope.elements(expression).positions[:, 0] + begin
        else:
            places = self.assembly.reserve(values) + np.arange(values.size)
        return self.emit(Operation.LOAD, self.assembly.leaf(np.broadcast_to(places, (self.rule.n,)), self.rule.n))

    def _variable(self, variable: Variable) -> int:
        """Return a register for an element that is not known."""
        if self._is_array(variable):
            raise fail(variable.at, f"{variable.name!r} is an array where a number is needed")
        place, reads = self._places(variable)
        if isinstance(place, int):
            return self.emit(Operation.FETCH, place, reads=reads)
        leaf = self.assembly.leaf(place, self.rule.n)
        return self.emit(Operation.LOAD, leaf, reads=reads)

    def _places(self, variable: Variable) -> tuple[Ints | int, Ints]:
        """Return the first places that a variable reads, or the register that holds them, and all possible places."""
        values, begin = self.assembly.values, self.assembly.place(variable.name)
        array = values.find(variable)
        given = variable.indices
        if given is not None and len(given) != array.ndim and array.ndim:
            raise fail(
                variable.at, f"{variable.name!r} has {array.ndim} dimensions and is used with {len(given)} indices"
            )
        try:
            elements = self.scope.elements(variable)
        except NotKnown:
            return self._unknown_places(variable, array, begin)
        self._note(elements, begin, variable)
        places = elements.positions[:, 0] + begin
        reads = elements.positions + begin
        return np.broadcast_to(places, (self.rule.n,)), reads

    def _note(self, elements: Elements, begin: int, variable: Variable) -> None:
        if len(elements.positions) and elements.positions.shape[1]:
            self.compiled.parents.append(np.where(elements.positions < 0, -1, elements.positions + begin))

    def _unknown_places(self, variable: Variable, array: Floats, begin: int) -> tuple[int, Ints]:
        """Return the register with the first places of a variable whose index is unknown."""
        assert variable.indices is not None
        if len(variable.indices) != array.ndim:
            raise fail(
                variable.at,
                f"{variable.name!r} has {array.ndim} dimensions and is used with {len(variable.indices)} indices",
            )
        fixed, moving, stride = list(variable.indices), [], 1
        for k, index in enumerate(variable.indices):
            is_slice = isinstance(index, Empty) or (isinstance(index, Call) and index.function == ":")
            if not is_slice:
                try:
                    self.scope.whole(index)  # type: ignore[arg-type]
                except NotKnown:
                    moving.append((k, index, stride, array.shape[k]))
                    fixed[k] = Number(1.0)
            stride *= array.shape[k]
        first = self.scope.elements(Variable(variable.name, tuple(fixed), variable.at))
        possible = first.positions + begin
        leaf = self.assembly.leaf(np.broadcast_to(possible[:, 0], (self.rule.n,)), self.rule.n)
        register = self.emit(Operation.ELEMENT, leaf)
        for _, index, distance, size in moving:
            number = self.register(index)  # type: ignore[arg-type]
            self.assembly.step_rows.append((size, distance))
            register = self.emit(Operation.OFFSET, register, number, len(self.assembly.step_rows) - 1)
            possible = (possible[:, None, :] + distance * np.arange(size)[None, :, None]).reshape(len(possible), -1)
        self.compiled.parents.append(possible)
        return register, possible

    def slice(self, expression: Expression) -> int:
        """Return the number of the slice that holds an array."""
        assembly = self.assembly
        if not isinstance(expression, Variable) or expression.name in self.scope.counters:
            expression = self._array_of(expression, self.scope.shape(expression) or (1,))
        assembly.values.find(expression)
        begin = assembly.place(expression.name)
        try:
            elements = self.scope.elements(expression)
        except NotKnown:
            fixed = tuple(
                index
                if isinstance(index, Empty) or (isinstance(index, Call) and index.function == ":")
                else Number(1.0)
                for index in expression.indices or ()
            )
            pattern = self.scope.elements(Variable(expression.name, fixed, expression.at))
            register, reads = self._unknown_places(expression, assembly.values.find(expression), begin)
            relative, counts = pattern.positions - pattern.positions[:, :1], None
        else:
            self._note(elements, begin, expression)
            relative, counts = elements.positions - elements.positions[:, :1], elements.counts
            if counts is not None:
                relative = np.arange(relative.shape[1])[None] * (relative[:, 1:2].max(initial=1))
            first = np.broadcast_to(elements.positions[:, 0] + begin, (self.rule.n,))
            reads = np.where(elements.positions < 0, -1, elements.positions + begin)
            register = self.emit(Operation.ELEMENT, assembly.leaf(first, self.rule.n))
        if (relative != relative[0]).any():
            raise fail(expression.at, f"the elements of {expression.name!r} must lie alike in all turns of the loop")
        many = -1 if counts is None else assembly.leaf(np.broadcast_to(counts, (self.rule.n,)), self.rule.n)
        key = ("slice", register, relative[0].tobytes(), many)
        if key not in self.known:
            self.known[key] = len(assembly.slice_rows)
            assembly.slice_rows.append((register, assembly.indices(relative[0]), relative.shape[1], many))
            self.compiled.slice_reads[self.known[key]] = reads
        return self.known[key]

    def _array_of(self, expression: Expression, shape: tuple[int, ...]) -> Variable:
        """Return a variable that holds the value of an expression that is an array."""
        try:
            found = self.scope.entries(expression)
        except NotKnown:
            return self.assembly.lift(expression, self.scope, shape)
        name = f".{len(self.assembly.values.arrays)}"
        self.assembly.values.declare(name, (found.shape[1], len(found)), fixed=True)
        self.assembly.values.arrays[name] = found.T.copy()
        self.scope.counters[".instance"] = np.arange(1, self.rule.n + 1)
        index: Expression = Variable(".instance") if len(found) > 1 else Number(1.0)
        return Variable(name, (Empty(), index), place_of(expression))
