"""The key of the disk cache: a hash of all sources that compiled code depends on.

Compiled code consists of functions of the modules that import from :mod:`gibbsite._numba`, and of constants that these
import from other modules. An implementation registered in any of them may be chosen in any loop, so all loops share one
key: a hash of these modules and, transitively, of the modules of the package that they import at the top level. The
command line, reports and most formats, for example, do not contribute.

Docstrings, comments and blank lines are removed by regular expressions that are fast but not exact.
``tests/numba/test_sources.py`` uses Python's parser, which would take seconds here, to check that they change nothing
else in any file of the package and that all modules are found.

The key depends on the content of the files, never on their modification times: a later process reads all files, which
takes ten milliseconds, and looks up the key of this content beside the caches. The key is computed only for new
content.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from gibbsite._numba.files import read_checked, write_checked

# A triple-quoted string that is a statement. Possessive quantifiers avoid catastrophic backtracking.
_DOCSTRING = re.compile(r'^([ \t]*)[rR]?"""(?:[^\\"]++|\\.|"(?!""))*+"""[ \t]*$', re.MULTILINE | re.DOTALL)
_COMMENT_LINE = re.compile(r"^[ \t]*#[^\n]*\n", re.MULTILINE)
# A comment after code. It must not contain quotes, so that a string is never mistaken for a comment.
_COMMENT = re.compile(r"[ \t]+#[^\n\"']*$", re.MULTILINE)
_BLANK = re.compile(r"\n(?:[ \t]*\n)+")
# Imports at the beginning of a line, which excludes those inside functions or for type checkers only.
_FROM = re.compile(r"^from (gibbsite[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^import (gibbsite[\w.]*)", re.MULTILINE)
_NAME = re.compile(r"\w+")
_COMPILER = "gibbsite._numba"


def code_of(text: str) -> str:
    r"""Return Python source without docstrings (which become empty), comments and blank lines."""
    text = _DOCSTRING.sub(r'\1""""""', text)
    text = _COMMENT.sub("", _COMMENT_LINE.sub("", text))
    return _BLANK.sub("\n", text)


def imports_of(text: str) -> list[str]:
    r"""Return names that may be modules of the package that a source imports at the top level."""
    found = set(_IMPORT.findall(text))
    for module, names in _FROM.findall(text):
        found.add(module)
        found.update(f"{module}.{name}" for name in _NAME.findall(names))
    return sorted(found)


def _compiles(module: str) -> bool:
    """Tell whether a module that imports this one may compile functions; random numbers alone do not count."""
    return module.startswith(_COMPILER) and not module.startswith(f"{_COMPILER}.random")


def contributing(imports: dict[str, list[str]]) -> list[str]:
    """Return the modules that contribute to compiled code, given what every module imports."""
    found: set[str] = set()
    ahead = [
        name
        for name, each in imports.items()
        if name.startswith(f"{_COMPILER}.") or any(_compiles(other) for other in each)
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
        The folder in which the key of this content is kept.
    salt : str
        Settings that the key depends on besides the sources.
    """
    texts = {name: Path(path).read_bytes() for name, path in _python_files(str(root), "gibbsite")}
    content = _digest(salt.encode(), *(part for name in sorted(texts) for part in (name.encode(), texts[name])))
    place = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
    kept = None if base is None else base / f"sources-{place}"
    known = None if kept is None else read_checked(kept)
    if known is not None and known.startswith(content):
        return known[len(content) :].decode()
    key = _find_key(texts, salt)
    if kept is not None:
        with suppress(OSError):
            write_checked(kept, content + key.encode())
    return key


def _find_key(texts: dict[str, bytes], salt: str) -> str:
    """Return the hash of the code that compiled functions depend on, given the sources of all modules."""
    sources = {name: text.decode().replace("\r\n", "\n") for name, text in texts.items()}
    digest = hashlib.blake2b(salt.encode(), digest_size=8)
    for name in contributing({name: imports_of(text) for name, text in sources.items()}):
        digest.update(f"{name} {_digest(code_of(sources[name]).encode()).hex()}\n".encode())
    return digest.hexdigest()


def _digest(*parts: bytes) -> bytes:
    """Return a hash of texts that also depends on their lengths."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _python_files(folder: str, package: str) -> list[tuple[str, str]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    found += _python_files(entry.path, f"{package}.{entry.name}")
            elif entry.name == "__init__.py":
                found.append((package, entry.path))
            elif entry.name.endswith(".py"):
                found.append((f"{package}.{entry.name[:-3]}", entry.path))
    return found
