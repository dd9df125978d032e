"""In which order sites or blocks are visited, as data.

Every file of this folder is loaded, so that a new scan is one file: :mod:`gibbsite.scans.registry` says what
is derived from its registration, and docs/new_scan.md how to write one.
"""

from gibbsite._common.public_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __spec__.loader)
