"""Nested named tuples as arrays by path, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Fail, Wanted, check_description, check_values
from gibbsite.errors import CheckpointError

_STEP = 1 << 16  # numbers


def flatten(prefix: str, value: Any) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of nested named tuples with their paths: no rebuildable ones, no zeros at an end."""
    if isinstance(value, np.ndarray):
        yield prefix, value[: _used(value)] if value.ndim == 1 else value
    elif hasattr(value, "_fields") and not is_rebuildable(value):
        growing = getattr(value, "growing", ())
        for name in value._fields:
            if name in growing:  # how long they are says something
                yield f"{prefix}/{name}", getattr(value, name)
            else:
                yield from flatten(f"{prefix}/{name}", getattr(value, name))


def is_rebuildable(value: Any) -> bool:
    """Whether a chain continues unchanged without these arrays (see :meth:`Kernel.memory`)."""
    return bool(getattr(value, "rebuildable", False))


def _used(values: Array) -> int:
    """Return the length of an array without the zeros at its end, in steps of 64k."""
    end = values.size
    while end > _STEP and not values[end - _STEP : end].any():
        end -= _STEP
    return end


def restore(prefix: str, template: Any, arrays: dict[str, Array]) -> Any:
    """Return the template with the stored arrays.

    They are copied in place where they fit: arrays of a kernel's memory may share their bytes.
    """
    if isinstance(template, np.ndarray):
        stored = arrays.get(prefix)
        if stored is None:
            raise CheckpointError(f"The checkpoint is incomplete: it has no array {prefix}.")
        if stored.dtype != template.dtype or stored.ndim != template.ndim:
            raise CheckpointError(f"The checkpoint holds another kind of array at {prefix}.")
        if template.flags.writeable and stored.ndim == 1 and stored.size < template.size:
            template[stored.size : _used(template)] = 0  # pages of a large table that are not in use stay so
            template[: stored.size] = stored
            return template
        if stored.shape != template.shape or not template.flags.writeable:
            stored.setflags(write=template.flags.writeable)  # which is part of the type compiled code is for
            return stored
        template[...] = stored
        return template
    if hasattr(template, "_fields") and not is_rebuildable(template):
        return template._replace(
            **{f: restore(f"{prefix}/{f}", getattr(template, f), arrays) for f in template._fields}
        )
    return template


def check_stored(prefix: str, template: Any, arrays: dict[str, Array], cards: Array, fail: Fail) -> None:
    """Refuse stored arrays with which compiled code must not go on from where a template stands.

    Types and shapes are those of the template, but for arrays of its ``growing`` fields, which may be longer,
    and vectors without the zeros at their end. Arrays of ``constant`` fields must be equal, and those of
    ``missing`` fields may hold NaN, as no others may. A method ``limits`` of a named tuple says, given the
    numbers of states of all sites, between which numbers the entries of its arrays lie, and a method
    ``follows`` whether they can have come from a fresh one.
    """
    if not hasattr(template, "_fields") or is_rebuildable(template):
        return
    growing, constant, missing = (getattr(template, name, ()) for name in ("growing", "constant", "missing"))
    stored = {}
    for field in template._fields:
        fresh, name = getattr(template, field), f"{prefix}/{field}"
        if not isinstance(fresh, np.ndarray):
            check_stored(name, fresh, arrays, cards, fail)
            continue
        if name not in arrays:
            raise fail(f"its array {name} is missing")
        found = stored[field] = arrays[name]
        shape: tuple[int | str, ...] = fresh.shape
        trimmed = fresh.ndim == found.ndim == 1 and 0 < found.size < fresh.size
        if field in growing or (trimmed and (fresh.size - found.size) % _STEP == 0):
            shape = ("length", *shape[1:])
        wanted = Wanted(fresh.dtype, shape, finite=False, missing=field in missing)
        check_description(name, found.dtype, found.shape, wanted, {}, fail)
        check_values(name, found, wanted, fail)
        if field in constant and not np.array_equal(found, fresh, equal_nan=found.dtype.kind == "f"):
            raise fail(f"its array {name} is that of another run")
    whole = template._replace(**stored)
    if hasattr(template, "limits"):
        for field, (low, high) in whole.limits(cards).items():
            if not ((stored[field] >= low) & (stored[field] <= high)).all():
                raise fail(f"its array {prefix}/{field} has entries out of their range")
    if hasattr(template, "follows") and not whole.follows(template):
        raise fail(f"its arrays {prefix} do not fit together")
