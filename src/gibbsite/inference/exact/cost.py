"""Predicted cost of exact inference, known before any table is allocated, and limits on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsite._common.wording import in_python, part
from gibbsite.errors import TooLargeError
from gibbsite.graphs.elimination.order import EliminationOrder
from gibbsite.inference.exact.tree import CliqueTree

# Measured seconds per entry of a clique that is multiplied or summed once, per byte of memory, and per clique.
_PER_ENTRY = 1e-9
_PER_BYTE = 1e-9
_PER_CLIQUE = 2e-6
_MOST = float(np.finfo(np.float64).max)
_YEAR = 3.156e7
MOST_BYTES = 8e9


@dataclass(frozen=True)
class ExactCost:
    """Size of an exact computation.

    For infeasible computations these are lower bounds, capped at the largest float.

    Attributes
    ----------
    largest : float
        Entries of the largest clique, which is never stored as a whole.
    entries : float
        Entries of all cliques.
    bytes : float
        Memory for all tables that are stored at the same time.
    seconds : float
        Rough time for all marginals.

    Examples
    --------
    >>> import gibbsite as gs
    >>> cost = gs.exact.predict_exact(gs.ising_grid((8, 30)))
    >>> cost.largest <= 2**12, cost.bytes < 10e6
    (True, True)
    """

    largest: float
    entries: float
    bytes: float
    seconds: float

    def line(self) -> str:
        """Return size and time as text."""
        beyond = "more than 1e308" if self.largest >= _MOST else f"{self.largest:,.4g}"
        return f"largest clique {beyond} entries, {_duration(self.seconds)}"


@dataclass(frozen=True)
class Limits:
    """Limits on a computation; None means no limit."""

    bytes: float = MOST_BYTES
    entries: float = 2.0**31
    seconds: float | None = None

    def check(self, cost: ExactCost) -> None:
        """Raise :class:`TooLargeError` if a cost exceeds a limit."""
        if cost.largest > self.entries:
            problem = f"a table of {_count(cost.largest)} entries, more than the limit of {_count(self.entries)}"
            advice = "limit_entries"
        elif cost.bytes > self.bytes:
            problem = f"{_memory(cost.bytes)} of memory, more than the limit of {_memory(self.bytes)}"
            advice = "limit_bytes"
        elif self.seconds is not None and cost.seconds > self.seconds:
            problem = f"about {cost.seconds:.3g} seconds, more than the {self.seconds:g} allowed"
            advice = "seconds"
        else:
            return
        instead = part("Gibbs", "a sampler") + in_python(f" or raise {advice}")
        raise TooLargeError(f"Exact inference needs {problem}; use {instead}.")


def cost_of_order(order: EliminationOrder) -> ExactCost:
    """Estimate the cost of an order whose cliques are too large to be listed."""
    largest = float(np.exp2(order.log2_largest)) if order.log2_largest < 1023 else _MOST
    total = order.total if order.total < np.inf else largest
    return ExactCost(largest, total, min(8.0 * total, _MOST), 10 * _PER_ENTRY * total)


def cost_of_tree(tree: CliqueTree, potentials: float = 0.0) -> ExactCost:
    """Return the cost of passing through a clique tree twice."""
    inner = tree.parent >= 0
    children = np.bincount(tree.parent[inner], minlength=tree.own.size)
    below = np.bincount(tree.parent[inner], tree.separator[inner], minlength=tree.own.size)
    # tables read and written per entry: potentials and messages in both passes, then messages and sites
    passes = tree.size * (5.0 + 3.0 * children)
    memory = 8.0 * (potentials + float(tree.separator.sum()) + float(below.max(initial=0.0)))
    return ExactCost(
        largest=float(tree.size.max(initial=1.0)),
        entries=float(tree.size.sum()),
        bytes=memory,
        seconds=_PER_ENTRY * float(passes.sum()) + _PER_BYTE * memory + _PER_CLIQUE * tree.own.size,
    )


def _duration(seconds: float) -> str:
    if seconds > 1000 * _YEAR:
        return "more than a thousand years"
    for unit, length in (("years", _YEAR), ("days", 86_400.0)):
        if seconds > 2.0 * length:
            return f"about {seconds / length:,.0f} {unit}"
    return f"about {max(seconds, 0.001):,.2g} s"


def _count(number: float) -> str:
    if number < 1e6:
        return f"{number:,.0f}"
    return f"{number:.3g}" if number < 1e30 else f"2^{np.log2(number):.0f}"


def _memory(size: float) -> str:
    power = min(int(np.log10(max(size, 1.0))) // 3, 4) if size < np.inf else 4
    size /= 1000.0**power
    return f"{_count(size) if size > 1e6 else f'{size:.3g}'} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
