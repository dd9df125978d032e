"""Private parts of Numba that gibbsite uses: each is tried once and has a fallback.

===========  ==================================================  ===========================================
part         purpose                                             without it
===========  ==================================================  ===========================================
``helpers``  helpers without machine code (:mod:`.lean`)         1.2 to 1.4 s more at a first call
``runtime``  option ``_nrt``: loops without reference counting   an update of a table model takes five times as long
``stack``    arrays on the stack of a compiled function          they are allocated, and ``runtime`` is not used
``files``    compiled code as bytes, in the cache on disk        every process compiles: 2.3 s instead of 0.6 s
``vectors``  vector instructions that the processor offers       an update of many chains takes twice as long
``events``   notifications when something is compiled            time limits include compiling, without a message
===========  ==================================================  ===========================================

The figures are those of docs/design.md. A part is missing if trying it raises an exception, or if the environment
variable ``GIBBSITE_WITHOUT`` names it, for tests and for debugging. Each missing part is logged once, at level
``INFO``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

log = logging.getLogger("gibbsite")

PARTS = ("helpers", "runtime", "files", "vectors", "stack", "events")
_missing: dict[str, str] = {}


def try_part(part: str, attempt: Callable[[], object]) -> bool:
    """Tell whether a part of Numba can be used, that is, whether calling ``attempt`` raises no exception."""
    if part not in PARTS:
        raise ValueError(f"{part!r} is not one of the parts {', '.join(PARTS)}.")
    if part not in _missing:
        if part in os.environ.get("GIBBSITE_WITHOUT", "").replace(",", " ").split():
            give_up(part, "GIBBSITE_WITHOUT names it")
        else:
            try:
                attempt()
            except Exception as reason:  # other versions of Numba may raise anything
                give_up(part, f"{type(reason).__name__}: {reason}")
    return part not in _missing


def give_up(part: str, reason: str) -> None:
    """Switch a part off, and log the reason."""
    _missing[part] = reason
    log.info("a part of Numba, %s, is not used (%s)", part, reason)


def missing_parts() -> dict[str, str]:
    """Return the parts that are not used, with the reasons."""
    return dict(_missing)


def describe_processor() -> str:
    """Return the name and the vector instructions of the processor for which code is compiled."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    wide = [name for name in ("avx2", "avx512f", "neon", "sve") if features.get(name)]
    return f"{binding.get_host_cpu_name()}, vector instructions: {', '.join(wide) or 'none'}"
