"""Messages on stderr, answers on stdout or in files, and a fallback for files that cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError

T = TypeVar("T")


class ReaderGone(Exception):
    """The process that reads standard output has closed it."""


def open_streams() -> None:
    """Replace standard streams that were closed before the program started.

    Messages to a closed stderr are dropped; ``print(file=None)`` would mix them with the data on stdout.
    Writing data to a closed stdout is an error.
    """
    if sys.stdout is None:
        # a file that cannot be written; it also keeps other files from getting its descriptor
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def echo(message: object = "", err: bool = False) -> None:
    """Print a message, a table or JSON, with control characters escaped."""
    click.echo(escaped(message, keep="\n\t"), err=err)


def tell(message: object, quiet: bool = False) -> None:
    """Print a message on stderr, marked as one of this program."""
    if not quiet:
        echo(f"gibbsite: {message}", err=True)


@contextmanager
def warnings_on_stderr(quiet: bool = False) -> Iterator[None]:
    """Print warnings of the library as messages on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, UserWarning):
                    tell(warning.message, quiet)


@contextmanager
def note_on_compiling(quiet: bool) -> Iterator[None]:
    """Say on stderr if functions have to be compiled, which makes a first call slow."""
    from gibbsite._numba.jit import announcing

    with announcing(lambda text: None if quiet else echo(text, err=True), "this command"):
        yield


def drop_stdout() -> None:
    """Discard unwritten output, so that Python does not try to write it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say_what_failed(error: OSError) -> str:
    """Return a message about a file or a stream that could not be read or written."""
    if error.filename is None and error.errno == errno.EBADF:
        return "the answer cannot be written: standard output is closed; open it, or give a file with -o."
    return f"{error.filename or 'standard output'}: {error.strerror or error}"


def deliver(path: str, write: Callable[[str], T], *, text: bool = False) -> T:
    """Write a finished answer by ``write(path)``; if that fails, write it elsewhere and raise an error that says where.

    ``text`` says that the answer may go to stdout instead. Returns what ``write`` returns.
    """
    try:
        return write(path)
    except (FormatError, OSError) as error:
        if path == "-":
            raise
        where = _elsewhere(path, write, text)
        if where is None:
            raise
        said = str(error) if isinstance(error, FormatError) else f"{path}: {error.strerror or error}."
        raise FormatError(f"{said} The answer was written to {where} instead.") from None


def _elsewhere(path: str, write: Callable[[str], object], text: bool) -> str | None:
    """Write an answer to stdout or to a temporary folder; return where it is, None if it is lost."""
    if text:
        try:
            write("-")
            return "standard output"
        except (FormatError, OSError):
            drop_stdout()
    try:
        folder = Path(tempfile.mkdtemp(prefix="gibbsite-"))
    except OSError:
        return None
    try:
        write(str(folder / Path(path).name))
        return str(folder / Path(path).name)
    except (FormatError, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        return None
