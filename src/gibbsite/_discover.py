"""Load every module of a package, so that what they register is known wherever the package is."""

from __future__ import annotations

import importlib
import pkgutil
import sys


def load_modules(package: str) -> None:
    """Import the modules of a package, and of the packages in it.

    Examples
    --------
    >>> load_modules("gibbsite.scan")
    """
    for found in pkgutil.iter_modules(sys.modules[package].__path__):
        importlib.import_module(f"{package}.{found.name}")
