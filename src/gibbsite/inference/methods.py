"""The methods of :func:`gibbsite.infer`: what they answer, and which arguments they take.

The command line reads its choices here, so methods are imported when they are used.
"""

from __future__ import annotations

import sys
from typing import Any

from gibbsite._common.loading import read_declarations

TASKS = ("MAR", "MAP", "PR", "MMAP")
_DECLARED = [one for one in read_declarations("kernels") if "methods" in one]
#: What each method of weighted draws answers.
WEIGHTED: dict[str, tuple[str, ...]] = {
    one["method"]: one["tasks"] for one in read_declarations("inference/importance") if "method" in one
}
#: What each method answers; what :func:`solve` does not name samples, with the kernel registered for it.
METHODS: dict[str, tuple[str, ...]] = {
    "auto": TASKS,
    "exact": TASKS,
    **{name: tasks for one in _DECLARED for name, tasks in one["methods"].items()},
    **WEIGHTED,
    "mean-field": ("MAR", "PR"),
    "bp": ("MAR", "MAP", "PR"),
    "proved": ("MAP",),
}
#: The kernel, and its parameters, of each method that samples. "annealed" is a search of its own; its kernel
#: is named here for messages.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (one["class"], one.get("arguments", {}).get(name, {})) for one in _DECLARED for name in one["methods"]
}
_BUDGET = ("seconds", "sweeps")
_SEARCH = (*_BUDGET, "chains", "rng", "start", "scan", "threads")
OF_WEIGHTED = ("seconds", "draws", "rng", "threads")
SAMPLING = (*_SEARCH, "warmup", "record", "checkpoint", "on", "dispersed_starts")
#: What each method takes besides accuracy, best and progress; what is not named here samples, and so does any
#: kernel. With "auto", what is about sampling says what to do if an exact solution does not fit.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "annealed": (*_SEARCH, "checkpoint"),
    "proved": (*_SEARCH, "checkpoint"),
    **dict.fromkeys(WEIGHTED, OF_WEIGHTED),
    "mean-field": (*_BUDGET, "parallel", "damping", "start", "tolerance", "rng"),
    "bp": (*_BUDGET, "kind", "schedule", "damping", "weight", "tolerance"),
}
# What "auto" does where an exact solution does not fit.
OTHERWISE = {"MAR": "gibbs", "MAP": "annealed", "PR": "tempered", "MMAP": "annealed"}
# Arguments that say nothing about how to sample: with no others, "auto" tries several methods.
OF_ANY_METHOD = {"seconds", "rng", "threads"}
DEFAULT_SECONDS = 10.0


def known_methods() -> dict[str, tuple[str, ...]]:
    """Return what each method answers, those of kernels that users have registered included."""
    registry = sys.modules.get("gibbsite.kernels.registry")
    own = () if registry is None else registry.loaded_kernels()
    more = {name: tasks for one in own for name, tasks in one.methods.items() if name not in METHODS}
    return {**METHODS, **more}


def is_weighted(method: Any) -> bool:
    """Whether a method draws from a proposal, and weighs."""
    if isinstance(method, str):
        return method in WEIGHTED
    from gibbsite.inference.importance import ImportanceProposal

    return isinstance(method, ImportanceProposal)
