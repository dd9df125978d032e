"""Binary quadratic models as coordinate text (``.coo``): lines ``i j bias``, as dimod writes them.

They define an energy, and the model is ``p(x) ~ exp(-beta * E(x))``, as in `bqm`.
"""

from __future__ import annotations

import re

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite.formats.objects.bqm import IsingTerms, decimal, energy_of, model_in
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.registry import register, sites_are_numbers, states_are_bits_or_spins
from gibbsite.models.factorgraph import FactorGraph

_VARTYPE = re.compile(rb"^[ \t\f]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)
_OFFSET = re.compile(rb"^[ \t\f]*#[ \t]*offset[:=][ \t]*(\S+)", re.MULTILINE)
_LABEL = re.compile(r"0|[1-9][0-9]{0,14}")


@checked
def read_coo(path: PathLike, *, vartype: str | None = None, beta: float = 1.0) -> FactorGraph:
    r"""Read a binary quadratic model from lines ``i j bias``, a line ``i i bias`` being linear.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    vartype : {"SPIN", "BINARY"}, optional
        What the values are, if the file has no line ``# vartype=SPIN`` or ``# vartype=BINARY``.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        Sites in ascending order of their numbers, which are their names. Biases of the same pair
        add up. A line ``# offset=1.5`` gives a constant energy.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pair.coo")
    ...     _ = path.write_text("# vartype=SPIN\n0 0 0.5\n0 7 -1")
    ...     read_coo(path).log_potential({"0": 1, "7": 1})
    0.5
    """
    return parse_coo(load(path), vartype=vartype, beta=beta)


def parse_coo(source: Source, *, vartype: str | None = None, beta: float = 1.0) -> FactorGraph:
    """Return the model in the content of a file."""
    for match in _VARTYPE.finditer(source.data):
        found = match[1].decode("ascii")
        if vartype is not None and found != vartype:
            raise source.error(f"expected the vartype {vartype}, found {found}.", match.start(1))
        vartype = found
    if vartype not in ("SPIN", "BINARY"):
        raise source.error("expected a line '# vartype=SPIN' or '# vartype=BINARY', or the vartype given.")
    offset = 0.0
    for match in _OFFSET.finditer(source.data):
        offset = _float(source, match)
    numbers = Numbers(source)
    starts, sizes = numbers.rows()
    if (sizes != 3).any():
        k = int(starts[np.argmax(sizes != 3)])
        raise numbers.error(k, "expected three numbers on this line: two variables and a bias.")
    values = numbers.values.reshape(-1, 3)
    labels = values[:, :2]
    fine = np.ones(values.shape, np.bool_)
    fine[:, :2] = (labels >= 0) & (labels < 2**53) & (labels == np.floor(labels))
    numbers.require(fine.reshape(-1), "expected the number of a variable, from 0 on, found {}.")
    numbers.require(np.isfinite(numbers.values), "this bias is too large; expected a smaller one.")
    known, inverse = np.unique(labels.astype(np.int64), return_inverse=True)
    pairs = inverse.reshape(-1, 2).astype(np.int32)
    own = pairs[:, 0] == pairs[:, 1]
    linear: Floats = np.bincount(pairs[own, 0], values[own, 2], len(known)).astype(np.float64)
    return model_in(source, known.tolist(), vartype, IsingTerms(linear, pairs[~own], values[~own, 2], offset), beta)


def _float(source: Source, match: re.Match[bytes]) -> float:
    try:
        value = float(match[1])
    except ValueError:
        value = np.inf
    if not np.isfinite(value):
        raise source.error("expected a number as offset.", match.start(1))
    return value


@checked
def write_coo(model: FactorGraph, path: PathLike, *, beta: float = 1.0) -> None:
    """Write a model of two-state sites and at most pairwise factors as coordinate text.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero. Sites
        whose names are not all numbers are numbered by position.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.
    beta : float
        Inverse temperature: the energy is ``-log_potential / beta``.

    Examples
    --------
    >>> from gibbsite.models import ising
    >>> write_coo(ising([[0, 0.5], [0.5, 0]]), "-")
    # vartype=SPIN
    0 0 0
    1 1 0
    0 1 -0.5
    """
    save(path, format_coo(model, beta=beta))


def format_coo(model: FactorGraph, *, beta: float = 1.0) -> str:
    """Return a model as the text of a file."""
    vartype, terms = energy_of(model, beta)
    names = list(model.sites)
    if not all(_LABEL.fullmatch(name) for name in names):
        names = [str(k) for k in range(len(names))]
    lines = [f"# vartype={vartype}"]
    if terms.offset:
        lines.append(f"# offset={terms.offset!r}")
    lines += [f"{name} {name} {decimal(bias)}" for name, bias in zip(names, terms.fields, strict=True)]
    pairs = zip(terms.pairs.tolist(), terms.couplings, strict=True)
    lines += [f"{names[i]} {names[j]} {decimal(bias)}" for (i, j), bias in pairs]
    return "\n".join([*lines, ""])


register(
    name="coo",
    suffixes=(".coo",),
    parse=parse_coo,
    write=write_coo,
    recognise=re.compile(rb"(?:\s*+#[^\n]*+\n)*?\s*+#[^\n]*?vartype[:=]").match,
    keeps_sites=sites_are_numbers,
    keeps_states=states_are_bits_or_spins,
)
