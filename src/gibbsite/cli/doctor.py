"""``gibbsite doctor``: what is installed, where compiled code is kept, and what is missing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import click

from gibbsite.cli.help import Command
from gibbsite.cli.outputs import echo

_CORE = ("numpy", "numba", "llvmlite", "scipy", "xarray", "click", "rich", "platformdirs")


@click.command("doctor", cls=Command, examples=("gibbsite doctor", "gibbsite doctor > report.txt"))
def command() -> None:
    """Show versions, the cache of compiled code, threads, settings, missing extras, and private parts of Numba in use.

    Add its output to a bug report.
    """
    for title, lines in (
        ("versions", _versions()),
        ("processor", _processor()),
        ("cache of compiled code", _cache()),
        ("settings", _settings()),
        ("extras", _extras()),
        ("private parts of Numba", _parts()),
    ):
        echo(title)
        for line in lines:
            echo(f"  {line}")


def _versions() -> Iterator[str]:
    from gibbsite.sampling.plan import package_version

    yield f"gibbsite {package_version()}, Python {platform.python_version()}, {platform.platform()}"
    yield ", ".join(f"{name} {_version_of(name) or 'missing'}" for name in _CORE)


def _version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> Iterator[str]:
    from gibbsite._numba.parts import describe_processor
    from gibbsite.sampling.executor import usable_cores

    yield describe_processor()
    yield f"threads used by default: {usable_cores()}"


def _cache() -> Iterator[str]:
    from gibbsite._numba.jit import cache_directory

    place = cache_directory()
    if place is None:
        yield "off, or in no folder that can be used: every process compiles; GIBBSITE_CACHE_DIR can name another"
        return
    files = [path for path in Path(place).rglob("*") if path.is_file()]
    yield f"{place}: {len(files):,} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"
    yield "gibbsite warmup compiles everything now"


def _settings() -> Iterator[str]:
    """Show the variables of the environment that change what is compiled and where it is kept."""
    names = sorted(name for name in os.environ if name.startswith(("GIBBSITE_", "NUMBA_")))
    yield from (f"{name}={os.environ[name]}" for name in names)
    if not names:
        yield "no variable GIBBSITE_... or NUMBA_... is set"


def _extras() -> Iterator[str]:
    """Say of each extra whether everything that it needs is installed."""
    needs: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("gibbsite") or ():
        name, _, marker = line.partition(";")
        named = re.search(r"extra == ['\"](.+?)['\"]", marker)
        package = re.match(r"[\w.-]+", name.strip())
        if named and package and package[0] != "gibbsite":
            needs.setdefault(named[1], []).append(package[0])
    for extra, packages in sorted(needs.items()):
        missing = [name for name in packages if _version_of(name) is None]
        yield f"{extra}: " + (f"missing {', '.join(missing)}" if missing else "installed")


def _parts() -> Iterator[str]:
    from gibbsite._numba.lean import lean_options
    from gibbsite._numba.parts import PARTS, missing_parts

    lean_options()
    missing = missing_parts()
    for part in PARTS:
        yield f"{part}: " + (f"not used ({missing[part]})" if part in missing else "used")
