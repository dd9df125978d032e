"""Numbers of a run that stand in files instead of memory, mapped as they are read and written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from gibbsite._common.arguments import is_path
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, FormatError

_PIECE = 1 << 20  # numbers worked on at a time


def read_folder(to: Any) -> Path:
    """Return the folder that numbers are to be written to; it is made where there is none."""
    if not is_path(to):
        raise ArgumentError(f"{argument('to')} of Marginals must be the path of a folder, got {to!r}.")
    folder = Path(to)
    with _clearly(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def zeros_on_disk(folder: Path, size: int) -> Floats:
    """Return zeros in a file without a name, whose space is taken at once.

    A page that has no place on a full disk would end the process when it is first written.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sums = zeros_on_disk(Path(folder), 3)
    ...     sums += 1.0
    ...     sums.tolist(), len(list(Path(folder).iterdir()))
    ([1.0, 1.0, 1.0], 0)
    """
    if not size:
        return np.zeros(0)
    with _clearly(folder), tempfile.TemporaryFile(dir=folder) as file:
        _reserve(file.fileno(), 8 * size)
        return np.asarray(np.memmap(file, np.float64, "r+", shape=(size,)))


def write_pieces(path: Path, shape: tuple[int, ...], piece: Callable[[slice], Floats]) -> Floats:
    """Write an array in NumPy's format, some of its last axis at a time; return it, mapped for reading.

    A file that is there already is replaced when the new one is complete; arrays mapped from it remain.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pieces(Path(folder, "a.npy"), (3,), lambda part: np.arange(3.0)[part]).tolist()
    [0.0, 1.0, 2.0]
    """
    spare = path.with_name(f".{path.name}.{os.getpid()}.part")
    with _clearly(path.parent):
        try:
            found = open_memmap(spare, "w+", np.float64, shape)
            with open(spare, "r+b") as file:
                _reserve(file.fileno(), spare.stat().st_size)
            for begin in range(0, shape[-1], _PIECE):
                part = slice(begin, min(begin + _PIECE, shape[-1]))
                found[..., part] = piece(part)
            found.flush()
            del found
            os.replace(spare, path)
        finally:
            spare.unlink(missing_ok=True)
        return np.asarray(np.load(path, mmap_mode="r"))


def _reserve(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


@contextmanager
def _clearly(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        raise FormatError(
            f"Cannot write to {folder}: {reason.strerror or reason}; check the folder, rights and free space."
        ) from None
