"""Checkpoints: the state and tape of every chain in one file.

It is written so that a kill leaves the old file or the new one, never a torn one. The file is an ordinary
``.npz``: arrays by path ("0/state/x", "1/tape/total") and one JSON text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.archive import open_archive, write_archive
from gibbsite._common.arguments import describe, is_number, is_path
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Fail, Wanted, check_description, check_header, check_values
from gibbsite._common.lock import hold
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, CheckpointError

FORMAT = 3
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
    """Tell whether a chain goes on as before without these arrays (see :meth:`Kernel.memory`)."""
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


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # what cannot be removed was not written by us
        path.unlink()


def read_checkpoint(checkpoint: Any, every: Any, resume: Any) -> Path | None:
    """Check the arguments of a run that are about its checkpoint, and the place, before any work is done.

    Examples
    --------
    >>> read_checkpoint(None, 60.0, resume=False) is None
    True
    """
    if not is_number(every) or not float(every) >= 0:
        raise ArgumentError(
            f"{argument('checkpoint_every')} must be a number of seconds, not negative, got {describe(every)}."
        )
    if checkpoint is None:
        if resume:
            raise ArgumentError(
                f"{argument('resume', True)} needs {argument('checkpoint')}, the file to continue from."
            )
        return None
    if not isinstance(checkpoint, str | Path) or not is_path(checkpoint):
        raise ArgumentError(f"{argument('checkpoint')} must be the path of a file, got {checkpoint!r}.")
    path = Path(checkpoint)
    check_writable(path)
    refuse_existing(path, bool(resume))
    return path


def check_writable(path: Path) -> None:
    """Refuse a place where no checkpoint can be written, before any work is done."""
    if path.is_dir():
        raise CheckpointError(f"Cannot write {path}: it is a folder; give the name of a file.")
    probe = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(probe, "wb"):
            pass
    except OSError as reason:
        raise CheckpointError(
            f"Cannot write {path}: {reason.strerror or reason}; check the folder and its rights."
        ) from None
    finally:
        _remove(probe)


def save_checkpoint(
    path: Path,
    plan: dict[str, Any],
    progress: dict[str, Any],
    chains: list[Any],
    others: dict[str, Array] | None = None,
) -> None:
    """Save all chains, each a pair (state, tape), and other arrays by name."""
    about = {"kind": "gibbsite checkpoint", "format": FORMAT, "plan": plan, "progress": progress}
    arrays: dict[str, Array] = {}
    for number, (state, tape) in enumerate(chains):
        arrays.update(flatten(f"{number}/state", state))
        arrays.update(flatten(f"{number}/tape", tape))
    arrays.update(others or {})
    # Runs hold a lock, so one name serves all of them: the next run replaces what a killed one has left.
    write_archive(path, about, arrays, "checkpoint")


@contextlib.contextmanager
def hold_checkpoint(path: Path | None, resume: bool) -> Iterator[None]:
    """Be the one run that uses a checkpoint; refuse where another one does."""
    if path is None:
        yield
        return
    with hold(path, lambda reason: CheckpointError(f"Cannot use {path} as a checkpoint: {reason}.")):
        refuse_existing(path, resume)  # it may have come meanwhile
        yield


def refuse_existing(path: Path, resume: bool) -> None:
    """Refuse to begin a run whose checkpoint is there already."""
    if path.exists() and not resume:
        raise CheckpointError(
            f"{path} exists already: continue it with {argument('resume', True)}, or remove it first."
        )


def load_checkpoint(path: Path, arrays: str = "") -> tuple[dict[str, Any], dict[str, Array]]:
    """Load a checkpoint: its JSON part and its arrays, whose types are those of numbers.

    ``arrays`` is what the names of the arrays to be read begin with.
    """
    fail = failure(path)
    with open_archive(path, fail, packed=False) as archive:
        about = archive.header()
        check_header(about, {"plan": dict, "progress": dict}, fail)
        if about.get("format") != FORMAT:
            raise CheckpointError(
                f"{path} has checkpoint format {about.get('format')!r:.20}, this version reads {FORMAT}; "
                "remove it to start afresh."
            )
        return about, archive.read_all(arrays)


def failure(path: Path) -> Fail:
    """Return what makes an error out of what is wrong with a checkpoint."""
    return lambda reason: CheckpointError(
        f"{path} is not a gibbsite checkpoint, or a damaged one: {reason}; remove it to start afresh."
    )
