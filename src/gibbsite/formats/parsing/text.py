"""Reading and writing of files, plain or gzip, for all formats.

A file is read completely, in pieces, up to a limit on its unpacked size. Places (line, column) are computed only for
errors.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError, GibbsiteError

PathLike: TypeAlias = str | os.PathLike[str]
"""Where a file is; ``"-"`` means standard input or output."""

LIMIT = 4 << 30
"""Most bytes a file may hold, unpacked."""
#: Blanks and comments that may stand before the first word of a file.
COMMENTS = rb"(?:\s++|//[^\n]*+|/\*.*?\*/|#[^\n]*+(?:\n|\Z))*+"

_CHUNK = 1 << 16
_PIPE_LIMIT = 1 << 30  # most bytes of a pipe, which may have no end
# Deflate expands up to 1032-fold, but model files hardly 100-fold; small files are not limited.
_PACKED_RATIO, _PACKED_FLOOR = 250, 256 << 20


@dataclass(frozen=True)
class Source:
    """The unpacked content of a file, and its name for messages."""

    name: str
    data: bytes

    def error(self, message: str, offset: int | None = None) -> FormatError:
        """Return the error about the byte at an offset, or about the whole file."""
        message = shortened(message)
        if offset is None:
            return FormatError(message, self.name)
        start = self.data.rfind(b"\n", 0, offset) + 1
        line = self.data.count(b"\n", 0, offset) + 1
        column = len(self.data[start:offset].decode("utf-8", "replace")) + 1
        return FormatError(message, self.name, line, column)

    def decoded(self) -> str:
        """Return the content as UTF-8 text."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error("this is not UTF-8 text; convert the file to UTF-8.", error.start) from None


def path_text(path: object) -> str:
    """Return a path as text; refuse anything else."""
    if not isinstance(path, (str, os.PathLike)):
        raise FormatError(f"a file is named by a text or a path, got {shortened(repr(path))}.")
    return os.fsdecode(path)


def shortened(message: str) -> str:
    """Return a message without its middle if it is long, as the content of damaged files may be."""
    return message if len(message) <= 400 else f"{message[:300]} ... {message[-100:]}"


def load(path: PathLike, *, text: bool = True, magic: bytes | tuple[bytes, ...] = (), limit: int = LIMIT) -> Source:
    """Read a file, plain or gzip, without its byte order mark; "-" is standard input.

    ``text`` refuses files that are not text. ``magic`` is what such files begin with that are accepted nevertheless;
    other files are read only as far as they are text. ``limit`` is the largest number of bytes, unpacked.
    """
    name = "<stdin>" if isinstance(path, str) and path == "-" else path_text(path)
    parts: list[bytes] = []
    size = 0
    try:
        with _open_input(path, name) as file:
            most = _bounded(file, name, limit)
            for part in _unpacked(file, name):
                size += len(part)
                if size > most:
                    advice = "split the model" if most == limit else "save them to a file first"
                    raise FormatError(f"there are more than {most:,} bytes; {advice}.", name)
                if text and not magic and b"\0" in part:
                    raise FormatError("this is a binary file (it holds NUL bytes); expected text.", name)
                parts.append(part)
                if magic and b"\0" in part and not parts[0].startswith(magic):
                    break  # the reader reports what was expected
    except OSError as error:
        raise FormatError(_reason(error), name) from None
    data = b"".join(parts).removeprefix(b"\xef\xbb\xbf")
    if not data or data.isspace():
        raise FormatError("the file is empty.", name)
    return Source(name, data)


def save(path: PathLike, data: bytes | str | Iterable[str]) -> None:
    """Write a file, packed if its name ends in ``.gz``; ``"-"`` is standard output.

    The file is replaced only when all of it has been written. Equal content gives equal bytes. Pieces are written one
    by one, and need not fit into memory together.
    """
    pieces: Iterable[bytes | str] = (data,) if isinstance(data, bytes | str) else data
    if path == "-":
        _print(pieces)
        return
    packed = os.fspath(path).lower().endswith(".gz")
    try:
        target = Path(path)
        if target.exists() and not target.is_file():  # a device or a pipe cannot be replaced
            _write(target, pieces, packed)
            return
        target = target.resolve()
        part = _beside(target)
        try:
            _write(part, pieces, packed)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except GibbsiteError:  # raised while the pieces are made
        raise
    except (OSError, ValueError) as error:
        raise _unwritable(error, path) from None


