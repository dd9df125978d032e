"""Where messages and answers go: the standard streams, and another place where a file cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from gibbsite._common.wording import escaped
from gibbsite.errors import FormatError

T = TypeVar("T")


class ReaderGone(Exception):
    """Whoever read standard output has closed it."""


def open_streams() -> None:
    """Put something into the place of standard streams that were closed before the program started.

    Messages to a closed stderr are dropped; without this, ``print(file=None)`` would mix them with the data
    on stdout. Data for a closed stdout must not be dropped: writing it is an error.
    """
    if sys.stdout is None:
        # a file that cannot be written to; it also keeps other files from taking its number
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def echo(message: object = "", err: bool = False) -> None:
    """Print a message, a table or JSON; control characters in names and texts are written out."""
    click.echo(escaped(message, keep="\n\t"), err=err)


def drop_stdout() -> None:
    """Forget what stdout has not taken, so that Python does not try to write it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say_what_failed(error: OSError) -> str:
    """Return a message about a file or a stream that could not be read or written."""
    if error.filename is None and error.errno == errno.EBADF:
        return "the answer cannot be written: standard output is closed; open it, or give a file with -o."
    return f"{error.filename or 'standard output'}: {error.strerror or error}"


def deliver(path: str, write: Callable[[str], T], *, text: bool = False) -> T:
    """Write a finished answer to a file; where that fails, to another place, and say where it is.

    Parameters
    ----------
    path : str
        The file, or "-".
    write : function (path)
        Writes the answer to a place.
    text : bool
        The answer can go to stdout.

    Returns
    -------
    object
        What ``write`` returns.

    Raises
    ------
    FormatError
        If it could not be written to ``path``; the message says where it is instead.
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
    """Write an answer to stdout or to a folder for temporary files; return where it is, None if nowhere."""
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
