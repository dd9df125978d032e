"""In which order sites or blocks are visited, as data.

Every file of this folder is loaded, so that a new scan is one file: :mod:`gibbsite.scan.registry` says what
is derived from its registration, and docs/new_scan.md how to write one.
"""

from typing import TYPE_CHECKING

from gibbsite._discover import load_modules
from gibbsite.scan.base import Scan as Scan
from gibbsite.scan.registry import registered_scans

load_modules(__name__)

if not TYPE_CHECKING:  # type checkers read gibbsite/__init__.pyi
    globals().update({one.scan.__name__: one.scan for one in registered_scans()})
    __all__ = ["Scan", *(one.scan.__name__ for one in registered_scans())]
