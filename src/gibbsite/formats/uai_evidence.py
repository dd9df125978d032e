"""Evidence of the UAI competitions, in both layouts that occur.

The newer one is ``k v1 x1 ... vk xk``: how many variables are observed, then pairs of variable and
state. The older one has the number of evidence sets, always 1, on a line before that. The number of
numbers tells them apart: odd in the newer layout, even in the older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gibbsite.errors import ModelError
from gibbsite.formats.parsing.numerals import Numbers
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.models.domain import Label
from gibbsite.models.factorgraph import FactorGraph


def read_uai_evidence(path: PathLike, model: FactorGraph | None = None) -> dict[str, Label]:
    """Read UAI evidence.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    model : FactorGraph, optional
        The model the evidence is for, before any evidence; variables and states are then checked, and may have names.

    Returns
    -------
    dict
        Site name -> state label, as `FactorGraph.observe` takes it. Without a model names are the
        numbers of the variables, and labels the numbers of the states.

    Raises
    ------
    FormatError
        With file, line and column, and what was expected there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.uai.evid")
    ...     _ = path.write_text("2  5 1  7 0")
    ...     read_uai_evidence(path)
    {'5': 1, '7': 0}
    """
    return parse_uai_evidence(load(path), model)


def parse_uai_evidence(source: Source, model: FactorGraph | None = None) -> dict[str, Label]:
    """Return the evidence in the content of a file."""
    numbers = Numbers(source)
    start = _first_pair(numbers)
    values = numbers.values[start:]
    fine = (values >= 0) & (values < 2**31) & (values == np.floor(values))
    numbers.require(fine, "expected the number of a variable or state, found {}.", start)
    codes: dict[int, int] = {}
    for k, (site, code) in enumerate(values.astype(np.int64).reshape(-1, 2).tolist()):
        at = start + 2 * k
        if model is not None:
            if site >= model.n_sites:
                raise numbers.error(at, f"expected a variable from 0 to {model.n_sites - 1}, found {site}.")
            if code >= model.cards[site]:
                raise numbers.error(
                    at + 1, f"variable {site} has {model.cards[site]} states; expected one from 0 on, found {code}."
                )
        if codes.setdefault(site, code) != code:
            raise numbers.error(at, f"variable {site} is observed twice, as {codes[site]} and as {code}.")
    if model is None:
        return {str(site): code for site, code in codes.items()}
    return {model.sites[site]: model.labels(site)[code] for site, code in codes.items()}


def _first_pair(numbers: Numbers) -> int:
    """Return where the pairs begin, which depends on the layout."""
    total = len(numbers)
    count = numbers.whole(0, "the number of observed variables", 0, 2**53)
    if total == 2 * count + 1:
        return 1
    inner = float(numbers.values[1]) if total > 1 else -1.0
    if count == 1 and total % 2 == 0 and total == 2 * inner + 2 and not (inner == 0 and numbers.same_line(0, 1)):
        return 2
    if count > 1 and total > 1 and not numbers.same_line(0, 1):
        raise numbers.error(0, f"expected one evidence set, or all pairs of {count} observed variables on this line.")
    raise numbers.error(
        min(total, 2 * count + 1),
        f"expected {2 * count} numbers, a variable and a state {count} times, found {total - 1}.",
    )


def write_uai_evidence(evidence: Mapping[Any, Label], path: PathLike, model: FactorGraph) -> None:
    """Write evidence in the newer UAI layout.

    Parameters
    ----------
    evidence : mapping
        Site -> state label.
    path : str or path
        The file; ``"-"`` is standard output.
    model : FactorGraph
        The model before any evidence, which numbers the sites and states.

    Examples
    --------
    >>> model = FactorGraph({"rain": ["no", "yes"], "grass": ["dry", "wet"]})
    >>> write_uai_evidence({"grass": "wet"}, "-", model)
    1 1 1
    """
    pairs: dict[int, int] = {}
    for site, label in evidence.items():
        at = model.index(site)
        if at in pairs:
            raise ModelError(f"the evidence has the site {model.sites[at]!r} twice, by name and by position.")
        pairs[at] = model.code(at, label)
    words = [len(pairs), *(number for pair in sorted(pairs.items()) for number in pair)]
    save(path, " ".join(map(str, words)) + "\n")
