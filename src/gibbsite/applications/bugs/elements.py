"""Elements of variables: their names, those that are monitored, and those that are missing or impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.bugs.functions import Operation
from gibbsite.applications.bugs.language.syntax import Stochastic
from gibbsite.applications.bugs.tables import BOUNDED, KIND, LOGICAL, LOWER, UNBOUNDED, UPPER, VALUE
from gibbsite.applications.bugs.values import fail
from gibbsite.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from gibbsite.applications.bugs.assembly import Assembly
    from gibbsite.applications.bugs.network import Network


def check_defined(assembly: Assembly, owner: Ints, start: Floats) -> None:
    """Refuse elements that are read but neither defined nor in the data."""
    for compiled in assembly.compiled:
        for places in compiled.parents:
            inside = places[places >= 0]
            bad = inside[(owner[inside] < 0) & np.isnan(start[inside])]
            if bad.size:
                name, position = element_of(assembly, int(bad[0]))
                raise ModelError(
                    f"{str(compiled.rule.relation.at).capitalize()}: {position} is used, but neither defined nor in "
                    f"the data; give {name!r} a value or a relation."
                )


def element_of(assembly: Assembly, place: int) -> tuple[str, str]:
    """Return the variable of a place, and the name of the element as BUGS writes it."""
    name = max((each for each in assembly.offset if assembly.offset[each] <= place), key=assembly.offset.__getitem__)
    shape = assembly.values.arrays[name].shape
    return name, element_name(name, place - assembly.offset[name], shape)


def element_name(name: str, position: int, shape: tuple[int, ...]) -> str:
    """Return the name of an element, as in ``beta[1,2]``."""
    if not shape:
        return name
    spot = np.unravel_index(position, shape, order="F")
    return f"{name}[{','.join(str(int(k) + 1) for k in spot)}]"


def names_of(assembly: Assembly, places: Ints) -> list[str]:
    """Return the names of the elements at places."""
    variables = sorted(assembly.offset, key=assembly.offset.__getitem__)
    begins = np.array([assembly.offset[name] for name in variables])
    shapes = [assembly.values.arrays[name].shape for name in variables]
    owner = np.searchsorted(begins, places, side="right") - 1
    pairs = zip(owner.tolist(), (places - begins[owner]).tolist(), strict=True)
    return [element_name(variables[k], position, shapes[k]) for k, position in pairs]


def read_names(monitor: Any) -> list[str] | None:
    """Return the names of what is monitored; None if none were given."""
    if monitor is None:
        return None
    listed = [monitor] if isinstance(monitor, str) or not is_iterable(monitor) else list(monitor)
    if not all(isinstance(each, str) for each in listed):
        raise ArgumentError(f"{argument('monitor')} must be names of variables, got {describe(monitor)}.")
    return listed


def find_monitors(network: Network, wanted: list[str] | None) -> tuple[str, ...]:
    """Return the variables that are monitored: by default unknowns that are no missing data, and computed numbers."""
    if wanted is not None:
        for each in wanted:
            find_elements(network, each)
        return tuple(dict.fromkeys(wanted))
    found = []
    varies = np.isnan(network.start)
    for name, begin in network.assembly.offset.items():
        mine = slice(begin, begin + network.assembly.values.arrays[name].size)
        unknown_here = network.unknown[mine]
        computed = varies[mine] & ~unknown_here
        observed = ~varies[mine] & (network.owner[mine] >= 0)
        single = computed.any() and mine.stop - mine.start == 1
        if not name.startswith(".") and ((unknown_here.any() and not observed.any()) or single):
            found.append(name)
    return tuple(found)


def find_elements(network: Network, name: str) -> dict[str, int]:
    """Return the unknown and computed elements of a variable, or an element, with their places."""
    assembly = network.assembly
    plain, _, rest = name.replace(" ", "").partition("[")
    if plain not in assembly.offset or plain.startswith("."):
        raise ArgumentError(unknown("Variable", plain, [each for each in assembly.offset if not each.startswith(".")]))
    shape, begin = assembly.values.arrays[plain].shape, assembly.offset[plain]
    chosen = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape, order="F")
    if rest:
        try:
            indices = tuple(_read_index(part) for part in rest.rstrip("]").split(","))
            chosen = chosen[indices if chosen.ndim else ()]
        except (ValueError, IndexError):
            raise ArgumentError(f"{name!r} is no element of {plain!r}, whose shape is {list(shape)}.") from None
    flat = np.atleast_1d(chosen).ravel(order="F")
    varies = np.isnan(network.start[begin + flat])
    varies &= (network.owner[begin + flat] >= 0) | (plain == "deviance")
    if not varies.any():
        raise ArgumentError(f"{name!r} is data, so there is nothing to monitor.")
    return {element_name(plain, int(k), shape): begin + int(k) for k in flat[varies]}


def _read_index(part: str) -> Any:
    if not part:
        return slice(None)
    low, colon, high = part.partition(":")
    first = int(low) - 1
    if first < 0:
        raise IndexError(part)
    return slice(first, int(high)) if colon else first


def check_values(network: Network) -> None:
    """Refuse data that a distribution cannot have, whatever its parameters are."""
    for compiled in network.assembly.compiled:
        distribution = compiled.rule.distribution
        if distribution is None:
            continue
        values = network.start[compiled.targets]
        wrong = (values < distribution.low) | (values > distribution.high)
        if distribution.discrete:
            wrong |= values != np.floor(values)
        wrong &= ~np.isnan(values)
        if wrong.any():
            place = int(compiled.targets[wrong][0])
            raise ModelError(
                f"{str(compiled.rule.relation.at).capitalize()}: {element_of(network.assembly, place)[1]} = "
                f"{network.start[place]:g} is no possible value of {distribution.name!r}."
            )


def check_matrices(network: Network) -> None:
    """Refuse precision and covariance matrices from the data that are not symmetric."""
    for compiled in network.assembly.compiled:
        relation = compiled.rule.relation
        for k, shape in enumerate(compiled.rule.distribution.shapes if compiled.rule.distribution else ""):
            if shape != "m" or not isinstance(relation, Stochastic):
                continue
            entries = network.start[compiled.slice_reads[compiled.parameters[k]]]
            side = round(entries.shape[1] ** 0.5)
            square = entries.reshape(-1, side, side)
            largest = np.abs(square).max(axis=(1, 2), keepdims=True)
            away = np.argwhere(np.abs(square - square.transpose(0, 2, 1)) > 1e-6 * largest)
            if away.size:
                turn, row, column = away[0].tolist()
                one, other = square[turn, column, row], square[turn, row, column]
                raise fail(
                    relation.distribution.arguments[k].at,
                    f"this matrix must be symmetric, and its entries [{row + 1},{column + 1}] and "
                    f"[{column + 1},{row + 1}] are {one:g} and {other:g}",
                )


def check_indices(network: Network) -> None:
    """Refuse an index that is unknown and can leave its dimension."""
    assembly = network.assembly
    for number, compiled in enumerate(assembly.compiled):
        for one in compiled.code:
            if one.operation == Operation.OFFSET:
                found = _range_of(network, number, one.operands[1])
                size = assembly.step_rows[one.operands[2]][0]
                if found is not None and (found[0] < 1.0 or found[1] > size):
                    raise fail(
                        compiled.rule.relation.at,
                        f"an unknown index can be anything from {found[0]:g} to {found[1]:g}, and its dimension is "
                        f"1:{size}; bound it with T(,)",
                    )


def _range_of(network: Network, rule: int, register: int) -> tuple[float, float] | None:
    """Return the smallest and the largest value of a register of a rule, None where that is not obvious."""
    compiled = network.assembly.compiled[rule]
    one = compiled.code[register]
    what, (a, b, _) = one.operation, one.operands
    if what == Operation.CONSTANT:
        value = list(network.assembly.constants)[a]
        return value, value
    if what in (Operation.LOAD, Operation.FETCH):
        return None if one.reads is None else _range_at(network, one.reads)
    if what in (Operation.STEP, Operation.EQUALS):
        return 0.0, 1.0
    if what in (Operation.ADD, Operation.SUBTRACT):
        first, second = _range_of(network, rule, a), _range_of(network, rule, b)
        if first is None or second is None or (first[0] != first[1] and second[0] != second[1]):
            return None
        if what == Operation.ADD:
            return first[0] + second[0], first[1] + second[1]
        return first[0] - second[1], first[1] - second[0]
    return None


def _range_at(network: Network, places: Ints) -> tuple[float, float] | None:
    """Return the range of values of places that are data, or have a distribution with few values."""
    values = network.start[places[places >= 0]]
    found = [(float(each), float(each)) for each in values[~np.isnan(values)][:1]]
    if found:
        found.append((float(np.nanmin(values)), float(np.nanmax(values))))
    moving = network.owner[places[places >= 0][np.isnan(values)]]
    for owner in np.unique(moving).tolist():
        compiled = network.assembly.compiled[owner]
        distribution, ends = compiled.rule.distribution, None
        if distribution is None and compiled.row[KIND] == LOGICAL:
            ends = _range_of(network, owner, compiled.row[VALUE])
        elif distribution is not None and distribution.discrete and distribution.value == "s":
            high = distribution.high
            if distribution.name in ("dcat", "dinterval"):
                size = network.assembly.slice_rows[compiled.parameters[-1]][2]
                high = float(size)
            elif distribution.name in ("dbin", "dbetabin", "dhyper"):
                size_of = _range_of(network, owner, compiled.parameters[{"dbin": 1}.get(distribution.name, 2)])
                if size_of is None:
                    return None
                high = size_of[1]
            ends = (1.0 if distribution.name in ("dcat", "dgeom") else 0.0, high)
            for column, end in ((LOWER, 0), (UPPER, 1)):
                if compiled.row[BOUNDED] != UNBOUNDED and compiled.row[column] >= 0:
                    limit = _range_of(network, owner, compiled.row[column])
                    if limit is None:
                        return None
                    ends = (max(ends[0], limit[0]), ends[1]) if end == 0 else (ends[0], min(ends[1], limit[1]))
        if ends is None:
            return None
        found.append(ends)
    return (min(each[0] for each in found), max(each[1] for each in found)) if found else None
