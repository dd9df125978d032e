"""Ising models as edge lists (``.edges``): lines ``a b`` or ``a b coupling``, in which sites are any words.

The model is ``p(s) ~ exp(sum of J s_a s_b)``, as of `nx`: a positive coupling favours equal states. Max-cut
problems are in `rudy`.
"""

from __future__ import annotations

import re

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite.errors import IncompatibleError
from gibbsite.formats.objects.bqm import decimal, edges_of
from gibbsite.formats.parsing.numerals import read_number
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.registry import register, states_are_bits_or_spins
from gibbsite.models.factorgraph import FactorGraph
from gibbsite.models.zoo import ising

TITLE = "# edge list of an Ising model: site, site, coupling"
# From the sign to the end of the line; inside a word the sign is part of the word.
_COMMENT = re.compile(rb"(?:^|(?<=[\s,;]))[#%].*")
_WORD = re.compile(rb"[^\s,;]+")


@checked
def read_edges(path: PathLike) -> FactorGraph:
    r"""Read an Ising model from a list of edges.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input. On each line are two sites and perhaps a coupling
        (1 if there is none), or a single site, with blanks, commas or semicolons between them; ``#`` and
        ``%`` begin comments.

    Returns
    -------
    FactorGraph
        Sites in order of appearance, named as in the file; see `gibbsite.models.ising`.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "path.edges")
    ...     _ = path.write_text("# a path\nada bob 0.5\nbob cyn")
    ...     model = read_edges(path)
    >>> model.sites, model.log_potential({"ada": 1, "bob": 1, "cyn": -1})
    (('ada', 'bob', 'cyn'), -0.5)
    """
    return parse_edges(load(path))


def parse_edges(source: Source) -> FactorGraph:
    """Return the model in the content of a file."""
    source.decoded()
    index: dict[bytes, int] = {}
    edges: dict[tuple[int, int], float] = {}
    at = 0
    for line in source.data.split(b"\n"):
        words = list(_WORD.finditer(_COMMENT.sub(b"", line)))
        if len(words) > 3:
            raise source.error("expected two sites and perhaps a coupling on this line.", at + words[3].start())
        ends = [index.setdefault(word[0], len(index)) for word in words[:2]]
        if len(ends) == 2:
            pair = (min(ends), max(ends))
            if pair[0] == pair[1]:
                raise source.error("this edge joins a site with itself.", at + words[1].start())
            if pair in edges:
                raise source.error("this edge is listed before; list each edge once.", at + words[0].start())
            edges[pair] = read_number(source, words[2][0], at + words[2].start()) if len(words) == 3 else 1.0
        at += len(line) + 1
    i, j = np.array(list(edges), np.int32).reshape(-1, 2).T
    names = [name.decode("utf-8") for name in index]
    return ising((i, j, np.fromiter(edges.values(), np.float64, len(edges))), sites=names)


@checked
def write_edges(model: FactorGraph, path: PathLike) -> None:
    """Write a model of two-state sites, pairs and no fields as a list of edges.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero, and nothing favours
        one state of a site by itself. The constant and the labels of states are not written.
    path : str or path
        The file, packed if it ends in ``.gz``; ``"-"`` is standard output.

    Examples
    --------
    >>> from gibbsite.models import ising
    >>> write_edges(ising(([0], [1], 0.5), sites=["ada", "bob", "cyn"]), "-")
    # edge list of an Ising model: site, site, coupling
    ada
    bob
    cyn
    ada bob 0.5
    """
    save(path, format_edges(model))


def format_edges(model: FactorGraph) -> str:
    """Return a model as the text of a file; sites first, so that their order stays."""
    pairs, couplings = edges_of(model)
    names = model.sites
    for name in names:
        written = name.encode("utf-8")
        if not _WORD.fullmatch(written) or written[:1] in b"#%":
            raise IncompatibleError(
                f"the site {name!r} cannot be written in an edge list, where names are words without blanks, "
                "commas and semicolons; rename it."
            )
    lines = [TITLE, *names]
    lines += [
        f"{names[i]} {names[j]} {decimal(w)}" for (i, j), w in zip(pairs.tolist(), couplings.tolist(), strict=True)
    ]
    return "\n".join([*lines, ""])


register(
    name="edges",
    suffixes=(".edges", ".edgelist"),
    parse=parse_edges,
    write=write_edges,
    recognise=lambda data: data.startswith(TITLE.encode()),
    keeps_states=states_are_bits_or_spins,
)
