"""Models for the textbook Gibbs sampler: full conditionals, each given by a function that draws from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.errors import IncompatibleError, ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Interval, make_domains

Draw = Callable[..., Any]


class Conditionals(Model):
    """A target given by functions that draw from its full conditionals; immutable.

    Parameters
    ----------
    draws : mapping
        Site, or tuple of sites (a block), -> function ``draw(x, rng)`` that returns a new value, or an array
        of values for a block, given the values ``x`` of all sites in the order of ``sites``. ``None`` in
        place of a function: the site has no sampler, and is moved by slice sampling on ``log_density``.
    sites : mapping, optional
        Site -> ``gs.Interval(low, high)``, ``gs.Angle()``, state labels or a number of states; without it,
        and for sites that are left out, all of the real line. The order of the sites is that of this mapping,
        then of ``draws``.
    log_density : callable, optional
        Joint log-density ``f(x)``, up to a constant: needed for sites without sampler, for recording the
        energy, and for :func:`gibbsite.inference.check_conditionals`.

    See Also
    --------
    inference.check_conditionals : Compare conditionals with a joint density.
    LogDensity : A density given by one function.

    Notes
    -----
    In Python, ``rng`` is a NumPy generator. A function decorated with ``numba.njit`` gets an array of words
    instead, for the functions of :mod:`gibbsite.models.random`, and runs a hundred times faster. States are codes
    0, 1, ... in ``x`` and in what is returned.

    Examples
    --------
    >>> normal = Conditionals({
    ...     "a": lambda x, rng: rng.normal(0.4 * x[1], 0.68**0.5),
    ...     "b": lambda x, rng: rng.normal(0.8 * x[0], 1.36**0.5),
    ... })
    >>> normal
    Conditionals(2 sites in 2 blocks)
    """

    @checked
    def __init__(
        self,
        draws: Mapping[Any, Draw | None],
        sites: Mapping[str, Any] | None = None,
        *,
        log_density: Callable[..., Any] | None = None,
    ) -> None:
        if not isinstance(draws, Mapping) or not draws:
            raise ModelError("conditionals are a mapping: site, or tuple of sites, -> function draw(x, rng).")
        kinds: dict[str, Any] = dict(sites or {})
        blocks = [(key,) if isinstance(key, str) else key for key in draws]
        for block in blocks:
            if not isinstance(block, tuple) or not block or not all(isinstance(name, str) for name in block):
                raise ModelError(f"a block is a tuple of names of sites, got {block!r}.")
            for name in block:
                kinds.setdefault(name, Interval())
        super().__init__(make_domains(kinds))
        self.blocks = tuple(tuple(self._domains.position(name) for name in block) for block in blocks)
        self.draws = tuple(draws.values())
        self.log_density = log_density
        self._check()

    def _check(self) -> None:
        moved = {site for block in self.blocks for site in block}
        still = [name for i, name in enumerate(self.sites) if i not in moved]
        if still:
            raise ModelError(f"the site {still[0]!r} has no conditional; give one, or leave it out.")
        for block, draw in zip(self.blocks, self.draws, strict=True):
            names = self._domains.scope_text(block)
            if len(set(block)) < len(block):
                raise ModelError(f"the block {names} names a site twice.")
            if draw is None:
                if self.log_density is None:
                    raise ModelError(f"{names} has no function to draw with, so log_density= is needed.")
                if len(block) > 1 or not self._domains.numbers[block[0]]:
                    raise ModelError(f"{names} has no function to draw with, but only a single number can do without.")
            elif not callable(draw):
                raise ModelError(f"the conditional of {names} must be a function draw(x, rng), got {draw!r}.")

    def _content(self) -> Iterator[Any]:
        from gibbsite._numba.foreign import digest_of

        domains = self._domains
        yield repr((domains.names.identity(), domains.kinds, self.blocks)).encode()
        yield np.ascontiguousarray(domains.kind_of).tobytes()
        for function in (*self.draws, self.log_density):
            yield digest_of(function).encode() if function is not None else b"-"

    def observe(self, evidence: Mapping[Any, Any]) -> Conditionals:
        """Refuse evidence, which only the functions themselves could take into account."""
        raise IncompatibleError(
            "Conditionals cannot fold evidence in: leave the observed sites out of draws and sites, and let "
            "the functions of the others use the observed values."
        )

    def draw_start(self, rng: np.random.Generator) -> Floats:
        """Return a random start as other models do, but not at bounds, where draws may be undefined."""
        x = super().draw_start(rng)
        low, high = self._domains.bounds
        numbers = self._domains.numbers
        above = numbers & np.isfinite(low) & ~np.isfinite(high)
        below = numbers & ~np.isfinite(low) & np.isfinite(high)
        size = np.abs(rng.standard_normal(x.size)) + 1e-3
        found: Floats = np.where(above, low + size, np.where(below, high - size, x))
        return found

    def __repr__(self) -> str:
        return f"Conditionals({self.n_sites:,} sites in {len(self.blocks):,} blocks)"
