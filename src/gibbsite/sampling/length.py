"""The length of a run where it is not just a number of sweeps."""

from __future__ import annotations

from dataclasses import dataclass

from gibbsite._common.arguments import check_integer


@dataclass(frozen=True)
class Sweeps:
    """A number of sweeps of which not every one is recorded.

    Parameters
    ----------
    count : int, optional
        Sweeps of each chain after the warmup; 1000 by default, or as many as the time limit allows.
    thin : int
        Record every ``thin``-th sweep.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.2)
    >>> gs.sample(model, sweeps=gs.Sweeps(100, thin=5), record="draws", rng=1, progress=False).n_draws
    20
    """

    count: int | None = None
    thin: int = 1

    def __post_init__(self) -> None:
        if self.count is not None:
            check_integer("sweeps", self.count, 1)
        check_integer("thin", self.thin, 1)


@dataclass(frozen=True)
class Steps:
    """A budget in single steps instead of sweeps, for example the length of a given order of sites.

    Parameters
    ----------
    count : int
        Steps of each chain after the warmup.
    thin : int
        Record every ``thin``-th sweep.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.2)
    >>> gs.sample(model, sweeps=gs.Steps(27), rng=1, progress=False).n_draws
    3
    """

    count: int
    thin: int = 1

    def __post_init__(self) -> None:
        check_integer("steps", self.count, 1)
        check_integer("thin", self.thin, 1)
