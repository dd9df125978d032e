"""Gibbs sampling of models whose factors are functions: numbers in intervals, and states, one site at a time.

The selection of factors and the energy of a value (:mod:`.energy`) are independent of the method that draws a value
from the energy (:mod:`.methods`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Words64
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import Integer, implement
from gibbsite._numba.random.generators import Words
from gibbsite.errors import ArgumentError, IncompatibleError
from gibbsite.graphs.functions.bounds import Bounds, all_bounds, factors_of, known_bounds
from gibbsite.graphs.graph import Graph
from gibbsite.graphs.kinds.functions import ContinuousGraph
from gibbsite.kernels.base import Kernel, KernelWarning, step
from gibbsite.kernels.continuous.energy import (
    ACCEPTED,
    CALLS,
    CHOSEN,
    FACTORS,
    FINE,
    KEPT,
    PROPOSED,
    UPDATES,
    VALUES,
    Batch,
    ContinuousMemory,
    energies,
    gather,
    make_workspace,
    no_rows,
    raise_fault,
)
from gibbsite.kernels.continuous.interpolated import Interpolation, interpolate, make_series
from gibbsite.kernels.continuous.methods import (
    INTERPOLATED,
    INVERSE,
    REJECTED,
    SLICED,
    STATES,
    TOGETHER,
    Method,
    answer,
    ask,
)
from gibbsite.kernels.continuous.theorem import growth_of, interpolant_warning, least_size
from gibbsite.kernels.minibatch.factors import batch_rate, drawn_rows, guarantee, local_energies, read_batch
from gibbsite.kernels.registry import register

if TYPE_CHECKING:
    from gibbsite.models import Model
    from gibbsite.scans.base import Scan

_KINDS = {
    "auto": INTERPOLATED,
    "exact-inverse": INVERSE,
    "double": INTERPOLATED,
    "its": INTERPOLATED,
    "rejection": REJECTED,
    "slice": SLICED,
}
# Degrees of interpolants that are tried one after another, for energies and for densities.
_ENERGY_DEGREES = [4, 8, 16, 32, 64]
_DENSITY_DEGREES = [8, 16, 32, 64, 128]
# Cost of drawing a factor, and overhead of a minibatch of any size, in evaluations of a factor.
_COST_OF_DRAW, _COST_OF_BATCH = 1.5, 10.0


class ContinuousParameters(NamedTuple):
    """The selection of factors, and the method of drawing values."""

    batch: Batch
    method: Method


@register(
    proof="tests/proofs/test_continuous.py",
    default_for=["functions"],
    recommend={"ContinuousGibbs": {}, "ContinuousGibbs, minibatches": {"minibatch": "auto"}},
)
@dataclass(frozen=True)
class ContinuousGibbs(Kernel):
    """Gibbs sampling of numbers in intervals and of states, exact for all settings.

    Parameters
    ----------
    method : {"auto", "exact-inverse", "double", "its", "rejection", "slice"}
        How a number is drawn from its conditional. ``"exact-inverse"``: directly, for sites whose factors are all
        polynomials of degree 1 or 2 and are all evaluated. ``"its"``: from an interpolant of the density, with a
        Metropolis correction. ``"double"``: from an interpolant of the exponential of an interpolant of the energy,
        which takes fewer evaluations, with the same correction. ``"rejection"``: by uniform proposals, for energies
        that vary by only a few units; it needs bounds of all factors, as minibatches do. ``"slice"``: by slice sampling
        with a shrinking interval, for any density. ``"auto"``: "exact-inverse" if possible, otherwise "slice" for
        sites whose factors are all evaluated and "double" for minibatches.
    minibatch : float, "auto" or None
        None: every update evaluates all factors of its site. A number: Poisson minibatches with this value of lambda,
        the state-independent part of the mean number of factors that are drawn at the site with the largest sum of
        bounds L. ``"auto"``: lambda is L^2, or 2 L if that is cheaper than evaluating all factors and L^2 is not;
        sites for which a minibatch is not cheaper are updated with all factors.
    degree : int, optional
        Degree of the interpolant of the energy (``"double"``) or of the density (``"its"``). By default, it is
        raised until ``tolerance`` is met, to at most 64 for energies and 128 for densities.
    fine : int, optional
        Degree of the second interpolant of ``"double"``; by default it is raised likewise, to at most 128.
    tolerance : float
        Bound on the last coefficients of an interpolant; about the share of proposals that are rejected.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ContinuousModel(
    ...     {"position": gs.Interval(-2, 2), "side": ["left", "right"]},
    ...     [(lambda x: -2.0 * (x[0] - x[1] + 0.5) ** 2, ("position", "side"))],
    ... )
    >>> result = gs.sample(model, gs.kernels.ContinuousGibbs(), sweeps=2000, rng=1, progress=False)
    >>> abs(result.marginals["position"]["mean"]) < 0.5
    True
    """

    kinds: ClassVar[frozenset[str]] = frozenset({"functions"})
    conditional: ClassVar[bool] = False
    fallible: ClassVar[bool] = True

    method: str = "auto"
    minibatch: float | str | None = None
    degree: int | None = None
    fine: int | None = None
    tolerance: float = 1e-3

    def check(self, graph: Graph) -> None:
        """Refuse graphs of other kinds, missing bounds, and exact draws from conditionals without an exact inverse."""
        super().check(graph)
        self._bounds(graph)
        if self.method != "exact-inverse":
            return
        if self.minibatch is not None:
            raise IncompatibleError(
                "conditionals given a minibatch are not exponentials of polynomials; use method='double' with "
                "minibatch, or leave minibatch out."
            )
        arrays: ContinuousGraph = graph.arrays
        others = np.flatnonzero((arrays.card == 0) & (arrays.degree == 0))
        if others.size:
            factors = factors_of(graph)
            site = int(factors.free[others[0]])
            guilty = next(g.name for g in factors.groups if g.degree is None and (g.scopes == site).any())
            raise IncompatibleError(
                f"the conditional of the site {factors.domains.names[site]!r} cannot be inverted exactly: the "
                f"factors {guilty!r} are not declared as polynomials of degree 1 or 2; give degree=, or "
                "use method='double'."
            )

    def size(self, graph: Graph) -> float:
        """Return lambda for a graph."""
        seen = local_energies(graph)
        small, large = 2.0 * seen.largest, max(seen.largest**2, 2.0 * seen.largest)
        if self.minibatch == "auto" and seen.local.size:
            busiest = int(seen.local.argmax())
            rows = drawn_rows(graph)
            if not _pays(batch_rate(large, seen.largest), seen.largest, rows.degree[busiest]):
                large = small
        return read_batch("minibatch of ContinuousGibbs", self.minibatch, large)

    def parameters(self, graph: Graph) -> ContinuousParameters:
        """Return the selection of factors and the method of drawing values, for compiled code."""
        arrays: ContinuousGraph = graph.arrays
        if self.method not in _KINDS:
            raise ArgumentError(unknown("method", self.method, _KINDS))
        if not isinstance(self.tolerance, int | float) or not 0 < self.tolerance < math.inf:
            raise ArgumentError(f"{argument('tolerance')} must be a positive number, got {self.tolerance!r}.")
        batch = self._batch(graph)
        kind = np.full(graph.n_sites, _KINDS[self.method], np.int8)
        if self.method == "auto":  # with all factors, slices give several times as many effective draws per second
            kind[batch.plain] = SLICED
        if self.method in ("auto", "exact-inverse"):
            kind[batch.plain & (arrays.degree > 0)] = INVERSE
        kind[arrays.card > 0] = STATES
        method = Method(kind, self._interpolation(), math.log1p(1.0 / batch.tau), batch.bounds)
        return ContinuousParameters(batch, method)

    def _batch(self, graph: Graph) -> Batch:
        if self.minibatch is None:
            return Batch(no_rows(graph), 1.0, np.ones(graph.n_sites, np.bool_), self._bounds(graph))
        size, rows = self.size(graph), drawn_rows(graph)
        tau = batch_rate(size, local_energies(graph).largest)
        plain = rows.degree == 0
        if self.minibatch == "auto":
            plain |= ~_pays(tau, rows.local, rows.degree)
        return Batch(rows, tau, plain, self._bounds(graph))

    def _bounds(self, graph: Graph) -> Bounds:
        """Return the bounds of all factors if they are needed, otherwise those that were given."""
        if self.minibatch is None and self.method != "rejection":
            return known_bounds(graph)
        return all_bounds(graph, "method='rejection'" if self.minibatch is None else "minibatch=")

    def _interpolation(self) -> Interpolation:
        degree, fine = _read_degree("degree", self.degree), _read_degree("fine", self.fine)
        if _KINDS[self.method] != INTERPOLATED:
            return interpolate(None, [1], self.tolerance)
        if self.method == "its":
            return interpolate(None, degree or _DENSITY_DEGREES, self.tolerance)
        return interpolate(degree or _ENERGY_DEGREES, fine or _DENSITY_DEGREES, self.tolerance)

    def memory(self, graph: Graph, stream: Words64) -> NamedTuple:
        """Allocate scratch arrays, counts and the record of a fault."""
        arrays: ContinuousGraph = graph.arrays
        arity, made = int(arrays.groups.arity.max(initial=1)), self._interpolation()
        energy, density = int(made.nodes.degree[-1]), int(made.density.degree[-1])
        # the largest of: points of a degree and the current value, all states, proposals of a rejection
        points = max(energy + 2, int(arrays.card.max(initial=0)), TOGETHER)
        return ContinuousMemory(
            make_workspace(self._batch(graph).room(), points, arity),
            make_series(energy, density),
            np.zeros(ACCEPTED + 1, np.int64),
            np.zeros(VALUES + arity),
        )

    def warnings(self, model: Model, graph: Graph, scan: Scan) -> tuple[KernelWarning, ...]:
        """Return what the theorem guarantees for minibatches, and how many sites are updated with all factors."""
        if self.minibatch is None:
            return ()
        plain, n = int(self._batch(graph).plain.sum()), graph.n_sites
        if plain == n:
            return (KernelWarning("Every site has so few factors that evaluating all of them is cheaper."),)
        text = guarantee(self.size(graph), local_energies(graph).largest)
        if _KINDS[self.method] == INTERPOLATED:
            text += " " + self._interpolant_warning(graph)
        some = f" {plain:,} of {n:,} sites are updated with all of their factors, which is cheaper." if plain else ""
        return (KernelWarning(text + some),)

    def _interpolant_warning(self, graph: Graph) -> str:
        made, double = self._interpolation(), self.method != "its"
        factors, largest, size = factors_of(graph), local_energies(graph).largest, self.size(graph)
        ladders = [made.nodes.degree, made.density.degree] if double else [made.density.degree]
        fixed = all(ladder.size == 1 for ladder in ladders)
        growth, reason = None, "some factors are evaluated at every update"
        if graph.arrays.period.any():
            reason = "angles are cut at random places"
        elif not any(group.always for group in factors.groups) and size >= least_size(largest, double):
            reason = "some factors declare neither a degree nor their growth outside of the interval"
            growth = growth_of(factors, self._bounds(graph), size / max(least_size(largest, double), 1e-300))
        degrees = tuple(int(ladder[0]) for ladder in ladders) if fixed else None
        return interpolant_warning(size, largest, growth, reason, degrees, double)

    def report(self, memories: Sequence[Any]) -> dict[str, float]:
        """Return means per update, including the warmup.

        ``minibatch``: draws of factors that were kept; ``factors``: different factors that were evaluated;
        ``evaluations``: evaluations of factors, one for each candidate value; ``acceptance``: the acceptance rate.
        """
        counts = np.sum([memory.counts for memory in memories], axis=0)
        updates = max(int(counts[UPDATES]), 1)
        found = {"factors": counts[FACTORS] / updates, "evaluations": counts[CALLS] / updates}
        if self.minibatch is not None:
            found["minibatch"] = counts[KEPT] / updates
        if counts[PROPOSED]:
            found["acceptance"] = counts[ACCEPTED] / counts[PROPOSED]
        return {name: float(value) for name, value in found.items()}

    def inspect(self, model: Any, graph: Graph, memory: Any) -> None:
        """Raise an error if the value of a factor was not a number or outside its bounds."""
        if memory.fault[0] != FINE:
            raise_fault(model, graph, self._bounds(graph), memory.fault)


def _pays(tau: float, energy: Any, many: Any) -> Any:
    """Return whether minibatches for a site with this sum of bounds are cheaper than evaluating all of its factors."""
    return _COST_OF_BATCH + _COST_OF_DRAW * (1.0 + tau) * energy < many


def _read_degree(name: str, given: Any) -> list[int]:
    if given is None:
        return []
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or not 1 <= given <= 512:
        raise ArgumentError(f"{argument(name)} must be a whole number from 1 to 512, got {given!r}.")
    return [int(given)]


@implement(step, ContinuousParameters)
def _step(
    params: Any, arrays: Any, memory: ContinuousMemory, x: Floats, i: Integer, rng: Words, cond: Floats, keep: bool
) -> Words:
    if memory.fault[0] != FINE:  # the run is over
        return rng
    site = np.int64(i)
    memory.counts[UPDATES] += 1
    rng = gather(params.batch, arrays, memory, x, site, rng)
    rng, many = ask(params.method, arrays, memory, x, site, rng)
    while many > 0:
        if not energies(arrays, params.batch.bounds, memory, x, site, many):
            return rng
        rng, many = answer(params.method, arrays, memory, x, site, rng)
    if memory.fault[0] == FINE:
        x[site] = memory.workspace.stage[CHOSEN]
    return rng