def _print(pieces: Iterable[bytes | str]) -> None:
    sys.stdout.flush()
    seen = sys.stdout.isatty()
    for piece in pieces:
        if isinstance(piece, str) and seen:  # a terminal would act on control characters
            piece = escaped(piece.replace("\r\n", "\n"), keep="\n\t")
        if isinstance(piece, str) and not hasattr(sys.stdout, "buffer"):
            sys.stdout.write(piece)  # in a notebook or a test
        else:
            sys.stdout.buffer.write(_encoded(piece))
    getattr(sys.stdout, "buffer", sys.stdout).flush()


def _write(path: Path, pieces: Iterable[bytes | str], packed: bool) -> None:
    with ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "wb"))
        if packed:
            import gzip

            file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        for piece in pieces:
            file.write(_encoded(piece))


def _encoded(piece: bytes | str) -> bytes:
    # surrogates, which names from JSON files may contain, are escaped
    return piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece


def check_writable(path: PathLike) -> None:
    """Refuse a path to which :func:`save` could not write, before any work is done; change nothing there."""
    if path == "-":
        return
    try:
        target = Path(path)
        if target.is_dir():
            raise IsADirectoryError
        if target.exists() and not target.is_file():
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        part = _beside(target.resolve())
        try:
            part.touch()
        finally:
            part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(error, path) from None


def _beside(target: Path) -> Path:
    """Return the path of the temporary file that replaces another one."""
    return target.with_name(f".{target.name}.{os.getpid()}.part")


def _unwritable(error: Exception, path: PathLike) -> FormatError:
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    reason = "there is no such folder." if missing else _reason(error)
    return FormatError(f"the file cannot be written: {reason}", os.fspath(path))


def _open_input(path: PathLike, name: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        if not hasattr(sys.stdin, "buffer"):
            raise FormatError("there is no standard input to read.", name)
        return nullcontext(sys.stdin.buffer)
    try:
        return open(path, "rb")
    except ValueError:  # a NUL or a lone surrogate in the name
        raise FormatError("there is no such file.", repr(name)) from None


def _bounded(file: BinaryIO, name: str, limit: int) -> int:
    """Return the largest number of bytes to read; refuse devices, which may have no end, and too large files."""
    try:
        about = os.fstat(file.fileno())
    except (OSError, AttributeError):  # standard input that was replaced
        return limit
    if stat.S_ISREG(about.st_mode):
        if about.st_size > limit:
            raise FormatError(f"there are more than {limit:,} bytes; split the model.", name)
        return limit
    if stat.S_ISCHR(about.st_mode) and name != "<stdin>" and not file.isatty():
        raise FormatError("this is a device; name a file.", name)
    return min(limit, _PIPE_LIMIT)


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file."
    if isinstance(error, IsADirectoryError):
        return "this is a directory; name a file in it."
    return f"{getattr(error, 'strerror', None) or error}."


def _unpacked(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the content in pieces, unpacked if it is gzip."""
    first = file.read(_CHUNK)
    pieces = chain((first,), iter(lambda: file.read(_CHUNK), b""))
    yield from _gunzip(pieces, name) if first.startswith(b"\x1f\x8b") else pieces


def _gunzip(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    machine, part = None, b""
    packed = unpacked = 0
    for piece in chain(pieces, (b"",)):
        packed += len(piece)
        while piece or (machine is not None and part):
            if machine is None:
                piece = piece.lstrip(b"\0")  # padding between members
                if not piece:
                    break
                machine = zlib.decompressobj(31)
            try:
                part = machine.decompress(piece, _CHUNK)
            except zlib.error:
                raise FormatError("the gzip data is damaged; fetch the file again.", name) from None
            unpacked += len(part)
            if unpacked > max(_PACKED_FLOOR, _PACKED_RATIO * packed):
                raise FormatError(f"the gzip data grows more than {_PACKED_RATIO}-fold; unpack the file first.", name)
            yield part
            piece = machine.unused_data if machine.eof else machine.unconsumed_tail
            if machine.eof:
                machine = None
    if machine is not None:
        raise FormatError("the gzip data ends too early; fetch the file again.", name)
