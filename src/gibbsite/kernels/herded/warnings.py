"""What is known about a herded run in advance: a theorem, an error floor, or sites that move in step.

A site without neighbours has one weight, which turns by its probabilities p with every visit, like the hand
of a clock. Two such sites visited equally often sample their joint distribution if their probabilities and 1 are
rationally independent, and not if they are equal, or equal after a change of names: the hands keep their
distance for ever. That is looked for here; other rational relations are not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Words32
from gibbsite._common.wording import Text, part
from gibbsite.errors import GibbsiteError
from gibbsite.graphs.color import markov_graph
from gibbsite.graphs.compile import as_tables
from gibbsite.graphs.kinds.distance import DistanceGraph
from gibbsite.graphs.kinds.ising import IsingGraph
from gibbsite.graphs.kinds.lattice import LatticeGraph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.graphs.rows import row_lengths
from gibbsite.kernels.base import KernelWarning
from gibbsite.kernels.herded.keys import named
from gibbsite.kernels.herded.theorem import herding_bound

if TYPE_CHECKING:
    from gibbsite.graphs.graph import Graph
    from gibbsite.models import FactorGraph
    from gibbsite.scans.base import Scan

_PARTS = 2.0**32  # probabilities are whole multiples of the inverse, as weights of two states count


def holds_all(start: Words32, member: Words32) -> bool:
    """Return whether every row of compressed rows has all sites but its own."""
    n = start.size - 1
    degree = row_lengths(start)
    if (degree < n - 1).any():
        return False
    owner = np.repeat(np.arange(n), degree)
    return np.unique(owner * n + member).size == n * (n - 1)  # a neighbour may be there twice


def floor_warning(keys: str, full_fits: bool) -> KernelWarning:
    """Warn that nothing is guaranteed where keys leave something out."""
    instead = f"; {named(keys='full')} has none." if full_fits else "."
    return KernelWarning(
        Text(
            "Convergence of herded Gibbs to the joint distribution is not guaranteed here, because "
            f"{named(keys=keys)} does not distinguish all states of the other sites: errors fall to a floor "
            f"that is often small, but not known{instead}"
        )
    )


def theorem_warning(model: FactorGraph, scan: Scan) -> tuple[KernelWarning, ...]:
    """Report the constants of the theorem, where it is about such a model and they are finite."""
    try:
        bound = herding_bound(model, scan)
    except GibbsiteError:
        return ()
    if not math.isfinite(bound.rate):
        return ()
    return (KernelWarning(f"The theorem of herded Gibbs applies: {bound.line()}."),)


def in_step_warning(model: FactorGraph, graph: Graph, bins: int | None = None) -> tuple[KernelWarning, ...]:
    """Name two sites without neighbours that have the same probabilities, if there are any.

    ``bins``: probabilities are rounded at random to multiples of 1 / bins, so that only sites are in
    step that have such ones.
    """
    alone = find_isolated(graph)
    if alone.size < 2:
        return ()
    law = _laws(graph, alone)
    parts = np.rint(law * _PARTS).astype(np.int64)
    free = parts[:, 1] > 0  # a site with one possible state never moves
    if bins is not None:
        free &= (law * bins == np.rint(law * bins)).all(axis=1)
    alone, parts = alone[free], parts[free, :-1]
    order = np.lexsort(parts.T)
    same = (parts[order[1:]] == parts[order[:-1]]).all(axis=1)
    if not same.any():
        return ()
    pairs = np.flatnonzero(same)
    first = pairs[np.argmin(order[pairs])]
    names = [model.domains.names[int(site)] for site in alone[order[first : first + 2]]]
    moved = np.zeros(order.size, np.bool_)
    moved[pairs] = moved[pairs + 1] = True
    return (
        KernelWarning(
            Text(
                f"The sites {names[0]!r} and {names[1]!r} have no neighbours and equal or complementary "
                "probabilities, so herding moves them in step: their marginals are right, but their joint "
                f"distribution is not sampled, however long the run ({int(moved.sum()):,} sites have such a partner). "
                f"Use {named(rule='bounded')}, or {part('Gibbs')}, where joint probabilities matter."
            ),
            grave=True,
        ),
    )


def find_isolated(graph: Graph) -> Ints:
    """Return the sites that share a factor with no other."""
    arrays = graph.arrays
    if isinstance(arrays, LatticeGraph | DistanceGraph):
        return np.arange(graph.n_sites if graph.n_sites < 2 else 0)
    if isinstance(arrays, TableGraph):
        width = row_lengths(arrays.member_start)
        alone = np.ones(graph.n_sites, np.bool_)
        alone[arrays.member[np.repeat(width > 1, width)]] = False
        return np.flatnonzero(alone)
    return np.flatnonzero(row_lengths(markov_graph(graph)[0]) == 0)


def _laws(graph: Graph, alone: Ints) -> Floats:
    """Return the probabilities of sites without neighbours, falling: names of states do not matter."""
    arrays = graph.arrays
    if not isinstance(arrays, IsingGraph | LatticeGraph) and not hasattr(arrays, "log_unary"):
        arrays = as_tables(graph).arrays
    if isinstance(arrays, IsingGraph | LatticeGraph):
        logs = np.stack([np.zeros(alone.size), -np.abs(arrays.field[alone])], axis=1)
    else:
        cards = graph.cards[alone]
        state = np.arange(max(int(cards.max()), 2))
        has = state < cards[:, None]
        at = np.where(has, arrays.offset[alone][:, None] + state, 0)
        logs = -np.sort(-np.where(has, arrays.log_unary[at], -np.inf), axis=1)
    weights: Floats = np.exp(logs - logs[:, :1])
    weights /= weights.sum(axis=1, keepdims=True)
    return weights
