"""The methods of :func:`gibbsite.infer`: their tasks and arguments, and checks of these.

The command line reads its choices here, so methods are imported when they are used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gibbsite._common.loading import read_declarations
from gibbsite._common.wording import Text, argument, in_python, unknown
from gibbsite.errors import ArgumentError, IncompatibleError

if TYPE_CHECKING:
    from gibbsite.inference.importance import ImportanceProposal
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph


TASKS = ("MAR", "MAP", "PR", "MMAP")
_DECLARED = [one for one in read_declarations("kernels") if "methods" in one]
#: Tasks of each method of weighted draws.
WEIGHTED: dict[str, tuple[str, ...]] = {
    one["method"]: one["tasks"] for one in read_declarations("inference/importance") if "method" in one
}
#: Tasks of each method; methods that :func:`solve` does not name sample with the kernel registered for them.
METHODS: dict[str, tuple[str, ...]] = {
    "auto": TASKS,
    "exact": TASKS,
    **{name: tasks for one in _DECLARED for name, tasks in one["methods"].items()},
    **WEIGHTED,
    "mean-field": ("MAR", "PR"),
    "bp": ("MAR", "MAP", "PR"),
    "proved": ("MAP",),
}
#: The kernel, and its parameters, of each method that samples. "annealed" is a search; its kernel is used in messages
#: only.
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (one["class"], one.get("arguments", {}).get(name, {})) for one in _DECLARED for name in one["methods"]
}
_BUDGET = ("seconds", "sweeps")
_SEARCH = (*_BUDGET, "chains", "rng", "start", "scan", "threads")
OF_WEIGHTED = ("seconds", "draws", "rng", "threads")
SAMPLING = (*_SEARCH, "warmup", "record", "checkpoint", "on", "dispersed_starts")
#: Arguments of each method besides criteria, best and progress. Methods that are not named here sample, and so does any
#: kernel. With "auto", arguments of sampling apply if an exact solution does not fit.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "exact": (),
    "annealed": (*_SEARCH, "checkpoint"),
    "proved": (*_SEARCH, "checkpoint"),
    **dict.fromkeys(WEIGHTED, OF_WEIGHTED),
    "mean-field": (*_BUDGET, "parallel", "damping", "start", "tolerance", "rng"),
    "bp": (*_BUDGET, "kind", "schedule", "damping", "weight", "tolerance"),
}
# The methods that "auto" uses if an exact solution does not fit.
OTHERWISE = {"MAR": "gibbs", "MAP": "annealed", "PR": "tempered", "MMAP": "annealed"}
# Arguments that do not concern how to sample: with no others, "auto" tries several methods.
OF_ANY_METHOD = {"seconds", "rng", "threads"}
DEFAULT_SECONDS = 10.0


def known_methods() -> dict[str, tuple[str, ...]]:
    """Return the tasks of each method, including those of kernels that users have registered."""
    registry = sys.modules.get("gibbsite.kernels.registry")
    own = () if registry is None else registry.loaded_kernels()
    more = {name: tasks for one in own for name, tasks in one.methods.items() if name not in METHODS}
    return {**METHODS, **more}


def is_weighted(method: Any) -> bool:
    """Tell whether a method uses weighted draws."""
    if isinstance(method, str):
        return method in WEIGHTED
    from gibbsite.inference.importance import ImportanceProposal

    return isinstance(method, ImportanceProposal)


def check_arguments(
    model: FactorGraph, task: str, method: str | Kernel | ImportanceProposal, given: dict[str, Any], progress: Any
) -> None:
    """Refuse unknown arguments and those that the method does not use; check values before any work is done.

    Sampling, searching and mean field check their values themselves, but an exact solution may come first.
    """
    known = {*SAMPLING, *(name for names in ARGUMENTS.values() for name in names)}
    for name in given:
        if name not in known:
            raise ArgumentError(unknown("argument", name, sorted(known)))
    chosen = OTHERWISE[task] if method == "auto" else method
    takes = ARGUMENTS.get(chosen, SAMPLING) if isinstance(chosen, str) else SAMPLING
    if is_weighted(chosen):
        takes = OF_WEIGHTED
    for name in given:
        if name not in takes:
            raise ArgumentError(_no_use(name, method))
    sweeps = given.get("sweeps")
    if sweeps is not None and "warmup" not in takes:
        from gibbsite.sampling.length import Steps, Sweeps

        if isinstance(sweeps, Sweeps | Steps):
            raise ArgumentError(f"{argument('sweeps')} must be a whole number with {_spell(chosen)}, got {sweeps!r}.")
    if method == "auto":
        from gibbsite.sampling.progress import choose_progress

        choose_progress(progress)
        _check_values(model, given)


def check_exact(exact: Any, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse exact=False except for "auto", the only method to which it applies."""
    if not isinstance(exact, bool):
        raise ArgumentError(f"{argument('exact')} must be True or False, got {exact!r}.")
    if exact or method == "auto":
        return
    if method == "exact":
        raise ArgumentError(
            f"{argument('method', 'exact')} and {argument('exact', False)} contradict each other; give one."
        )
    raise ArgumentError(f"{argument('exact', False)} has no effect with {_spell(method)}; leave it out.")


