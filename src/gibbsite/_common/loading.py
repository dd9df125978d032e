"""Find the registrations in the files of a package, by loading the files or by reading their source.

Registries know kernels, scans, graph kinds and formats without loading them, which would take most of a second.
Registrations are therefore written as literals and read from the source.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

#: Held while public names are loaded: threads that load modules of one package at the same time could
#: deadlock, because Python locks a module before it loads the package of the module.
LOADING = threading.RLock()
_APART = ("applications", "cli", "lab", "testing", "__main__")
_ROOT = Path(__file__).parent.parent
_loaded_all = False


def load_modules(package: str) -> None:
    """Import the modules of a package and of its subpackages."""
    for found in pkgutil.iter_modules(sys.modules[package].__path__):
        name = f"{package}.{found.name}"
        importlib.import_module(name)
        if found.ispkg:
            load_modules(name)


def import_downwards(name: str) -> Any:
    """Import a module after the packages that contain it; see :data:`LOADING`."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        importlib.import_module(".".join(parts[:length]))
    return importlib.import_module(name)


def load_for_threads() -> None:
    """Load all lazily loaded modules, unless this is the main thread.

    Otherwise functions that run in several threads would load modules at the same time. This takes half a second in the
    first thread. Packages that no other package loads, such as the command line, are left out.
    """
    global _loaded_all
    if _loaded_all or threading.current_thread() is threading.main_thread():
        return
    with LOADING:
        if not _loaded_all:
            for path in sorted(_ROOT.rglob("*.py")):
                parts = path.relative_to(_ROOT).with_suffix("").parts
                if parts[0] not in _APART and parts[-1] != "__init__":
                    with suppress(ImportError):  # of optional dependencies
                        import_downwards(".".join(("gibbsite", *parts)))
            _loaded_all = True


@cache
def read_declarations(folder: str, call: str = "@register") -> tuple[dict[str, Any], ...]:
    """Return the arguments of a decorator, or another call, in the files of a folder, without loading them.

    Arguments that are not literals are left out; "class" is the registered class, "module" its module.
    """
    found = []
    for path in sorted((_ROOT / folder).rglob("*.py")):
        module = ".".join(("gibbsite", *path.relative_to(_ROOT).with_suffix("").parts)).removesuffix(".__init__")
        calls = path.read_text(encoding="utf-8").split(f"\n{call}(")[1:]
        found += [{**_read_call(text), "module": module} for text in calls]
    return tuple(found)


def _read_call(text: str) -> dict[str, Any]:
    """Return the literal arguments of a call, given what follows its opening bracket."""
    end = -1
    while True:  # the first bracket that closes the call; others are in its arguments
        end = text.index(")", end + 1)
        try:
            call: Any = ast.parse(f"register({text[: end + 1]}", mode="eval").body
        except SyntaxError:
            continue
        given = {one.arg: value for one in call.keywords if (value := _literal(one.value)) is not ...}
        named = re.match(r"(?:\s*@[^\n]*)*\s*class (\w+)", text[end + 1 :])
        return {**given, "class": named[1]} if named else given


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ...
