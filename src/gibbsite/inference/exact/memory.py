"""The memory that this process may still use, limited by the machine, by containers and by ``ulimit``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_UNKNOWN = 4 * 2**30  # bytes, if no limit is known
_GROUPS = Path("/sys/fs/cgroup")


def usable_memory() -> int:
    """Return the bytes of memory that this process may use now.

    That is the minimum over the machine, the control groups of the process (containers, batch systems), and its own
    limits (``ulimit``).
    """
    known = [*_of_machine(), *_of_groups(), *_of_process()]
    return max(min(known, default=_UNKNOWN), 0)


def _of_machine() -> Iterator[int]:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024


def _of_groups() -> Iterator[int]:
    """Yield the memory left in each control group of the process, for both versions of control groups."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers in ("", "memory"):
                yield from _along(_GROUPS / controllers, place)


def _along(root: Path, place: str) -> Iterator[int]:
    """Yield the memory left in a group and its parents; inside a container the outer groups are not visible."""
    inner = root / place.lstrip("/")
    for folder in [inner, *inner.parents]:
        yield from _left_in(folder)
        if folder == root:
            return


def _left_in(folder: Path) -> Iterator[int]:
    """Yield the memory left in a group with a limit; memory that only caches files can be reclaimed."""
    for limit, used, dropped in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        with suppress(OSError, ValueError):  # a limit may be the word "max"
            most, now = (int((folder / name).read_text(encoding="ascii")) for name in (limit, used))
            rows = [line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines()]
            yield most - now + sum(int(row[1]) for row in rows if row[0] == dropped)


def _of_process() -> Iterator[int]:
    """Yield the memory left by the limits on address space and data of this process."""
    try:
        import resource
    except ImportError:  # Windows
        return
    taken = {}
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name in ("VmSize", "VmData"):
                taken[name] = int(rest.split()[0]) * 1024
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit - taken.get(name, 0)
