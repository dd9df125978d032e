"""What a run has to fulfil: how accurate it is to be, at which sites, and whether other starts are tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gibbsite._common.arguments import check_flags, check_share, check_sites
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

DEFAULT_ACCURACY = 0.01  # of answers to a question; a run of chains has none by default
STANDARD_ERRORS = 4.0  # of a marginal, which together must not exceed the accuracy


@dataclass(frozen=True)
class Criteria:
    """What an answer is judged by.

    Parameters
    ----------
    accuracy : float, optional
        Largest error of a marginal to allow: four standard errors must not exceed it. A run of
        :func:`gibbsite.sample` ends as soon as it has converged and is this accurate, which is examined after
        256, 512, 1024, ... draws; without an accuracy it uses its whole budget. :func:`gibbsite.infer` and
        :func:`gibbsite.sample_weighted` take 0.01 by default, and call an answer converged only if it is this
        accurate.
    query : iterable of sites, optional
        The sites whose marginals are asked for, by name or position; all by default. R-hat, effective sample
        sizes and standard errors are judged at these sites. The other sites only have to mix well enough not to
        make these marginals wrong (docs/diagnostics.md). Weighted methods draw only the sites that matter for
        these; the marginals of the others are NaN then.
    dispersed_starts : bool
        Whether chains are compared with 64 short chains from other starts before they are called converged,
        for at most 15 % of the cost of the run (the dispersed-start check). Without it, the verdict says so.

    See Also
    --------
    sample : The function that takes it.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((6, 6), coupling=0.2, field=0.1)
    >>> wanted = gs.Criteria(accuracy=0.02, query=["0", "35"])
    >>> result = gs.sample(model, sweeps=100_000, criteria=wanted, rng=1, progress=False)
    >>> result.n_draws < 90_000, 4 * result.mcse["0"][1] <= 0.02
    (True, True)
    """

    accuracy: float | None = None
    query: Iterable[str | int] | None = None
    dispersed_starts: bool = True

    def __post_init__(self) -> None:
        if self.accuracy is not None:
            check_share("accuracy", self.accuracy)
        check_flags(dispersed_starts=self.dispersed_starts)
        if self.query is not None:
            object.__setattr__(self, "query", check_sites("query", self.query))


NO_CRITERIA = Criteria()


def read_criteria(criteria: Criteria | None) -> Criteria:
    """Return criteria, those without any demand by default; refuse anything else."""
    if criteria is None:
        return NO_CRITERIA
    if not isinstance(criteria, Criteria):
        raise ArgumentError(f"{argument('criteria')} must be gs.Criteria(...), got {criteria!r}.")
    return criteria
