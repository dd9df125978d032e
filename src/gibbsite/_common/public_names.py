"""Public names of a package, listed once in its stub ``__init__.pyi`` and loaded when they are first used."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing, functools and importlib.util take long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def read_stub(package: str, loader: Any) -> dict[str, tuple[str, str]]:
    """Return the module and the name of each line ``from MODULE import NAME as NAME`` of a stub."""
    # the loader can also read packages inside a zip file
    folder = os.path.dirname(loader.get_filename(package))
    text = loader.get_data(os.path.join(folder, "__init__.pyi")).decode()
    lines = [line.split() for line in text.splitlines() if line.startswith("from ")]
    return {words[5]: (words[1], words[3]) for words in lines}


def attach_stub(package: str, loader: Any) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that has a stub."""
    places = read_stub(package, loader)

    def find(name: str) -> Any:
        if name.startswith("__") or name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib.util import find_spec

        from gibbsite._common.loading import LOADING, import_downwards, load_for_threads

        module, inner = places[name]
        load_for_threads()
        with LOADING:
            home = import_downwards(module)
            if inner not in vars(home) and hasattr(home, "__path__") and find_spec(f"{module}.{inner}"):
                value = import_downwards(f"{module}.{inner}")
            else:
                value = getattr(home, inner)
        setattr(sys.modules[package], name, value)  # later uses do not call this function
        return value

    def names() -> list[str]:
        own = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*places, *own})

    return find, names, sorted(places)


def public_place(name: str) -> str:
    """Return the public name of a kernel or scan, without the leading ``gs.``.

    Examples
    --------
    >>> public_place("Gibbs"), public_place("PoissonMH")
    ('Gibbs', 'kernels.PoissonMH')
    """
    from importlib.util import find_spec

    for space in ("", "kernels", "scans"):
        package = f"gibbsite.{space}".rstrip(".")
        spec = find_spec(package)
        if spec is not None and name in read_stub(package, spec.loader):
            return f"{space}.{name}".lstrip(".")
    return name
