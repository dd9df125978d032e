"""Parts of Numba that are not public: each is tried once, and can be done without.

===========  ====================================================  ===========================================
part         what for                                              without it
===========  ====================================================  ===========================================
``helpers``  helpers without machine code (:mod:`.lean`)           Numba's pipeline: slower to compile
``runtime``  option ``_nrt``: loops without reference counting     counted: slower to compile and to run
``stack``    arrays on the stack of a compiled function            allocated, and ``runtime`` is not used
``files``    the cache of a dispatcher, and compiled code as bytes  nothing is kept on disk
``blas``     ``import numba`` without ``scipy.linalg``             0.25 s more
``vectors``  what the processor can do, for vector instructions    plain loops: slower
``events``   to be told when something is compiled                 budgets include it, and nobody is told
===========  ====================================================  ===========================================

A part is missing where trying it raises, or where ``GIBBSITE_WITHOUT`` names it (for tests, or to see whether
one of them is the cause of a fault). Which are missing is logged once each, at level ``INFO``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

log = logging.getLogger("gibbsite")

PARTS = ("helpers", "runtime", "files", "blas", "vectors", "stack", "events")
_missing: dict[str, str] = {}


def try_part(part: str, attempt: Callable[[], object]) -> bool:
    """Tell whether a part of Numba can be used: ``attempt`` is called, and must not raise.

    Examples
    --------
    >>> try_part("blas", lambda: None)
    True
    """
    if part not in PARTS:
        raise ValueError(f"{part!r} is none of the parts {', '.join(PARTS)}.")
    if part not in _missing:
        if part in os.environ.get("GIBBSITE_WITHOUT", "").replace(",", " ").split():
            give_up(part, "GIBBSITE_WITHOUT names it")
        else:
            try:
                attempt()
            except Exception as reason:  # whatever another version of Numba raises
                give_up(part, f"{type(reason).__name__}: {reason}")
    return part not in _missing


def give_up(part: str, reason: str) -> None:
    """Do without a part from now on, and log why."""
    _missing[part] = reason
    log.info("a part of Numba, %s, is not used (%s)", part, reason)


def missing_parts() -> dict[str, str]:
    """Return the parts that are done without so far, with reasons.

    Examples
    --------
    >>> set(missing_parts()) <= set(PARTS)
    True
    """
    return dict(_missing)
