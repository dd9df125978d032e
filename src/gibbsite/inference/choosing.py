"""What to try where a model cannot be solved exactly, in which order, and why.

Every method judges its own answer, and the first that converges is taken (``trying.py``): forward draws
where factors are those of a Bayesian network; mini-buckets, the sooner the more zeros there are, at which
chains are stuck; before chains of single sites one block of all sites, where its tables are small enough to
be gone through for every draw; and last replica exchange, which crosses between modes that chains of single
sites have found. Blocks that leave sites out are not tried: their draws depend on each other as those of
single sites do where ties are strong, and cost more where they are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.inference.arguments import is_stored
from gibbsite.inference.methods import OTHERWISE, is_weighted, known_methods

if TYPE_CHECKING:
    from gibbsite.inference.importance import ImportanceProposal
    from gibbsite.kernels.base import Kernel
    from gibbsite.models import FactorGraph

# Larger models are sampled site by site from the beginning: anything else takes too long to prepare.
_MOST_SITES = 20_000
# Share of the factors of several sites with zeros, from which on chains of single sites come later.
_MANY_ZEROS = 0.1
# Entries of all tables of a block of all sites: a draw takes some hundredths of a second.
_WHOLE_ENTRIES = 2.0**21


class Attempt(NamedTuple):
    """A method, the share of the time left that it may take, and why it is tried."""

    method: str
    share: float
    why: str


def plan_attempts(model: FactorGraph, task: str = "MAR") -> tuple[Attempt, ...]:
    """Return the methods to try for marginals, or for log Z (PR), one after the other until one converges.

    Examples
    --------
    >>> import gibbsite as gs
    >>> [attempt.method for attempt in plan_attempts(gs.ising_grid((30, 30), coupling=0.3))]
    ['gibbs', 'mini-bucket', 'tempered']
    """
    last = Attempt("tempered", 1.0, "several modes are possible")
    if model.n_sites > _MOST_SITES:
        return (last if task == "PR" else Attempt("gibbs", 1.0, "large"),)
    if task == "PR":
        return Attempt("mini-bucket", 0.5, "bounds come with it"), last
    network = [Attempt("forward", 0.3, "a Bayesian network")] if _is_network(model) else []
    whole = [Attempt("blocks", 0.5, "all sites are drawn at once")] if _fits_one_block(model) else []
    if _share_with_zeros(model) >= _MANY_ZEROS:
        others = [Attempt("mini-bucket", 0.85, "many zeros"), *whole, Attempt("gibbs", 0.3, "single sites")]
    else:
        single = Attempt("gibbs", 0.3, "single sites")
        others = [*whole, single, Attempt("mini-bucket", 0.7, "independent draws")]
    return *network, *others, last


def _fits_one_block(model: FactorGraph) -> bool:
    """Whether one block can hold all sites, by the order of elimination that mini-buckets need anyway."""
    from gibbsite.inference.exact.plan import outline

    return outline(model).order.total <= _WHOLE_ENTRIES


def _is_network(model: FactorGraph) -> bool:
    from gibbsite.errors import ModelError
    from gibbsite.inference.importance.network import find_network

    try:
        find_network(model)
    except ModelError:
        return False
    return True


def _share_with_zeros(model: FactorGraph) -> float:
    """Return the share of the factors of several sites that have zeros."""
    import numpy as np

    from gibbsite.models import TableFactors

    having = several = 0
    for group in model.groups:
        if group.arity > 1:
            several += group.size
            if isinstance(group, TableFactors):
                entries = group.log_tables(model.cards).reshape(group.size, -1)
                having += int(np.isneginf(entries).any(axis=1).sum())
    return having / max(several, 1)


def choose(
    model: FactorGraph, task: str, method: str | Kernel | ImportanceProposal, seconds: float | None, exact: bool = True
) -> tuple[str | Kernel | ImportanceProposal, str]:
    """Return the method and the reason for it."""
    if not isinstance(method, str):
        from gibbsite.kernels.base import Kernel
        from gibbsite.kernels.protocols import Replicated

        answers: tuple[str, ...] = ("MAR", "PR")
        if isinstance(method, Kernel):
            answers = ("MAR", "MAP") if method.estimates else ("MAP",)
            answers = (*answers, "PR") if isinstance(method, Replicated) else answers
        elif not is_weighted(method):
            raise ArgumentError(f"{argument('method')} must be a name or a kernel such as gs.Gibbs(), got {method!r}.")
    elif method in known_methods():
        answers = known_methods()[method]
    else:
        raise ArgumentError(unknown("method", method, known_methods()))
    if task not in answers:
        others = [name for name, tasks in known_methods().items() if task in tasks]
        name = repr(method) if isinstance(method, str) else type(method).__name__
        raise ArgumentError(f"method {name} does not answer {task}; choose one of {', '.join(others)}.")
    if method not in ("auto", "exact"):
        return method, "as asked"
    if is_stored(model):
        return OTHERWISE[task], "a stored model is sampled"
    if not exact:
        return OTHERWISE[task], "an exact solution was not asked for"
    from gibbsite.inference.exact import predict_exact
    from gibbsite.inference.exact.memory import usable_memory

    cost = predict_exact(model)
    size = cost.line()
    time_limit = max(60.0, 0.0 if seconds is None else seconds)
    fits = cost.bytes <= 0.5 * usable_memory() and cost.seconds <= time_limit
    if fits or method == "exact":
        return "exact", size
    return OTHERWISE[task], f"an exact solution does not fit: {size}"
