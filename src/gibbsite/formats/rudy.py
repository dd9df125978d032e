"""Max-cut problems (``.rudy``, also Gset and Biq Mac): ``n m``, then lines ``i j w``, vertices from 1.

A cut divides the vertices in two, and its value is the sum of the weights of the edges between the parts. The parts are
the labels -1 and 1, couplings are ``J = -w``, and the constant is the sum W of all weights: the log-potential of a
state, ``W - sum of w s_i s_j``, is twice the value of its cut (times beta), and a most probable state is a largest cut.
"""

from __future__ import annotations

import re

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite.formats.objects.bqm import IsingTerms, decimal, edges_of, read_beta, spin_model
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import COMMENTS, PathLike, Source, load, save
from gibbsite.formats.registry import register, sites_are_numbers, states_are_bits_or_spins
from gibbsite.models.factorgraph import FactorGraph

_FREE_VERTICES = 100_000  # most vertices without edges


@checked
def read_rudy(path: PathLike, *, beta: float = 1.0) -> FactorGraph:
    r"""Read a max-cut problem.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input. Its first line has the numbers of vertices and
        edges, each further line an edge: two vertices, and a weight (1 if no line has one).
    beta : float
        Inverse temperature: couplings are ``-beta * w``.

    Returns
    -------
    FactorGraph
        Sites "1" to "n" with labels -1 and 1. ``model.log_potential(x) / (2 * beta)`` is the value of the cut
        between the sites at -1 and those at 1.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "path.rudy")
    ...     _ = path.write_text("3 2\n1 2 5\n2 3 -1")
    ...     model = read_rudy(path)
    >>> model.log_potential({"1": 1, "2": -1, "3": -1}) / 2  # cuts the first edge
    5.0
    """
    return parse_rudy(load(path), beta=beta)


def parse_rudy(source: Source, *, beta: float = 1.0) -> FactorGraph:
    """Return the model in the content of a file."""
    numbers = Numbers(source)
    starts, sizes = numbers.rows()
    if not len(sizes) or sizes[0] != 2:
        raise numbers.error(0, "expected the numbers of vertices and edges on this line, and nothing else.")
    m = numbers.whole(1, "the number of edges", 0, 2**53)
    n = numbers.whole(0, "the number of vertices", 0, min(2**31 - 1, _FREE_VERTICES + 2 * m))
    width = 2 if (sizes[1:] == 2).all() else 3
    if (sizes[1:] != width).any():
        k = int(starts[1:][np.argmax(sizes[1:] != width)])
        raise numbers.error(k, "expected three numbers on this line: two vertices and a weight.")
    if len(sizes) - 1 != m:
        k = int(starts[1 + m]) if len(sizes) - 1 > m else len(numbers)
        raise numbers.error(k, f"{m:,} edges are declared, but {len(sizes) - 1:,} are listed.")
    rows = numbers.values[2:].reshape(m, width)
    fine = np.isfinite(rows)
    fine[:, :2] &= (rows[:, :2] >= 1) & (rows[:, :2] <= n) & (rows[:, :2] == np.floor(rows[:, :2]))
    numbers.require(fine.reshape(-1), f"expected a vertex from 1 to {n}, or a finite weight, found {{}}.", 2)
    pairs = rows[:, :2].astype(np.int64) - 1
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    numbers.require(low != high, "this edge joins a vertex with itself, which nothing can cut.", 2, width)
    _, first = np.unique(low * n + high, return_index=True)
    fresh = np.zeros(m, np.bool_)
    fresh[first] = True
    numbers.require(fresh, "this edge is listed before; list each edge once, with the sum of its weights.", 2, width)
    weights = rows[:, 2] if width == 3 else np.ones(m)
    with np.errstate(over="ignore"):
        if not np.isfinite(2.0 * np.abs(weights).sum()):
            raise source.error("the sum of these weights is too large; expected smaller ones.")
    # energy -2 cut: the constant makes the log-potential twice the value of the cut
    terms = IsingTerms(np.zeros(n), pairs.astype(np.int32), weights, -float(weights.sum()))
    return spin_model(range(1, n + 1), (-1, 1), terms, beta)


@checked
def write_rudy(model: FactorGraph, path: PathLike, *, beta: float = 1.0) -> None:
    """Write a model of two-state sites, pairs and no fields as a max-cut problem.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero, and nothing favours
        one state of a site by itself. Vertices are numbered by position; the constant is not written.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.
    beta : float
        Inverse temperature: weights are ``-J / beta``.

    Examples
    --------
    >>> from gibbsite.models import ising
    >>> write_rudy(ising([[0, 0.5, 0], [0.5, 0, -1], [0, -1, 0]]), "-")
    3 2
    1 2 -0.5
    2 3 1
    """
    save(path, format_rudy(model, beta=beta))


def format_rudy(model: FactorGraph, *, beta: float = 1.0) -> str:
    """Return a model as the text of a file."""
    pairs, couplings = edges_of(model)
    weights = -couplings / read_beta(beta)
    lines = [f"{model.n_sites} {len(pairs)}"]
    lines += [f"{i} {j} {decimal(w)}" for (i, j), w in zip((pairs + 1).tolist(), weights.tolist(), strict=True)]
    return "\n".join([*lines, ""])


# two whole numbers on the first line, three numbers on the next
_OPENING = re.compile(COMMENTS + rb"\d++[ \t]++\d++[ \t\r]*+\n\s*+\d++[ \t]++\d++[ \t]++[-+.\d]")
register(
    name="rudy",
    suffixes=(".rudy", ".gset", ".mc"),
    parse=parse_rudy,
    write=write_rudy,
    recognise=_OPENING.match,
    vague=True,
    first_site=1,
    keeps_sites=sites_are_numbers,
    keeps_states=states_are_bits_or_spins,
)
