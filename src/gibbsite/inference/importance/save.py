"""Weighted draws as a header and arrays, for :func:`gibbsite.save` and :func:`gibbsite.load`.

The content depends on the result alone, so equal results give equal bytes. Entries:

``about``
    JSON (ASCII bytes): plan, sites and evidence, numbers about the weights, proposals. Numbers that JSON has
    no word for are written ``{"number": "inf"}``.
``cells``, ``errors``
    Probability of each state of each site, site after site, and its standard error.
``label_set``, ``site_numbers``
    As in :mod:`gibbsite.results.save`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import Archive
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Wanted, check_header
from gibbsite.inference.importance.estimate import WeightedEstimate
from gibbsite.inference.importance.verdict import FIGURES, diagnose
from gibbsite.results.save import describe_sites, read_numbers, read_sites, write_numbers

if TYPE_CHECKING:
    from gibbsite.inference.importance.result import WeightedResult

KIND, FORMAT = "gibbsite result of weighted draws", 1


def pack_weighted(result: WeightedResult) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the header and arrays of weighted draws; ``seconds``, which differs from run to run, is left out."""
    sites, arrays = describe_sites(result.domains, result.evidence, result.evidence_labels)
    numbers = asdict(result.estimate)
    arrays |= {"cells": numbers.pop("cells"), "errors": numbers.pop("errors")}
    content = {
        "estimate": numbers,
        "diagnostics": {**result.diagnostics.figures, "reasons": list(result.diagnostics.reasons)},
        "sources": list(result.sources),
        "plan": result.plan,
        "remarks": list(result.remarks),
        "interrupted": result.interrupted,
    }
    return {"kind": KIND, "format": FORMAT, **sites, "content": write_numbers(content)}, arrays


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# What is told about weights; see gibbsite._common.boundary.fits.
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
    from gibbsite.inference.importance.result import WeightedResult

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
    told = content["diagnostics"]
    if set(told) != {"reasons", *FIGURES} or not all(_is_number(told[name]) for name in FIGURES):
        raise ValueError("the verdict is not made of numbers")
    return WeightedResult(
        domains=domains,
        evidence=evidence,
        evidence_labels=labels,
        estimate=WeightedEstimate(arrays["cells"], arrays["errors"], **content["estimate"]),
        diagnostics=diagnose(tuple(told.pop("reasons")), told),
        sources=tuple(content["sources"]),
        plan=content["plan"],
        remarks=tuple(content["remarks"]),
        interrupted=content["interrupted"],
    )
