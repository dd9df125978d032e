"""The order in which sites or blocks are visited, as data.

A scan is one file, which registers it (:mod:`gibbsite.scans.registry`); docs/new_scan.md describes how to write one.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
