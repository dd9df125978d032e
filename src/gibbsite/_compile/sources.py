"""Which sources compiled code depends on, as one hash: the key of the disk cache.

Compiled code is made of functions of the modules that import from :mod:`gibbsite._compile`, and of constants
that these import from other modules. An implementation registered in any of them may be chosen in any loop,
so all loops have one key: a hash of all those modules and, transitively, of the modules of the package that
they import at the top level. Not among them are, for example, the command line, reports and most formats.

Docstrings, comments and blank lines are left out, by expressions that are fast rather than exact. That they
change nothing else in any file of the package, and that the modules are found, is checked by
``tests/compile/test_sources.py`` with Python's own parser, which would take seconds here.

What is known of a file is kept beside the caches with its size and time, so a later process reads none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# A string in three quotes that is a statement of its own. Possessive: others would be looked at in all ways.
_DOCSTRING = re.compile(r'^([ \t]*)[rR]?"""(?:[^\\"]++|\\.|"(?!""))*+"""[ \t]*$', re.MULTILINE | re.DOTALL)
_COMMENT_LINE = re.compile(r"^[ \t]*#[^\n]*\n", re.MULTILINE)
# Behind code: no quotes, so that a string is never taken for a comment.
_COMMENT = re.compile(r"[ \t]+#[^\n\"']*$", re.MULTILINE)
_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
# At the beginning of a line: neither for type checkers alone nor inside of functions.
_FROM = re.compile(r"^from (gibbsite[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^import (gibbsite[\w.]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")
_COMPILER = "gibbsite._compile"


class Source(NamedTuple):
    """What is known of a file: its time and size, a hash of its code, and what it imports.

    ``imports`` may have names that are no modules.
    """

    time: int
    size: int
    digest: str
    imports: list[str]


def code_of(text: str) -> str:
    r"""Return Python source without docstrings (which become empty), comments and blank lines.

    Examples
    --------
    >>> code_of("def two():\n\n    # why\n    return 2  # because\n")
    'def two():\n    return 2\n'
    """
    text = _DOCSTRING.sub(r'\1""""""', text)
    text = _COMMENT.sub("", _COMMENT_LINE.sub("", text))
    return _BLANK.sub("\n", text)


def imports_of(text: str) -> list[str]:
    r"""Return names that may be modules of the package that a source imports at the top level.

    Examples
    --------
    >>> imports_of("from gibbsite.graph import rows\n")
    ['gibbsite.graph', 'gibbsite.graph.rows']
    """
    found = set(_IMPORT.findall(text))
    for module, names in _FROM.findall(text):
        found.add(module)
        found.update(f"{module}.{name}" for name in _NAME.findall(names))
    return sorted(found)


def contributing(imports: dict[str, list[str]]) -> list[str]:
    """Return the modules that contribute to compiled code, given what every module imports.

    Examples
    --------
    >>> loop = ["gibbsite._compile.jit", "gibbsite.constants"]
    >>> contributing({"gibbsite.loop": loop, "gibbsite.constants": [], "gibbsite.cli": ["gibbsite.loop"]})
    ['gibbsite.constants', 'gibbsite.loop']
    """
    found: set[str] = set()
    ahead = [
        name
        for name, each in imports.items()
        if name.startswith(f"{_COMPILER}.") or any(other.startswith(_COMPILER) for other in each)
    ]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += [other for other in imports[name] if other in imports]
    return sorted(found)


def hash_sources(root: Path, base: Path | None, salt: str) -> str:
    """Return the hash of all code that compiled functions depend on.

    Parameters
    ----------
    root : Path
        The folder of the package.
    base : Path, optional
        Where to keep what is known of the files.
    salt : str
        What else the key depends on.

    Examples
    --------
    >>> import gibbsite
    >>> len(hash_sources(Path(gibbsite.__file__).parent, None, "0.68"))
    16
    """
    sources = _read_all(root, base)
    digest = hashlib.blake2b(salt.encode(), digest_size=8)
    for name in contributing({name: source.imports for name, source in sources.items()}):
        digest.update(f"{name} {sources[name].digest}\n".encode())
    return digest.hexdigest()


def _read_all(root: Path, base: Path | None) -> dict[str, Source]:
    """Return what is known of all files, by the names of modules; read those that are new."""
    place = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    kept = None if base is None else base / f"sources-{place}.json"
    known: dict[str, Source] = {}
    if kept is not None:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            known = {name: Source(*source) for name, source in json.loads(kept.read_text()).items()}
    found: dict[str, Source] = {}
    for name, entry in _python_files(str(root), "gibbsite"):
        status = entry.stat()
        source = known.get(name)
        if source is None or (source.time, source.size) != (status.st_mtime_ns, status.st_size):
            text = Path(entry.path).read_text(encoding="utf-8")
            digest = hashlib.blake2b(code_of(text).encode(), digest_size=16).hexdigest()
            source = Source(status.st_mtime_ns, status.st_size, digest, imports_of(text))
        found[name] = source
    if kept is not None and found != known:
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            fresh = kept.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(found))
            fresh.replace(kept)
    return found


def _python_files(folder: str, package: str) -> list[tuple[str, os.DirEntry[str]]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    found += _python_files(entry.path, f"{package}.{entry.name}")
            elif entry.name == "__init__.py":
                found.append((package, entry))
            elif entry.name.endswith(".py"):
                found.append((f"{package}.{entry.name[:-3]}", entry))
    return found
