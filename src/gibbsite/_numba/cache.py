"""The disk cache of compiled code.

It is a separate directory whose name contains a hash of all code that compiled functions depend on (:mod:`.sources`).
Numba's own cache checks only the file that *defines* a function, and would keep running the old version of a callee
that was changed in another file. For the same reason, kernels defined outside the package are compiled without the disk
cache.

The directory must belong to the user and not be writable for others, because whoever can write compiled code can run
code as the user who loads it. Otherwise the directory is not used, and a warning is logged. Every file has a checksum
that is verified before anything is unpickled or loaded (:mod:`.files`). Faults of the cache never raise an error: if it
cannot be read, the function is compiled, and if it cannot be written, no partial files remain.

Directories of other versions that have not been used for 30 days are removed when a new one is made.
"""

from __future__ import annotations

import functools
import hashlib
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
from gibbsite._numba.files import read_checked, why_not_private, write_checked
from gibbsite._numba.parts import try_part
from gibbsite._numba.sources import hash_sources

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("gibbsite")

_config: Any = numba.config

_UNUSED_DAYS = 30
_HASH = re.compile(r"[0-9a-f]{16}")  # names of directories made by this module
_PACKAGE = Path(__file__).parent.parent


@functools.cache
def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, or None when the disk cache is off or unusable."""
    base = _base_directory()
    if base is None:
        return None
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = why_not_private(base.stat())
        if reason is not None:
            log.warning(
                "gibbsite: compiled code is not kept on disk, because the folder %s %s; "
                "set GIBBSITE_CACHE_DIR to a folder that only you can write.",
                base,
                reason,
            )
            return None
        directory = base / hash_sources(_PACKAGE, base, _settings())
        if not directory.exists():
            _remove_unused(base)
        directory.mkdir(mode=0o700, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        log.info("compiled kernels are not kept on disk (%s)", error)
        return None
    return directory


def _settings() -> str:
    """Return the settings that compiled code depends on."""
    without = sorted(os.environ.get("GIBBSITE_WITHOUT", "").replace(",", " ").split())
    return f"{numba.__version__} {_config.BOUNDSCHECK} {_config.OPT} {' '.join(without)}"


def _base_directory() -> Path | None:
    """Return where the directories of all versions are, None if the disk cache is off."""
    chosen = os.environ.get("GIBBSITE_CACHE_DIR", "")
    if chosen.lower() == "off":
        return None
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    place = user_cache_path("gibbsite", appauthor=False)
    return place if place.is_absolute() else Path("/nonexistent/gibbsite")  # no home directory


def _remove_unused(base: Path) -> None:
    """Remove directories of other versions of the package that no process has begun to use for 30 days.

    Every new process updates the modification time of its directory (see the probe above). A process that has been
    running for longer compiles again if its files are missing.
    """
    limit = time.time() - 86400.0 * _UNUSED_DAYS
    with suppress(OSError):
        for directory in base.iterdir():
            if _HASH.fullmatch(directory.name) and directory.stat().st_mtime < limit:
                shutil.rmtree(directory, ignore_errors=True)


def is_kept(function: Callable[..., Any]) -> bool:
    """Tell whether an earlier process has stored compiled code of a function, for any types."""
    directory = cache_directory()
    name = None if directory is None else _file_name(function)
    return directory is not None and name is not None and (directory / f"{name}.nbi").exists()


# A function is decorated by one thread at a time, so that it has one dispatcher.
DECORATING = threading.RLock()


def decorate(function: Callable[P, R], options: dict[str, Any], cache: bool) -> Callable[P, R]:
    """Return a dispatcher of Numba for a function, with or without a disk cache."""
    dispatcher: Any = numba.njit(**options)(function)
    directory = cache_directory() if cache else None
    if directory is not None:
        try_part("files", lambda: _keep_on_disk(dispatcher, function, directory))
    return cast(Callable[P, R], dispatcher)


def _keep_on_disk(dispatcher: Any, function: Callable[..., Any], directory: Path) -> None:
    """Make a dispatcher look for compiled code on disk, and store what it compiles."""
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    result: Any = CompileResult
    if not all(map(callable, (result._reduce, result._rebuild, dispatcher._cache.save_overload))):
        raise TypeError("the parts of Numba's cache are not functions")
    name = _file_name(function)
    if name is not None:
        dispatcher._cache = _FunctionCache(function, directory, name, dumps, result._rebuild)


def _file_name(function: Callable[..., Any]) -> str | None:
    """Return the beginning of the names of the files of a function, None if its source cannot be read.

    For functions of the package, the name of the directory says whether they are up to date. Others are identified by
    the content of the file that defines them and by their line.
    """
    code = function.__code__
    name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
    version = f"py{sys.version_info.major}{sys.version_info.minor}{getattr(sys, 'abiflags', '')}"
    if function.__module__.partition(".")[0] == "gibbsite":
        return f"{name}.{version}"
    try:
        digest = hashlib.blake2b(Path(code.co_filename).read_bytes(), digest_size=8).hexdigest()
    except OSError:
        return None
    return f"{name}-{code.co_firstlineno}-{digest}.{version}"


class _FunctionCache:
    """The cache of one function, from which Numba loads compiled code and to which it saves it.

    An index maps types to files of code. These have unique names, so that processes that fill a cache at the same time
    never load wrong code: at worst, an entry of the index is lost and its code is compiled again.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        directory: Path,
        name: str,
        dumps: Callable[[Any], bytes],
        rebuild: Callable[..., Any],
    ) -> None:
        self.function, self.directory, self.name = function, directory, name
        self.dumps, self.rebuild = dumps, rebuild
        self.index = directory / f"{name}.nbi"
        self.cache_path = str(directory)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the compiled function for a signature, None if the disk has no usable one."""
        target.refresh()
        try:
            name = self._read_index().get(self._key(signature, target.codegen()))
            content = None if name is None else read_checked(self.directory / name)
            if content is None:
                return None
            return self.rebuild(target, *pickle.loads(content))
        except Exception as reason:  # the function is compiled instead
            log.info("compiled code on disk is not used (%r)", reason)
            return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Store a compiled function, unless it contains addresses of this process."""
        if made.library.has_dynamic_globals or not all(each.can_cache for each in made.lifted):
            return
        try:
            self._save(self._key(signature, made.codegen), self.dumps(made._reduce()))
        except Exception as reason:  # a full disk, for example
            log.info("compiled code is not kept on disk (%r)", reason)

    def _save(self, key: Any, content: bytes) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(self.index):
            index = self._read_index()
            if not index:  # the index is new or was damaged, so nothing refers to these files
                for lost in self.directory.glob(f"{self.name}.*.nbc"):
                    lost.unlink(missing_ok=True)
            name = index.get(key)
            place = self.directory / (name or f"{self.name}.{uuid.uuid4().hex}.nbc")
            write_checked(place, content)
            if name is None:
                try:
                    write_checked(self.index, self.dumps({**index, key: place.name}))
                except BaseException:
                    with suppress(OSError):
                        place.unlink()  # no index refers to it
                    raise

    def _read_index(self) -> dict[Any, str]:
        content = read_checked(self.index)
        return {} if content is None else pickle.loads(content)

    def _key(self, signature: Any, generator: Any) -> Any:
        """Return the key of compiled code in the index: types, processor, function and the values of its closure."""
        digest = hashlib.blake2b(self.function.__code__.co_code, digest_size=16)
        if self.function.__closure__ is not None:
            digest.update(self.dumps(tuple(cell.cell_contents for cell in self.function.__closure__)))
        return signature, generator.magic_tuple(), digest.hexdigest()

    def flush(self) -> None:
        """Delete the stored code of the function; Numba calls this when globals of the function have changed."""
        with suppress(OSError):
            self.index.unlink()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time rewrite a file; a process that has waited for a second proceeds without the lock.

    Processes that read an index, add an entry and write it at the same time would lose each other's entries, and with
    them code that took long to compile.
    """
    lock = path.with_suffix(".lock")
    patience = time.monotonic() + 1.0
    while time.monotonic() < patience:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(0.01)
    try:
        yield
    finally:
        with suppress(OSError):  # possibly left by a process that was killed
            lock.unlink()
