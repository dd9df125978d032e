"""The one format of answers, scans, checkpoints and trained models: an ``.npz`` file of arrays and a JSON header.

:func:`write_archive` writes it and :func:`open_archive` reads it, checking the header of each array before its data.
NumPy's own readers allocate whatever a header asks for and raise many kinds of errors. Here the length of headers is
bounded, and every fault raises the one error that the caller chose.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from gibbsite._common.arrays import Array
from gibbsite._common.boundary import (
    Fail,
    Wanted,
    check_description,
    check_growth,
    check_text_growth,
    check_values,
    read_json,
)
from gibbsite._common.wording import escaped

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_TEXT = "about"  # the entry that holds the JSON header
_PIECE = 1 << 20  # bytes read at a time, for compressed data
_ANY = Wanted(np.float64, (), finite=False, missing=True)  # any values


def write_archive(path: Path, header: dict[str, Any], arrays: Mapping[str, Any], spare: str | None = None) -> None:
    """Write a header and arrays to ``path`` atomically; equal content gives equal bytes.

    The data are first written to a temporary file, whose name contains ``spare`` or, by default, the process id.
    """
    from gibbsite.errors import ArgumentError, CheckpointError

    if not path.name:
        raise ArgumentError(f"path must name a file, got {str(path)!r}.")
    part = path.with_name(f".{path.name}.{spare or os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            np.savez(file, **_entries(header, arrays))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as reason:
        raise CheckpointError(
            f"Cannot write {path}: {reason.strerror or reason}; check the folder, your rights and the free space."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def pack_archive(header: dict[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return a header and arrays as a compressed archive; equal content gives equal bytes."""
    with BytesIO() as file:
        np.savez_compressed(file, **_entries(header, arrays))
        return file.getvalue()


def _entries(header: dict[str, Any], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of an archive: the header as bytes, and the arrays in row-major order."""
    text = np.array(json.dumps(header, sort_keys=True).encode("ascii"))
    return {_TEXT: text} | {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}


class _Header:
    """Type and shape of an array, read from a file that is left at the start of its data."""

    def __init__(self, name: str, file: IO[bytes], fail: Fail) -> None:
        try:
            read = _HEADERS[npy.read_magic(file)]
            self.shape, self.by_columns, self.dtype = read(file)
        except Exception:  # NumPy's parser raises many types of exceptions
            raise fail(f"the header of its array {name} is damaged") from None
        if self.dtype.hasobject or min(self.shape, default=0) < 0:
            raise fail(f"the header of its array {name} is damaged")

    @property
    def nbytes(self) -> int:
        """Number of bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self, data: Any) -> Array:
        """Return these bytes as an array."""
        found: Array = np.frombuffer(data, self.dtype)
        return found.reshape(self.shape, order="F" if self.by_columns else "C")


def map_array(path: Path, name: str, wanted: Wanted, sizes: dict[str, int], fail: Fail) -> Array:
    """Return the array of an ``.npy`` file, mapped for reading; its type and shape are checked."""
    with _opened(path, fail) as file:
        header = _Header(name, file, fail)
        check_description(name, header.dtype, header.shape, wanted, sizes, fail)
        begin, size = file.tell(), os.fstat(file.fileno()).st_size
        if size != begin + header.nbytes:
            raise fail(f"its array {name} does not have the size that its header states")
        if not header.nbytes:
            return np.zeros(header.shape, header.dtype)
        return np.asarray(np.memmap(file, header.dtype, "r", begin, header.shape))


