"""Locks, so that a file or folder has one writer at a time.

A lock is the file ``.NAME.lock`` beside the protected one. It is held by ``flock``, which the system releases when the
process ends. Without ``flock`` (Windows, some network disks) the file contains the host and process id of its holder;
the lock of a process of this machine that has ended is void.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from gibbsite._common.boundary import Fail

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def hold(path: Path, fail: Fail) -> Iterator[None]:
    """Hold the lock of a path; fail if another process, or another part of this one, holds it."""
    lock = path.with_name(f".{path.name}.lock")
    descriptor = None
    while descriptor is None:
        try:
            descriptor = _take(lock)
        except BlockingIOError:
            raise fail(f"another process is writing it, as {lock.name} says; wait until that process ends") from None
        except OSError as reason:
            raise fail(
                f"{reason.strerror or reason}; check that the folder exists and that you may write to it"
            ) from None
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # while it is held, so that no lock of another process is removed
            os.truncate(descriptor, 0)
            lock.unlink()
        os.close(descriptor)


def _take(lock: Path) -> int | None:
    """Take a lock and return its descriptor; None if the file was removed meanwhile."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        if not _flock(descriptor):
            _claim(descriptor)
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == os.stat(lock).st_ino:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _flock(descriptor: int) -> bool:
    """Lock a file; return False where files cannot be locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


def _claim(descriptor: int) -> None:
    """Write the holder into a lock, unless another process that still runs holds it."""
    mine = f"{socket.gethostname()} {os.getpid()}"
    holder = os.read(descriptor, 1000).decode("utf-8", "replace")
    if holder and _is_there(holder):
        raise BlockingIOError
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.truncate(descriptor, 0)
    os.write(descriptor, mine.encode())


def _is_there(holder: str) -> bool:
    """Return whether the holder of a lock may still be running."""
    host, _, number = holder.rpartition(" ")
    if host != socket.gethostname() or not number.isdecimal():
        return True
    if os.name == "nt":  # on Windows, signal 0 ends a process
        return True
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
