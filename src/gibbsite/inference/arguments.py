"""What is asked of :func:`gibbsite.infer`, checked before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gibbsite._common.wording import Text, argument, in_python, unknown
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.inference.methods import (
    ARGUMENTS,
    KERNELS,
    METHODS,
    OF_WEIGHTED,
    OTHERWISE,
    SAMPLING,
    is_weighted,
    known_methods,
)
from gibbsite.sampling.length import Steps, Sweeps

if TYPE_CHECKING:
    from gibbsite.inference.importance import ImportanceProposal
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph


def check_arguments(
    model: FactorGraph, task: str, method: str | Kernel | ImportanceProposal, given: dict[str, Any], progress: Any
) -> None:
    """Refuse what nobody knows and what the method has no use for; look at values before any work is done.

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
    if isinstance(sweeps, Sweeps | Steps) and "warmup" not in takes:
        raise ArgumentError(f"{argument('sweeps')} must be a whole number with {_spell(chosen)}, got {sweeps!r}.")
    if method == "auto":
        from gibbsite.sampling.progress import choose_progress

        choose_progress(progress)
        _check_values(model, given)


def check_exact(exact: Any, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse exact=False but with "auto", the only method that has a choice about it."""
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
    """Return the message on an argument that a method has no use for."""
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
    if not isinstance(given.get("rng"), np.random.Generator):  # which would be moved on by being read
        read_entropy(given.get("rng"))
    if "scan" in given:
        from gibbsite.inference.sampling import check_parts

        check_parts(model, None, given["scan"])
    if "record" in given:
        from gibbsite.sampling.record import read_recorders

        read_recorders(given["record"])
    if "start" in given:
        from gibbsite.graphs.compile import compile_graph
        from gibbsite.graphs.support.start import start_states

        start_states(model, compile_graph(model), chains, given["start"], 0)


def with_unused(reason: str, given: dict[str, Any]) -> Text:
    """Add what was given for sampling to the reason for not sampling; a time limit was used to decide."""
    unused = [argument(name) for name in given if name != "seconds"]
    return Text(f"{reason}; {', '.join(unused)} not used" if unused else reason)


def is_stored(model: Any) -> bool:
    """Whether a model stays in its files."""
    from gibbsite.models.stored import StoredPairs

    return isinstance(model, StoredPairs)


def _check_stored(task: str, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse what reads the whole model: a stored one is sampled from its files."""
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
    """Return how many states are asked for; a run that is no search for them has one."""
    from gibbsite._common.arguments import check_integer

    many = check_integer("best", best, 1)
    if many > 1 and task not in ("MAP", "MMAP"):
        raise ArgumentError(
            f"{argument('best')} is a number of most probable states, and the task is {task}; ask for MAP."
        )
    if many > 1 and not search:
        raise ArgumentError(f"{argument('best', many)} is not there for stored models: a run has one best state.")
    if many > 1 and method not in ("exact", "annealed"):
        name = method if isinstance(method, str) else type(method).__name__
        raise ArgumentError(
            f"method {name!r} gives one best state; choose exact or annealed for {argument('best', many)}."
        )
    return many


def check_model(model: Any, task: str, method: str | Kernel | ImportanceProposal) -> None:
    """Refuse models of numbers, whose means a kernel may well give, and what stored models cannot answer."""
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
