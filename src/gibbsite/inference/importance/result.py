"""The answer of weighted draws, and its file format.

A file has the arrays ``cells`` and ``errors``, the probability of each state of each site and its standard error, the
sites as in :mod:`gibbsite.results.save`, and a header with everything else. Equal results give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import Archive
from gibbsite._common.arrays import Array, Floats
from gibbsite._common.boundary import Wanted, check_header
from gibbsite.errors import ArgumentError
from gibbsite.inference.importance.estimate import WeightedEstimate
from gibbsite.inference.importance.verdict import FIGURES, diagnose
from gibbsite.results.answer import Answer, Diagnostics
from gibbsite.results.joint import add_observed, find_free
from gibbsite.results.save import describe_sites, read_numbers, read_sites, write_numbers
from gibbsite.results.table import SiteTable
from gibbsite.results.wording import in_words

if TYPE_CHECKING:
    from gibbsite.models.domain import Domains


@dataclass(frozen=True, eq=False, repr=False)
class WeightedResult(Answer):
    """Marginals and the log-partition function from weighted draws, with errors and a verdict.

    Attributes
    ----------
    domains : Domains
        The sites and their states.
    evidence, evidence_labels : dict
        The evidence as given, and the states of observed sites.
    estimate : WeightedEstimate
        Probabilities, log Z and their errors as arrays, those of all proposals combined.
    sources : tuple of dict
        The proposals drawn from, with draws, effective size, log Z and its bound.

    Examples
    --------
    >>> import gibbsite as gs
    >>> found = gs.sample_weighted(gs.example("asia"), draws=40_000, rng=1, progress=False)
    >>> abs(found.marginals["bronc"]["yes"] - 0.45) < 0.02, found.diagnostics.n_draws
    (True, 40192)
    """

    domains: Domains
    evidence: Mapping[str, Any]
    evidence_labels: Mapping[str, Any]
    estimate: WeightedEstimate
    diagnostics: Diagnostics = field()
    sources: tuple[dict[str, Any], ...] = ()
    plan: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    interrupted: bool = False
    seconds: float = float("nan")

    @cached_property
    def marginals(self) -> SiteTable:
        """Probabilities of the states of all sites, observed ones included; NaN for sites not asked for."""
        return self._site_table(self.estimate.cells, False, 1.0)

    @cached_property
    def mcse(self) -> SiteTable:
        """Standard errors of the marginals."""
        return self._site_table(self.estimate.errors, False, 0.0)

    @property
    def log_z(self) -> float:
        """Estimate of the natural logarithm of the partition function, evidence included."""
        return self.estimate.log_z

    @property
    def log_z_error(self) -> float:
        """Standard error of :attr:`log_z`."""
        return self.estimate.log_z_error

    @property
    def n_draws(self) -> int:
        """Draws made."""
        return self.estimate.n_draws

    def joint(self, *sites: str | int) -> Floats:
        """Return the joint probabilities of a site and any observed ones; others were not recorded."""
        free = find_free(sites, self.domains, self.evidence)
        if len(free) > 1:
            raise ArgumentError(
                "weighted draws record the marginals of single sites, not joint probabilities; use "
                "gs.sample with record=gs.recorders.Joint(...)."
            )
        table = np.array(list(self.marginals[free[0]].values())) if free else np.ones(())
        return add_observed(table, sites, self.evidence, self.evidence_labels)

    def _pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the header and arrays of a file, without ``seconds``, which differ from run to run."""
        sites, arrays = describe_sites(self.domains, self.evidence, self.evidence_labels)
        numbers = asdict(self.estimate)
        arrays |= {"cells": numbers.pop("cells"), "errors": numbers.pop("errors")}
        content = {
            "estimate": _renamed(numbers, "n_draws", "draws"),
            "diagnostics": {
                **_renamed(self.diagnostics.figures, "n_draws", "draws"),
                "reasons": list(self.diagnostics.reasons),
            },
            "sources": list(self.sources),
            "plan": self.plan,
            "remarks": list(self.remarks),
            "interrupted": self.interrupted,
        }
        return {"kind": KIND, "format": FORMAT, **sites, "content": write_numbers(content)}, arrays

    def _lines(self, most: int) -> Iterator[str]:
        """Yield log Z and the proposals drawn from."""
        yield f"log Z {in_words(self.log_z, '.4f')} ±{in_words(self.log_z_error, '.4f')}"
        for one in self.sources:
            yield (
                f"{one['name']}: {one['draws']:,} draws, effective size {one['effective']:,.0f}, log Z "
                f"{in_words(one['log_z'], '.4f')}, log-weights at most {in_words(one['log_bound'], '.4f')}"
            )

    def __repr__(self) -> str:
        return f"WeightedResult({self.domains.n_sites:,} sites; {self.line()})"


KIND, FORMAT = "gibbsite result of weighted draws", 1


def _renamed(numbers: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """Return numbers with one of them under another name: files call the number of draws "draws"."""
    return {new if name == old else name: value for name, value in numbers.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# The pattern of a header; see gibbsite._common.boundary.fits.
_CONTENT = {
    "estimate": {str: _is_number},
    "diagnostics": {"reasons": [str]},
    "sources": [{"name": str} | dict.fromkeys(("draws", "effective", "log_z", "log_bound"), _is_number)],
    "plan": dict,
    "remarks": [str],
    "interrupted": bool,
}


def read_weighted(about: dict[str, Any], archive: Archive) -> WeightedResult:
    """Return the weighted draws that a header and its arrays describe."""
    domains, evidence, labels = read_sites(about, archive)
    content = read_numbers(about["content"])
    check_header(content, _CONTENT, archive.fail)
    states = (int(domains.cards.sum()),)
    arrays = archive.admit(
        {
            "cells": Wanted(np.float64, states, -1e-9, 1 + 1e-9, missing=True),
            "errors": Wanted(np.float64, states, 0, finite=False, missing=True),
        }
    )
    figures, numbers = (_renamed(content[name], "draws", "n_draws") for name in ("diagnostics", "estimate"))
    if set(figures) != {"reasons", *FIGURES} or not all(_is_number(figures[name]) for name in FIGURES):
        raise ValueError("the verdict is not made of numbers")
    return WeightedResult(
        domains=domains,
        evidence=evidence,
        evidence_labels=labels,
        estimate=WeightedEstimate(arrays["cells"], arrays["errors"], **numbers),
        diagnostics=diagnose(tuple(figures.pop("reasons")), figures),
        sources=tuple(content["sources"]),
        plan=content["plan"],
        remarks=tuple(content["remarks"]),
        interrupted=content["interrupted"],
    )
