"""A model evaluated at given values, outside of runs: deterministic variables, log-densities, parameters."""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite.applications.bugs.compiled import units
from gibbsite.applications.bugs.compiled.machine import (
    ADD_UP,
    PARAMETERS,
    POINTWISE,
    Chain,
    address,
    call_at,
    fill_book,
    flat_tables,
    static_book,
)
from gibbsite.applications.bugs.network import Network
from gibbsite.applications.bugs.tables import FIRST, LOWER, UPPER, WIDTH

_NOTHING = np.zeros(1)
_SMALLEST = 4096  # numbers of work space


class Evaluation:
    """Values of all places, and what is computed from them; units are added before the first evaluation."""

    def __init__(self, network: Network, registers: int) -> None:
        self.network = network
        self.plain = network.assembly.tables()[0]
        self.tables = flat_tables(self.plain)
        self.values = network.start.copy()
        self._registers = registers
        self._rows: list[Ints] = []
        self._segments: list[Ints] = []
        self._lists: list[Ints] = []
        widest = int(self.plain.rule[:, WIDTH].max())
        self._own_work = max(_SMALLEST, 8 * widest + 4 * int(self.plain.slices[:, 2].max(initial=1)))
        self._found = 0
        self._ready: tuple[Chain, Ints, int, list[Array]] | None = None

    def add_unit(self, size: int = 0, **columns: int) -> int:
        """Add a unit with some columns, which writes ``size`` numbers; return its number."""
        row = np.zeros(units.UNIT_WIDTH, np.int64)
        for name, value in columns.items():
            row[getattr(units, name)] = value
        self._rows.append(row)
        self._found = max(self._found, size)
        return len(self._rows) - 1

    def add_segments(self, segments: Ints) -> int:
        """Add segments of rules; return the number of the first."""
        begin = sum(map(len, self._segments))
        self._segments.append(segments.reshape(-1, 4))
        return begin

    def add_everything(self) -> int:
        """Add a unit that computes all deterministic variables; return its number."""
        return self.add_computation(self.network.everything())

    def add_computation(self, segments: Ints) -> int:
        """Add a unit that computes segments of deterministic rules; return its number."""
        begin = self.add_segments(segments)
        return self.add_unit(UPDATE=units.COMPUTE, BEGIN=begin, MIDDLE=begin + segments.size // 4)

    def add_list(self, entries: Ints) -> int:
        """Add a list of instances or registers; return where it starts."""
        begin = sum(map(len, self._lists))
        self._lists.append(entries)
        return begin

    def _prepared(self) -> tuple[Chain, Ints, int, list[Array]]:
        if self._ready is None:
            each = self.network.assembly.compiled
            size = max(self._found, *(one.rule.n for one in each))
            chain = Chain(
                values=self.values,
                registers=np.zeros(self._registers),
                words=np.ones(4, np.uint64),
                widths=np.zeros(1),
                counts=np.zeros(8, np.int64),
                work=np.zeros(self._own_work + size),
                book=np.zeros(14, np.int64),
            )
            lists = np.concatenate([*self._lists, np.zeros(1, np.int64)]).astype(np.int32)
            segment = np.concatenate([each.ravel() for each in (*self._segments, np.zeros(1, np.int64))])
            unit, numbers = np.concatenate([*self._rows, np.zeros(1, np.int64)]), np.zeros(1)
            unit = unit[:-1] if self._rows else unit
            fill_book(chain, _NOTHING)
            # compiled code has the addresses of these arrays
            kept = [lists, segment, unit, numbers]
            self._ready = chain, static_book(self.tables, lists, segment, unit, numbers), address(), kept
        return self._ready

    def call(self, what: int, number: float = 0.0) -> Floats:
        """Make a unit compute, or do one of the other tasks; return the work array."""
        chain, static, where, _ = self._prepared()
        call_at(where, static, chain.book, float(number), what)
        return chain.work

    def density(self) -> float:
        """Return the joint log-density."""
        return float(self.call(ADD_UP)[0])

    def pointwise(self, rule: int) -> Floats:
        """Return the log-density of each instance of a stochastic rule."""
        many = self.network.assembly.compiled[rule].rule.n
        return self.call(POINTWISE, rule)[-many:].copy()


class Law:
    """The distributions of some instances of a stochastic rule, with parameters that depend on the values of now.

    Parameters
    ----------
    at : Evaluation
        The model; not evaluated yet.
    rule : int
        The rule.
    instances : int array
        Which instances.
    """

    def __init__(self, at: Evaluation, rule: int, instances: Ints) -> None:
        self.at, self.instances = at, instances
        compiled = at.network.assembly.compiled[rule]
        found = compiled.rule.distribution
        assert found is not None
        self.distribution, self.targets = found, compiled.targets[instances]
        row, slices = compiled.row, at.plain.slices
        self.slices = [None if shape == "s" else slices[row[FIRST + k]] for k, shape in enumerate(found.shapes)]
        registers = [row[FIRST + k] if one is None else int(one[0]) for k, one in enumerate(self.slices)]
        self.ends = [each for each in (LOWER, UPPER) if row[each] >= 0]
        registers += [row[each] for each in self.ends]
        self.many = len(registers)
        self.unit = at.add_unit(
            size=self.many * instances.size,
            OWN=rule,
            COUNT=instances.size,
            EXTRA_A=self.many,
            EXTRA_B=at.add_list(np.array(registers, np.int64)),
            EXTRA_C=at.add_list(instances),
        )

    def parameters(self) -> tuple[list[Floats], Floats | None, Floats | None]:
        """Return the parameters, (instances,) or (instances, entries), and the bounds of values if there are any."""
        n = self.instances.size
        work = self.at.call(PARAMETERS, self.unit)
        held = work[work.size - self.many * n :].reshape(self.many, n).copy()
        found: list[Floats] = []
        for row, one in zip(held, self.slices, strict=False):
            found.append(row if one is None else self._entries(row, one))
        ends = dict(zip(self.ends, held[len(self.slices) :], strict=True))
        return found, ends.get(LOWER), ends.get(UPPER)

    def _entries(self, first: Floats, row: Ints) -> Floats:
        """Return the entries of slices, 0 where one is shorter than the longest."""
        tables = self.at.plain
        relative = tables.places[row[1] : row[1] + row[2]]
        found: Floats = self.at.values[np.minimum(first.astype(np.int64)[:, None] + relative, self.at.values.size - 1)]
        if row[3] >= 0:
            kind, base, distance, start = tables.leaf[row[3]].tolist()
            places = tables.places[start + self.instances] if kind == 2 else base + distance * self.instances
            found = np.where(np.arange(relative.size) < self.at.values[places][:, None], found, 0.0)
        return found
