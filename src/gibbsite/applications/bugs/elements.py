"""Elements of variables: their names, those that are monitored, and those that are missing or impossible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats, Ints
from gibbsite._common.wording import argument, unknown
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
