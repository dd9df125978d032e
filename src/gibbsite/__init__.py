"""Gibbs sampling on graphical models: one interface for the whole toolbox.

>>> import gibbsite as gs
>>> model = gs.ising_grid((10, 10), coupling=0.2)
>>> result = gs.sample(model, gs.Gibbs(), sweeps=1000, rng=1, progress=False)
>>> 0.4 < result.marginals["0"][1] < 0.6
True

The public names are listed in ``__init__.pyi``, beside this file, and nowhere else. They are loaded when
first used, so that importing gibbsite costs next to nothing.
"""

import os
from typing import Any


def _read_stub() -> dict[str, str]:
    """Return the module of each name of the stub, in which every import is on a line of its own."""
    loader = __spec__.loader  # it also reads packages that are not unpacked
    text = loader.get_data(os.path.join(os.path.dirname(__file__), "__init__.pyi")).decode()
    lines = [line.split() for line in text.splitlines() if line.startswith("from ")]
    return {words[3]: words[1] for words in lines}


_MODULE_OF = _read_stub()

__all__ = sorted(name for name, module in _MODULE_OF.items() if module != __name__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from gibbsite.run.plan import package_version

        return package_version()
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'gibbsite' has no attribute {name!r}")
    from gibbsite._discover import LOADING, import_downwards, load_for_threads

    load_for_threads()
    with LOADING:
        if _MODULE_OF[name] == __name__:
            return import_downwards(f"gibbsite.{name}")
        return getattr(import_downwards(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*_MODULE_OF, "__version__", *(name for name in globals() if name.startswith("__"))})
