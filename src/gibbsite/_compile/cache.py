"""The disk cache of compiled code.

It lives in a directory of our own whose name contains a hash of all code that compiled functions depend on
(:mod:`.sources`): Numba stamps a cached function with the file that *defines* it only, so without this a
changed callee in another file would keep running in its old form. Kernels defined outside the package are
compiled without disk cache for the same reason. Nothing about the cache ever raises: an unwritable or damaged
cache means compiling again.

Directories of other versions that have not been used for 30 days are removed when a new one is made.
"""

from __future__ import annotations

import functools
import logging
import os
import pickle
import re
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

from gibbsite._compile.parts import try_part
from gibbsite._compile.sources import hash_sources

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("gibbsite")

_config: Any = numba.config

_UNUSED_DAYS = 30
_HASH = re.compile(r"[0-9a-f]{16}")  # names of directories that are ours
_PACKAGE = Path(__file__).parent.parent

# What reading a damaged cache file may raise: a kill during a write leaves a torn index behind.
TORN_CACHE = (EOFError, pickle.UnpicklingError, OSError, AttributeError, ImportError, KeyError)


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None when the disk cache is off or unusable.

    Examples
    --------
    >>> directory = cache_directory()
    >>> directory is None or directory.is_dir()
    True
    """
    base = _base_directory()
    if base is None:
        return None
    try:
        directory = base / hash_sources(_PACKAGE, base, numba.__version__)
        if not directory.exists():
            _remove_unused(base)
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as reason:
        log.info("compiled kernels are not kept on disk (%s)", reason)
        return None
    return directory


def _base_directory() -> Path | None:
    """Return where the directories of all versions are, None if the disk cache is off."""
    chosen = os.environ.get("GIBBSITE_CACHE_DIR", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData/Local")) / "gibbsite"
    try:
        home_cache = Path.home() / ".cache"
    except RuntimeError:
        home_cache = Path("/nonexistent")
    return Path(os.environ.get("XDG_CACHE_HOME") or home_cache) / "gibbsite"


def _remove_unused(base: Path) -> None:
    """Remove what other versions of the package keep, if no process has begun to use it for long.

    Every process that begins changes the time of its directory (see the probe above). Should one that has run
    for longer miss its files, it compiles again.
    """
    limit = time.time() - 86400.0 * _UNUSED_DAYS
    with suppress(OSError):
        for directory in base.iterdir():
            if _HASH.fullmatch(directory.name) and directory.stat().st_mtime < limit:
                shutil.rmtree(directory, ignore_errors=True)


def empty_cache() -> None:
    """Remove all that is kept for this version: some of it is damaged."""
    directory = cache_directory()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
        with suppress(OSError):
            directory.mkdir(parents=True, exist_ok=True)


def is_kept(function: Callable[..., Any]) -> bool:
    """Tell whether an earlier process has compiled a function and kept it, for whatever types."""
    directory = cache_directory()
    if directory is None:
        return False
    return any(directory.glob(f"*/{_file_name(function)}[-.]*.nbi"))


@contextmanager
def _cache_at(directory: Path) -> Iterator[None]:
    """Let functions decorated inside the block keep their cache in ``directory``."""
    before = _config.CACHE_DIR
    _config.CACHE_DIR = str(directory)
    try:
        yield
    finally:
        _config.CACHE_DIR = before


# The place of the cache is a global setting of Numba while a function is decorated: one at a time.
DECORATING = threading.RLock()


def decorate(function: Callable[P, R], options: dict[str, Any], cache: bool) -> Callable[P, R]:
    """Return a dispatcher of Numba for a function, with or without a disk cache."""
    directory = cache_directory() if cache else None
    if directory is not None and try_part("files", lambda: None):
        try:
            with _cache_at(directory):
                kept = numba.njit(cache=True, **options)(function)
        except RuntimeError as reason:  # numba found no place for its cache
            log.info("compiled kernels are not kept on disk (%s)", reason)
        else:
            if try_part("files", lambda: _rename_files(kept, function)):
                return cast(Callable[P, R], kept)
    return cast(Callable[P, R], numba.njit(**options)(function))


def _file_name(function: Callable[..., Any]) -> str:
    module = function.__module__.rpartition(".")[2]
    name = function.__qualname__.replace("<", "").replace(">", "")
    return f"{module}.{name}"


def _rename_files(dispatcher: Any, function: Callable[..., Any]) -> None:
    """Give the files of compiled code names that no other process gives, and no stamp that the key implies.

    Numba numbers the files by the index it has read. Two processes that fill one cache at the same time would
    take the same number for different code, and one of them would later load the other's. With names of their
    own the worst that can happen is that an entry of the index is lost, and compiled again.

    For functions of the package, the name of the directory says whether they are up to date: the number of
    the line and the stamp of the file, by which Numba would compile again after a change of a comment, go.
    """
    files = dispatcher._cache._cache_file
    pattern, index, place, stamp = (
        files._data_name_pattern,
        files._index_name,
        files._cache_path,
        files._source_stamp,
    )
    if "{number:d}" not in pattern or not index.endswith(".nbi"):
        raise AttributeError("the files of Numba's cache have other names")
    if function.__module__.partition(".")[0] == "gibbsite":
        version = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
        base, stamp = f"{_file_name(function)}.{version}", "see the name of the directory"
        pattern, index = f"{base}.{{number:d}}.nbc", f"{base}.nbi"
    files._data_name_pattern = pattern.replace("{number:d}", f"{uuid.uuid4().hex}-{{number:d}}")
    files._index_name, files._index_path = index, os.path.join(place, index)
    files._source_stamp = stamp
    save = files.save

    def save_alone(key: object, data: object) -> None:
        with _alone(Path(files._index_path)):
            save(key, data)

    files.save = save_alone


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time renew a file; one that has waited for a second goes on all the same.

    Numba reads an index, adds an entry and writes it. Processes that do so at the same time would lose each
    other's entries, and with them what they have compiled for long.
    """
    lock = path.with_suffix(".lock")
    held = False
    patience = time.monotonic() + 1.0
    while not held and time.monotonic() < patience:
        with suppress(OSError):
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            held = True
        if not held:
            time.sleep(0.01)
    try:
        yield
    finally:
        with suppress(OSError):  # also one that a process left behind that was killed
            lock.unlink()
