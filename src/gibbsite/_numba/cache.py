"""The disk cache of compiled code.

It lives in a directory of our own whose name contains a hash of all code that compiled functions depend on
(:mod:`.sources`). Numba's own cache looks only at the file that *defines* a function, so that a changed
callee in another file would keep running in its old form. Kernels defined outside the package are compiled
without disk cache for the same reason.

The directory must belong to the user and not be writable for others, because whoever can write compiled code
can run code as its reader; otherwise it is not used, and one line says so. Every file has a checksum that is
verified before anything is unpickled or loaded (:mod:`.files`). Nothing about the cache ever raises: where it
cannot be read, the function is compiled, and where it cannot be written, nothing is left behind.

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
_HASH = re.compile(r"[0-9a-f]{16}")  # names of directories that are ours
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
    """Return what compiled code depends on besides the sources of the package."""
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
    return place if place.is_absolute() else Path("/nonexistent/gibbsite")  # there is no home


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


def is_kept(function: Callable[..., Any]) -> bool:
    """Tell whether an earlier process has compiled a function and kept it, for whatever types."""
    directory = cache_directory()
    name = None if directory is None else _file_name(function)
    return directory is not None and name is not None and (directory / f"{name}.nbi").exists()


# A function is decorated by one thread at a time, so that there is one dispatcher of it.
DECORATING = threading.RLock()


def decorate(function: Callable[P, R], options: dict[str, Any], cache: bool) -> Callable[P, R]:
    """Return a dispatcher of Numba for a function, with or without a disk cache."""
    dispatcher: Any = numba.njit(**options)(function)
    directory = cache_directory() if cache else None
    if directory is not None:
        try_part("files", lambda: _keep_on_disk(dispatcher, function, directory))
    return cast(Callable[P, R], dispatcher)


def _keep_on_disk(dispatcher: Any, function: Callable[..., Any], directory: Path) -> None:
    """Let a dispatcher look for compiled code on disk, and keep there what it compiles."""
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps

    result: Any = CompileResult
    if not all(map(callable, (result._reduce, result._rebuild, dispatcher._cache.save_overload))):
        raise TypeError("the parts of Numba's cache are no functions")
    name = _file_name(function)
    if name is not None:
        dispatcher._cache = _FunctionCache(function, directory, name, dumps, result._rebuild)


def _file_name(function: Callable[..., Any]) -> str | None:
    """Return the beginning of the names of the files of a function, None if its source cannot be read.

    For functions of the package, the name of the directory says whether they are up to date. Others are told
    apart by the content of the file that defines them, and by their line in it.
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
    """What Numba asks for a function that has been compiled before, and tells what it has compiled.

    An index says which file has the code for which types. Files of code have names that no other process
    gives, so that processes that fill one cache at the same time do not load each other's code for their own:
    the worst that can happen is that an entry of the index is lost, and compiled again.
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
        """Return the compiled function for a signature, None if there is none that can be used."""
        target.refresh()
        try:
            name = self._read_index().get(self._key(signature, target.codegen()))
            content = None if name is None else read_checked(self.directory / name)
            if content is None:
                return None
            return self.rebuild(target, *pickle.loads(content))
        except Exception as reason:  # whatever cannot be loaded is compiled
            log.info("compiled code on disk is not used (%r)", reason)
            return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep a compiled function, unless it has addresses of this process in it."""
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
            if not index:  # it is new, or was damaged, and then nothing mentions these files any more
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
                        place.unlink()  # no index mentions it
                    raise

    def _read_index(self) -> dict[Any, str]:
        content = read_checked(self.index)
        return {} if content is None else pickle.loads(content)

    def _key(self, signature: Any, generator: Any) -> Any:
        """Return what an index knows compiled code by: types, processor, function and what it encloses."""
        digest = hashlib.blake2b(self.function.__code__.co_code, digest_size=16)
        if self.function.__closure__ is not None:
            digest.update(self.dumps(tuple(cell.cell_contents for cell in self.function.__closure__)))
        return signature, generator.magic_tuple(), digest.hexdigest()

    def flush(self) -> None:
        """Forget what is kept of the function, as Numba asks after a change of its globals."""
        with suppress(OSError):
            self.index.unlink()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time renew a file; one that has waited for a second goes on all the same.

    Processes that read an index, add an entry and write it at the same time would lose each other's entries,
    and with them what they have compiled for long.
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
        with suppress(OSError):  # also one that a process left behind that was killed
            lock.unlink()
