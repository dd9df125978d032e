"""What the theory of herded Gibbs promises: error bounds for complete graphs, or keys of all other sites.

After a burn-in of tau sweeps the average over T sweeps is within lambda / T of the law in total variation,
for T >= T* and tau > tau*(T); with everything counted from the first sweep on the bound is
(lambda + tau*(T)) / T (theorem 3 and corollary 4 of Bornn et al., 2013). The constants grow exponentially
with the number of sites: this is a statement about rates, and real errors are far smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite.errors import IncompatibleError, TooLargeError
from gibbsite.exact.enumeration import enumerate_states
from gibbsite.exact.transition import sweep_matrix
from gibbsite.graph.lower import compile_graph
from gibbsite.kernel.gibbs import Gibbs

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph
    from gibbsite.scan.base import Scan

_MOST_SITES = 9


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

    def burn_in(self, sweeps: float) -> float:
        """Return tau*(T), the sweeps to leave out before T sweeps."""
        return max(
            0.0,
            math.log((1.0 - self.eta) * self.l * sweeps / (4.0 * self.n_sites), 2.0 / (1.0 + self.eta)),
        )

    def error(self, sweeps: float, *, warmup: bool = True) -> float:
        """Return the bound on the total variation after so many sweeps, infinite where none is known.

        ``warmup`` tells whether the burn-in has been left out.
        """
        if sweeps < self.enough + (0.0 if warmup else self.burn_in(self.enough)):
            return math.inf
        return (self.rate + (0.0 if warmup else self.burn_in(sweeps))) / sweeps


def herding_bound(model: FactorGraph, scan: Scan | None = None) -> HerdingBound:
    """Compute the constants of the convergence theorem of herded Gibbs.

    They hold if each site's key are all other sites: ``keys="full"``, or ``"blanket"`` where every pair of
    sites shares a factor.

    Parameters
    ----------
    model : FactorGraph
        Two states per site, no zeros, at most nine sites.
    scan : Scan, optional
        A fixed order that visits every site once per sweep; systematic by default.

    Returns
    -------
    HerdingBound

    Examples
    --------
    >>> import gibbsite as gs
    >>> table = [[0.15, 0.1], [0.1, 0.65]]
    >>> bound = gs.herding_bound(gs.FactorGraph(2, [((0, 1), table)], states=2))
    >>> round(bound.least, 4), round(bound.eta, 4)
    (0.1333, 0.2178)
    >>> bound.error(1e6) < 5e-4
    True
    """
    from gibbsite.scan import Systematic

    scan = Systematic() if scan is None else scan
    if model.n_sites > _MOST_SITES:
        raise TooLargeError(
            f"The constants need all states of a model; it can have {_MOST_SITES} sites, this one has "
            f"{model.n_sites}."
        )
    if (model.cards != 2).any():
        raise IncompatibleError("The theorem is about sites with two states.")
    if scan.random:
        raise IncompatibleError(f"The theorem needs a fixed order, not {type(scan).__name__}.")
    exact = enumerate_states(model)
    if (exact.joint == 0.0).any():
        raise IncompatibleError("The constants are those of models without zeros; this one has some.")
    least = min(_least_conditional(exact.joint, i) for i in range(model.n_sites))
    matrix = sweep_matrix(exact, compile_graph(model), Gibbs(), scan)
    eta = max(0.5 * float(np.abs(matrix - row).sum(axis=1).max()) for row in matrix)
    n = model.n_sites
    l = least**n  # noqa: E741
    # the sum of (2 least)^k for k < N: also right where 2 least is one
    b = l + sum((2.0 * least) ** k for k in range(n))
    rate = math.inf if eta >= 1.0 else 2.0 * n * (1.0 + eta) / (l * (1.0 - eta))
    return HerdingBound(n, least, eta, l, b, rate, 2.0 * b / l)


def _least_conditional(joint: Any, site: int) -> float:
    """Return the smallest probability of a state of a site given the others."""
    return float((joint / joint.sum(axis=site, keepdims=True)).min())
