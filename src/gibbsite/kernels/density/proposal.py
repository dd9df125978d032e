"""Proposals of users for :class:`Metropolis`: how to draw a place, and the density of the reverse move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gibbsite.errors import ArgumentError


@dataclass(frozen=True)
class Proposal:
    """How to propose a place from another, and what makes up for a preference of some ways.

    Exactly one of ``log_density``, ``log_ratio`` and ``symmetric`` is needed: without the ratio of both ways
    an asymmetric proposal samples another distribution.

    Parameters
    ----------
    draw : callable
        ``draw(x, rng) -> array``, a proposed place; ``rng`` is a NumPy generator, or what compiled functions
        get in its place. A draw that does not look at x is an independence proposal.
    log_density : callable, optional
        ``log_density(to, from) -> number``, the logarithm of q(to | from) up to a constant.
    log_ratio : callable, optional
        ``log_ratio(to, from) -> number``, that of q(from | to) / q(to | from).
    symmetric : bool
        Both ways are equally likely.

    Examples
    --------
    >>> import gibbsite as gs
    >>> independent = gs.kernels.Proposal(
    ...     lambda x, rng: rng.normal(size=x.size) * 2.0,
    ...     log_density=lambda to, at: -(to**2).sum() / 8.0,
    ... )
    >>> target = gs.LogDensity(lambda x: -0.5 * (x**2).sum(), dim=2)
    >>> result = gs.sample(target, gs.Metropolis(independent), sweeps=500, rng=1, progress=False)
    >>> 0.2 < result.report["acceptance"] < 0.9
    True
    """

    draw: Any
    log_density: Any = None
    log_ratio: Any = None
    symmetric: bool = False
    _kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        given = [self.log_density is not None, self.log_ratio is not None, bool(self.symmetric)]
        if sum(given) != 1:
            raise ArgumentError(
                "a proposal needs one of log_density=, log_ratio= and symmetric=True: without the ratio of "
                "both directions it would sample another distribution."
            )
        for function in (self.draw, self.log_density, self.log_ratio):
            if function is not None and not callable(function):
                raise ArgumentError(f"a proposal is made of functions, got {function!r}.")

    def __repr__(self) -> str:
        from gibbsite._numba.foreign import digest_of

        parts = [
            f"{name}={digest_of(function)}"
            for name, function in vars(self).items()
            if function is not None and callable(function)
        ]
        return f"Proposal({', '.join([*parts, f'symmetric={self.symmetric}'])})"

    def functions(self) -> tuple[Any, Any]:
        """Return the draw, and the density or ratio, as compiled code calls them."""
        from gibbsite._numba.foreign import adopt

        if not self._kept:
            self._kept["draw"] = adopt(self.draw, "draw")
            other = self.log_density if self.log_ratio is None else self.log_ratio
            self._kept["other"] = None if other is None else adopt(other, "value", arguments=2)
        return self._kept["draw"], self._kept["other"]
