"""Files of the disk cache: private to one user, written completely or not at all, and checked before use.

Loading compiled code, or the pickle that describes it, runs code with the rights of the reader. A file is therefore
read only if it belongs to the user of this process and others cannot write to it. The checksum at the beginning of
every file detects damage, such as a flipped bit or a file truncated on a full disk; it does not detect forgery.
"""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path

_CHECKSUM = 16  # bytes


def why_not_private(status: os.stat_result) -> str | None:
    """Return why a file or folder is not private to the user of this process, None if it is.

    On Windows, where access lists protect users' folders, nothing is checked.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(why_not_private(os.stat(folder)))
    None
    """
    if os.name == "nt":
        return None
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return None


def read_checked(path: Path) -> bytes | None:
    """Return the content written by :func:`write_checked`, None if the file is missing, damaged or not private."""
    try:
        with open(path, "rb") as file:
            if why_not_private(os.fstat(file.fileno())) is not None:
                return None
            whole = file.read()
    except OSError:
        return None
    content = whole[_CHECKSUM:]
    return content if whole[:_CHECKSUM] == _checksum(path.name, content) else None


def write_checked(path: Path, content: bytes) -> None:
    """Write a file with its checksum, completely or not at all; raise ``OSError`` if that is impossible.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_checked(Path(folder) / "note", b"text")
    ...     read_checked(Path(folder) / "note")
    b'text'
    """
    spare = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    try:
        with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_checksum(path.name, content) + content)
        spare.replace(path)
    except BaseException:
        with suppress(OSError):
            spare.unlink()
        raise


def _checksum(name: str, content: bytes) -> bytes:
    """Return a checksum that includes the name, so that files cannot be mistaken for each other."""
    key = hashlib.blake2b(name.encode()).digest()
    return hashlib.blake2b(content, digest_size=_CHECKSUM, key=key).digest()