class Archive:
    """An ``.npz`` file, opened by :func:`open_archive`.

    Attributes
    ----------
    names : tuple of str
        Names of its arrays.
    """

    def __init__(self, file: zipfile.ZipFile, size: int, fail: Fail, packed: bool) -> None:
        self.file, self.size, self.fail = file, size, fail
        members = [one for one in file.infolist() if one.filename.endswith(".npy")]
        self.members = {one.filename.removesuffix(".npy"): one for one in members}
        if len(self.members) != len(file.infolist()):
            raise fail("it contains a name twice, or an entry that is not an array")
        total = sum(one.file_size for one in members)
        if not packed and total > size:
            raise fail("its data are compressed")
        check_growth(total, size, fail)
        self.names = tuple(name for name in self.members if name != _TEXT)
        self.sizes: dict[str, int] = {}

    def header(self) -> dict[str, Any]:
        """Return the JSON object that the archive holds besides its arrays."""
        return read_json(self.text(_TEXT), self.fail)

    def text(self, name: str) -> Any:
        """Return an entry that is a string, stored as text or as its bytes."""
        member = self._member(name)
        check_text_growth(member.file_size, self.size, self.fail)
        with self._entry(name, member) as (header, file):
            if header.shape != () or header.dtype.kind not in "SU":
                raise self.fail(f"its entry {name} is not text")
            found = self._array(name, header, file)
            if found.dtype.kind == "U":  # NumPy makes texts of any numbers
                codes = np.frombuffer(found.tobytes(), np.dtype(np.uint32).newbyteorder(found.dtype.byteorder))
                if codes.max(initial=0) > sys.maxunicode:
                    raise self.fail(f"its entry {name} is not text")
            try:
                return found.item()
            except ValueError:  # bytes that are not valid text
                raise self.fail(f"its entry {name} is not text") from None

    def read(self, name: str, wanted: Wanted) -> Array:
        """Return an array after checking its values; its type and shape are checked before its data are unpacked."""
        with self._entry(name, self._member(name)) as (header, file):
            check_description(name, header.dtype, header.shape, wanted, self.sizes, self.fail)
            found = self._array(name, header, file)
        check_values(name, found, wanted, self.fail)
        return found

    def admit(self, wanted: Mapping[str, Wanted]) -> dict[str, Array]:
        """Return the wanted arrays after checking them; other arrays are not read."""
        there = {name: one for name, one in wanted.items() if name in self.members or not one.optional}
        return {name: self.read(name, one) for name, one in there.items()}

    def read_all(self, prefix: str = "") -> dict[str, Array]:
        """Return all arrays, or those whose names begin with ``prefix``.

        They must contain numbers; the caller checks their shapes and ranges.
        """
        return {name: self.read_numbers(name) for name in self.names if name.startswith(prefix)}

    def read_numbers(self, name: str) -> Array:
        """Return an array of numbers of any type and shape."""
        with self._entry(name, self._member(name)) as (header, file):
            if header.dtype.kind not in "biuf" or not header.dtype.isnative:
                raise self.fail(f"its array {name} contains something other than numbers")
            found = self._array(name, header, file)
        check_values(name, found, _ANY, self.fail)
        return found

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self.members:
            raise self.fail(f"its array {name} is missing" if name != _TEXT else "its header is missing")
        return self.members[name]

    @contextmanager
    def _entry(self, name: str, member: zipfile.ZipInfo) -> Iterator[tuple[_Header, IO[bytes]]]:
        with _unzipping(name, self.fail), self.file.open(member) as file:
            yield _Header(name, file, self.fail), file

    def _array(self, name: str, header: _Header, file: IO[bytes]) -> Array:
        """Return the array whose header was read, reading to the end of the entry, where its checksum is verified."""
        if header.nbytes > self.members[name].file_size:
            raise self.fail(f"its array {name} has fewer entries than its header states")
        content = bytearray(header.nbytes)
        view, at = memoryview(content), 0
        while at < len(content):
            part = file.read(min(_PIECE, len(content) - at))
            if not part:
                break
            view[at : at + len(part)] = part
            at += len(part)
        if at < len(content) or file.read(1):
            raise self.fail(f"its array {name} does not have the size that its header states")
        return header.array(content)


@contextmanager
def open_archive(source: Path | bytes, fail: Fail, packed: bool = True) -> Iterator[Archive]:
    """Open an ``.npz`` file, or its bytes, as an :class:`Archive`; compressed data are refused unless ``packed``."""
    fail = _escaping(fail)  # names of arrays are text from outside
    with BytesIO(source) if isinstance(source, bytes) else _opened(source, fail) as raw:
        size = raw.seek(0, os.SEEK_END)
        with _unzipping("", fail):
            file = zipfile.ZipFile(raw)
        with file:
            yield Archive(file, size, fail, packed)


def _escaping(fail: Fail) -> Fail:
    return lambda reason: fail(escaped(reason))


@contextmanager
def _opened(path: Path, fail: Fail) -> Iterator[IO[bytes]]:
    """Open a regular file; pipes and devices are refused because reading them might never end."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
        file = open(path if regular else os.devnull, "rb")  # noqa: SIM115
    except OSError as reason:
        if isinstance(reason, FileNotFoundError):
            raise fail("there is no such file") from None
        raise fail(f"it cannot be read ({reason.strerror or reason})") from None
    except ValueError:  # a NUL in the name
        raise fail("there is no such file") from None
    with file:
        if not regular:
            raise fail("it is not a regular file")
        yield file


@contextmanager
def _unzipping(name: str, fail: Fail) -> Iterator[None]:
    try:
        yield
    except Exception as reason:  # invalid names, unknown compression methods, and others
        if _ours(reason):
            raise
        raise fail(f"its array {name} is damaged" if name else "it is not an archive of arrays") from None


def _ours(reason: BaseException) -> bool:
    from gibbsite.errors import GibbsiteError

    return isinstance(reason, GibbsiteError)  # CheckpointError, for example, is also an OSError