def _no_use(name: str, method: str | Kernel | ImportanceProposal) -> str:
    """Return the message about an argument that a method does not use."""
    if method in ("auto", "annealed", "proved"):
        return (
            f"{argument(name)} belongs to sampling runs, and this is a search for the best state; leave it "
            f"out, or sample with {argument('method', 'gibbs')}."
        )
    return f"{argument(name)} has no effect with {_spell(method)}; leave it out."


def _spell(method: str | Kernel | ImportanceProposal) -> str:
    return argument("method", method) if isinstance(method, str) else type(method).__name__


def _check_values(model: FactorGraph, given: dict[str, Any]) -> None:
    """Refuse values that a run or a search would refuse."""
    import numpy as np

    from gibbsite._common.arguments import check_integer
    from gibbsite.sampling.checkpoint import read_checkpoint
    from gibbsite.sampling.executor import read_threads
    from gibbsite.sampling.plan import read_entropy
    from gibbsite.sampling.setup import read_length

    read_length(given.get("sweeps"), given.get("seconds"), given.get("warmup"))
    chains = check_integer("chains", given.get("chains", 4), 1)
    read_threads(given.get("threads"))
    read_checkpoint(given.get("checkpoint"))
    if not isinstance(given.get("rng"), np.random.Generator):  # reading a generator would advance it
        read_entropy(given.get("rng"))
    if "scan" in given:
        from gibbsite.inference.sampling import check_parts

        check_parts(model, None, given["scan"])
    if "record" in given:
        from gibbsite.sampling.record import read_recorders

        read_recorders(given["record"])
    if "start" in given:
        from gibbsite.graphs.graph import compile_graph
        from gibbsite.graphs.support.start import start_states

        start_states(model, compile_graph(model), chains, given["start"], 0)


def with_unused(reason: str, given: dict[str, Any]) -> Text:
    """Add the unused arguments to the reason for not sampling; a time limit counts as used."""
    unused = [argument(name) for name in given if name != "seconds"]
    return Text(f"{reason}; {', '.join(unused)} not used" if unused else reason)


def is_stored(model: Any) -> bool:
    """Tell whether a model stays in its files."""
    from gibbsite.models.stored import StoredPairs

    return isinstance(model, StoredPairs)


def _check_stored(task: str, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse tasks and methods that read the whole model: a stored one is sampled from its files."""
    reads, stays = None, "reads the whole model, and a stored one stays in its files"
    if task not in ("MAR", "MAP"):
        reads = argument("task", task)
        instead = f"ask for {argument('task', 'MAR')} or {argument('task', 'MAP')}"
    elif is_weighted(method) or (method in METHODS and method not in KERNELS and method != "auto"):
        reads = _spell(method)
        instead = f"sample it with {argument('method', 'gibbs' if task == 'MAR' else 'annealed')}"
    if reads is not None:
        raise IncompatibleError(f"{reads} {stays}; {instead}{in_python(', or build it with gs.ising or gs.potts')}.")


def read_best(best: Any, task: str, method: str | Kernel | ImportanceProposal, search: bool = True) -> int:
    """Return the number of best states asked for; only a search or an exact solution has more than one."""
    from gibbsite._common.arguments import check_integer

    many = check_integer("best", best, 1)
    if many > 1 and task not in ("MAP", "MMAP"):
        raise ArgumentError(
            f"{argument('best')} is a number of most probable states, and the task is {task}; ask for MAP."
        )
    if many > 1 and not search:
        raise ArgumentError(f"{argument('best', many)} is not possible for stored models: a run keeps one best state.")
    if many > 1 and method not in ("exact", "annealed"):
        name = method if isinstance(method, str) else type(method).__name__
        raise ArgumentError(
            f"method {name!r} gives one best state; choose exact or annealed for {argument('best', many)}."
        )
    return many


def check_model(model: Any, task: str, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse models of numbers, except for their means by a kernel, and what stored models cannot answer."""
    from gibbsite.models import FactorGraph, Model

    if is_stored(model):
        _check_stored(task, method)
        return
    if isinstance(model, FactorGraph) or (isinstance(model, Model) and task == "MAR" and method not in known_methods()):
        return
    raise IncompatibleError(
        f"infer answers {task} for models of states (gs.FactorGraph, gs.ising and so on), got "
        f"{type(model).__name__}; other models go to gs.sample(model, kernel), and gs.recommend(model) "
        "tells which kernel."
    )
