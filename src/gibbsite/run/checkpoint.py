"""Checkpoints: the state and tape of every chain in one file.

It is written so that a kill leaves the old file or the new one, never a torn one. The file is an ordinary
``.npz``: arrays by path ("0/state/x", "1/tape/total") and one JSON text.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite._wording import argument
from gibbsite.errors import ArgumentError, CheckpointError

FORMAT = 3
# What reading a file that is none of ours may raise.
_UNREADABLE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


_STEP = 1 << 16  # numbers


def flatten(prefix: str, value: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of nested named tuples with their paths: no rebuildable ones, no zeros at an end."""
    if isinstance(value, np.ndarray):
        yield prefix, value[: _used(value)] if value.ndim == 1 else value
    elif hasattr(value, "_fields") and not is_rebuildable(value):
        for name in value._fields:
            yield from flatten(f"{prefix}/{name}", getattr(value, name))


def is_rebuildable(value: Any) -> bool:
    """Tell whether a chain goes on as before without these arrays (see :meth:`Kernel.memory`)."""
    return bool(getattr(value, "rebuildable", False))


def _used(values: NDArray[Any]) -> int:
    """Return the length of an array without the zeros at its end, in steps of 64k."""
    end = values.size
    while end > _STEP and not values[end - _STEP : end].any():
        end -= _STEP
    return end


def restore(prefix: str, template: Any, arrays: dict[str, NDArray[Any]]) -> Any:
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


def write_atomically(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to ``path`` so that at any moment the file there is complete."""
    spare = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(spare, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(spare, path)
    except OSError as reason:
        raise CheckpointError(
            f"Cannot write {path}: {reason.strerror or reason}; check the folder, its rights and free space."
        ) from None
    finally:
        _remove(spare)


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
    if checkpoint is None:
        if resume:
            raise ArgumentError(
                f"{argument('resume', True)} needs {argument('checkpoint')}, the file to continue from."
            )
        return None
    if not isinstance(checkpoint, str | Path):
        raise ArgumentError(f"{argument('checkpoint')} must be the path of a file, got {checkpoint!r}.")
    if not isinstance(every, Real) or not float(every) >= 0:
        raise ArgumentError(
            f"{argument('checkpoint_every')} must be a number of seconds, not negative, got {every!r}."
        )
    path = Path(checkpoint)
    check_writable(path)
    if path.exists() and not resume:
        raise CheckpointError(
            f"{path} exists already: continue it with {argument('resume', True)}, or remove it first."
        )
    return path


def check_writable(path: Path) -> None:
    """Refuse a place where no checkpoint can be written, before any work is done."""
    if path.is_dir():
        raise CheckpointError(f"Cannot write {path}: it is a folder; give the name of a file.")
    for torn in path.parent.glob(f".{glob.escape(path.name)}.*.part"):  # left by a run killed while writing
        _remove(torn)
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
    others: dict[str, NDArray[Any]] | None = None,
) -> None:
    """Save all chains, each a pair (state, tape), and other arrays by name."""
    about = {"format": FORMAT, "plan": plan, "progress": progress}
    arrays: dict[str, NDArray[Any]] = {"about": np.array(json.dumps(about, sort_keys=True))}
    for number, (state, tape) in enumerate(chains):
        arrays.update(flatten(f"{number}/state", state))
        arrays.update(flatten(f"{number}/tape", tape))
    arrays.update(others or {})
    write_atomically(path, arrays)


def load_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Load a checkpoint: its JSON part and its arrays."""
    try:
        # opened here, because NumPy leaves a file open that turns out to be no archive
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        version, plan, progress = (about[key] for key in ("format", "plan", "progress"))
    except _UNREADABLE as reason:
        said = f" ({reason.strerror})" if isinstance(reason, OSError) and reason.strerror else ""
        raise CheckpointError(
            f"{path} is not a gibbsite checkpoint, or a damaged one{said}; remove it to start afresh."
        ) from None
    if version != FORMAT or not isinstance(plan, dict) or not isinstance(progress, dict):
        raise CheckpointError(
            f"{path} has checkpoint format {version}, this version reads {FORMAT}; remove it to start afresh."
        )
    return about, arrays
