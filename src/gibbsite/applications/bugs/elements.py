"""Names of elements, and elements that are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import ModelError

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
