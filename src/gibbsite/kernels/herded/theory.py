"""What is known in advance about a herded run: bounds on its error, or that no bound is known.

*The theorem* holds for complete graphs, or keys that contain all other sites. After a warmup of tau sweeps, the average
over T sweeps is within lambda / T of the target in total variation, for T >= T* and tau > tau*(T); without a warmup,
the bound is (lambda + tau*(T)) / T (theorem 3 and corollary 4 of Bornn et al., 2013). The constants grow exponentially
with the number of sites: the theorem is a statement about rates, and real errors are far smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arguments import check_flags, checked, describe
from gibbsite._common.arrays import Floats, Words32
from gibbsite._common.wording import Text, argument
from gibbsite._numba.jit import interpreted
from gibbsite.errors import ArgumentError, GibbsiteError, IncompatibleError, TooLargeError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.rows import row_lengths
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.herded.keys import named

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph
    from gibbsite.scans.base import Scan

_MOST_SITES = 9


@checked
@dataclass(frozen=True)
class HerdingBound:
    """Constants of the theorem, in its notation.

    Attributes
    ----------
    n_sites : int
        N.
    least : float
        The smallest conditional probability of a state.
    eta : float
        Dobrushin's coefficient of one sweep of Gibbs sampling: the largest total variation between two rows
        of its transition matrix.
    l, b, rate, enough : float
        l = least^N; B = least^N + (1 - (2 least)^N) / (1 - 2 least); lambda = 2 N (1 + eta) / (l (1 - eta));
        T* = 2 B / l.
    """

    n_sites: int
    least: float
    eta: float
    l: float  # noqa: E741
    b: float
    rate: float
    enough: float

    def line(self) -> str:
        """Return constants and bounds in one line."""
        scale, base = (1.0 - self.eta) * self.l / (4.0 * self.n_sites), math.log(2.0 / (1.0 + self.eta))
        return (
            f"the states after T >= T* = {self.enough:.3g} sweeps of a chain are within lambda / T = "
            f"{self.rate:.3g} / T of the joint distribution in total variation, if the first "
            f"tau*(T) = max(0, log({scale:.3g} T) / {base:.3g}) sweeps are left out, and within "
            f"(lambda + tau*(T)) / T otherwise (l = {self.l:.3g}, B = {self.b:.3g}, eta = {self.eta:.3g})"
        )

    def burn_in(self, sweeps: float) -> float:
        """Return tau*(T), the number of sweeps to discard before T sweeps."""
        if not 0.0 < sweeps < math.inf:
            raise ArgumentError(f"{argument('sweeps')} must be a positive number, got {sweeps!r}.")
        return max(0.0, math.log((1.0 - self.eta) * self.l * sweeps / (4.0 * self.n_sites), 2.0 / (1.0 + self.eta)))

    def error(self, sweeps: float, *, warmup: bool = True) -> float:
        """Return the bound on the total variation after ``sweeps`` sweeps, infinite if none is known.

        ``warmup`` tells whether the first tau*(T) sweeps have been discarded.
        """
        check_flags(warmup=warmup)
        if sweeps < self.enough + (0.0 if warmup else self.burn_in(self.enough)):
            return math.inf
        return (self.rate + (0.0 if warmup else self.burn_in(sweeps))) / sweeps


@checked
def herding_bound(model: FactorGraph, scan: Scan | None = None) -> HerdingBound:
    """Compute the constants of the convergence theorem of herded Gibbs.

    They hold if each site's key contains all other sites: with ``keys="full"``, or with ``"blanket"`` if every pair of
    sites shares a factor.

    Parameters
    ----------
    model : FactorGraph
        A model with two states per site, no zeros, and at most nine sites.
    scan : Scan, optional
        A fixed order that visits every site once per sweep; systematic by default.

    Returns
    -------
    HerdingBound

    References
    ----------
    Bornn et al. (2013), Herded Gibbs sampling.

    Examples
    --------
    >>> import gibbsite as gs
    >>> table = [[0.15, 0.1], [0.1, 0.65]]
    >>> bound = gs.kernels.herding_bound(gs.FactorGraph(2, [((0, 1), table)], states=2))
    >>> round(bound.least, 4), round(bound.eta, 4)
    (0.1333, 0.4667)
    >>> bound.error(1e6) < 1e-3
    True
    """
    from gibbsite.models.factorgraph import FactorGraph
    from gibbsite.scans.base import Scan
    from gibbsite.scans.systematic import Systematic

    scan = Systematic() if scan is None else scan
    if not isinstance(model, FactorGraph):
        raise ArgumentError(f"{argument('model')} must be a model such as gs.FactorGraph, got {describe(model)}.")
    if not isinstance(scan, Scan):
        raise ArgumentError(f"{argument('scan')} must be a scan such as gs.Systematic(), got {describe(scan)}.")
    if model.n_sites > _MOST_SITES:
        raise TooLargeError(
            f"The constants need all states of a model; it can have {_MOST_SITES} sites, this one has {model.n_sites}."
        )
    if not model.n_sites or (model.cards != 2).any():
        raise IncompatibleError("The theorem needs sites with two states.")
    n = model.n_sites
    with interpreted(n * n):  # compilation would take longer
        graph = compile_graph(model)
        fixed = scan.once and scan.cycle(graph, model) == n
        order = scan.visits(graph, model).tolist() if fixed else []
    if not fixed:
        raise IncompatibleError(f"The theorem needs a fixed order, the same in every sweep, not {type(scan).__name__}.")
    joint = _enumerate_law(model)
    if (joint == 0.0).any():
        raise IncompatibleError("The constants are known for models without zeros; this one has zeros.")
    conditionals = [joint / joint.sum(axis=i, keepdims=True) for i in range(n)]
    least = min(float(table.min()) for table in conditionals)
    # a sweep does not depend on the old state of its first site, so one row for each state of the others suffices
    matrix = sweep_of_gibbs(conditionals, order).reshape(*joint.shape, 2**n)
    rows: Floats = np.take(matrix, 0, axis=order[0]).reshape(-1, 2**n)
    eta = max(0.5 * float(np.abs(rows[k:] - row).sum(axis=1).max()) for k, row in enumerate(rows))
    l = least**n  # noqa: E741
    # the sum of (2 least)^k for k < N, which is also correct if 2 least is one
    b = l + sum((2.0 * least) ** k for k in range(n))
    rate = math.inf if eta >= 1.0 else 2.0 * n * (1.0 + eta) / (l * (1.0 - eta))
    return HerdingBound(n, least, eta, l, b, rate, 2.0 * b / l)


def _enumerate_law(model: FactorGraph) -> Floats:
    """Return the probabilities of all states, one axis per site."""
    shape = (2,) * model.n_sites
    logs = np.array([model.log_potential(np.array(x, np.int32)) for x in np.ndindex(shape)]).reshape(shape)
    law: Floats = np.exp(logs - logs.max())
    law /= law.sum()
    return law


def sweep_of_gibbs(conditionals: list[Floats], order: list[int]) -> Floats:
    """Return the transition matrix of a sweep of Gibbs sampling; columns have one axis per site.

    ``conditionals`` are the probabilities of the states of each site given the others, one axis per site.
    """
    shape = np.broadcast_shapes(*(table.shape for table in conditionals))
    states = math.prod(shape)
    matrix: Floats = np.eye(states).reshape(states, *shape)
    for site in order:
        matrix = matrix.sum(axis=1 + site, keepdims=True) * conditionals[site]
    return matrix


def holds_all(start: Words32, member: Words32) -> bool:
    """Return whether every row of compressed rows contains all sites except its own."""
    n = start.size - 1
    degree = row_lengths(start)
    if (degree < n - 1).any():
        return False
    owner = np.repeat(np.arange(n), degree)
    return np.unique(owner * n + member).size == n * (n - 1)  # a neighbour may be listed twice


def floor_warning(keys: str, full_fits: bool) -> KernelWarning:
    """Warn that convergence is not guaranteed if keys do not contain all other sites."""
    instead = f"; {named(keys='full')} has none." if full_fits else "."
    return KernelWarning(
        Text(
            "Convergence of herded Gibbs to the joint distribution is not guaranteed here, because "
            f"{named(keys=keys)} does not distinguish all states of the other sites: errors fall to a floor "
            f"whose height is not known{instead}"
        )
    )


def theorem_warning(model: FactorGraph, scan: Scan) -> tuple[KernelWarning, ...]:
    """Report the constants of the theorem if it applies to the model and they are finite."""
    try:
        bound = herding_bound(model, scan)
    except GibbsiteError:
        return ()
    if not math.isfinite(bound.rate):
        return ()
    return (KernelWarning(f"The theorem of herded Gibbs applies: {bound.line()}."),)
