"""The options for compiling functions."""

from __future__ import annotations

from typing import Any

import numba
from gibbsite._numba.lean import lean_options
from gibbsite._numba.parts import try_part


def _switch_off_runtime() -> None:
    from numba.core import compiler
    from numba.core.registry import cpu_target

    options: Any = cpu_target.options
    make_flags: Any = compiler.Flags
    flags = make_flags()
    options.parse_as_flags(flags, {"_nrt": False})
    if flags.nrt:
        raise ValueError("_nrt has no effect")


def _find_templates() -> None:
    from numba.core.typing import templates

    found: Any = templates
    if not all(map(callable, (found.make_intrinsic_template, found.infer, found.infer_global))):
        raise TypeError("templates are not functions")


_config: Any = numba.config
DISABLED: bool = bool(_config.DISABLE_JIT)

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Functions that only Python calls need no wrapper for calls from C.
FROM_PYTHON: dict[str, Any] = {"no_cfunc_wrapper": True}
# Without Numba's runtime, compiled code can neither allocate nor count references. With it, a sweep that passes tuples
# of arrays to its step would do several atomic operations per update, which makes it three times slower and doubles the
# compile time.
LEAN: dict[str, Any] = {**OPTIONS}
# Arrays that are not on the stack need reference counting.
ON_STACK: bool = not DISABLED and try_part("stack", _find_templates)
if ON_STACK and try_part("runtime", _switch_off_runtime):
    LEAN["_nrt"] = False
HELPER, LOOP = ({}, {}) if DISABLED else lean_options()
