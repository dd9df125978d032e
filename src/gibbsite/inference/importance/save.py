"""Saved weighted draws: one ``.npz`` file of plain arrays and one JSON text, as other results.

The file depends on the content of the result alone, so equal results give equal bytes. Entries:

``about``
    JSON (ASCII bytes): plan, sites and evidence, numbers about the weights, proposals. Numbers that JSON has
    no word for are written ``{"number": "inf"}``.
``cells``, ``errors``
    Probability of each state of each site, site after site, and its standard error.
``label_set``, ``site_numbers``
    As in :mod:`gibbsite.results.save`.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.archive import Archive
from gibbsite._common.boundary import Wanted, check_header
from gibbsite.errors import FormatError
from gibbsite.inference.importance.estimate import Estimate
from gibbsite.inference.importance.verdict import WeightDiagnostics
from gibbsite.results.save import WEIGHTED_KIND, describe_sites, inconsistent, read_entries, read_sites, write_entries

if TYPE_CHECKING:
    from gibbsite.inference.importance.result import WeightedResult

FORMAT = 1


def save_weighted(result: WeightedResult, path: Path) -> None:
    """Save weighted draws; ``seconds``, which differs from run to run, is left out."""
    sites, arrays = describe_sites(result.domains, result.evidence, result.evidence_labels)
    numbers = asdict(result.estimate)
    arrays |= {"cells": numbers.pop("cells"), "errors": numbers.pop("errors")}
    content = {
        "estimate": numbers,
        "diagnostics": asdict(result.diagnostics),
        "sources": list(result.sources),
        "plan": result.plan,
        "remarks": list(result.remarks),
        "interrupted": result.interrupted,
    }
    write_entries(path, {"kind": WEIGHTED_KIND, "format": FORMAT, **sites, "content": _write(content)}, arrays)


def load_weighted(path: str | Path) -> dict[str, Any]:
    """Return the attributes of weighted draws that were saved.

    Raises
    ------
    FormatError
        If there is no such file, or it is no complete result of weighted draws.
    """
    path = Path(path)
    with read_entries(path, WEIGHTED_KIND) as (about, archive):
        if about.get("format") != FORMAT:
            raise FormatError(
                f"the result was saved in format {about.get('format')!r:.20}, this version of gibbsite reads "
                f"{FORMAT}; use the version that saved it.",
                str(path),
            )
        return inconsistent(path, lambda: _build(about, archive))


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


def _build(about: dict[str, Any], archive: Archive) -> dict[str, Any]:
    domains, evidence, labels = read_sites(about, archive)
    content = _read(about["content"])
    check_header(content, _CONTENT, archive.fail)
    states = (int(domains.cards.sum()),)
    arrays = archive.admit(
        {
            "cells": Wanted(np.float64, states, -1e-9, 1 + 1e-9, missing=True),
            "errors": Wanted(np.float64, states, 0, finite=False, missing=True),
        }
    )
    told = content["diagnostics"]
    if not all(_is_number(one) for name, one in told.items() if name != "reasons"):
        raise ValueError("the verdict is not made of numbers")
    return {
        "domains": domains,
        "evidence": evidence,
        "evidence_labels": labels,
        "estimate": Estimate(arrays["cells"], arrays["errors"], **content["estimate"]),
        "diagnostics": WeightDiagnostics(**{**told, "reasons": tuple(told["reasons"])}),
        "sources": tuple(content["sources"]),
        "plan": content["plan"],
        "remarks": tuple(content["remarks"]),
        "interrupted": content["interrupted"],
    }


def _write(value: Any) -> Any:
    """Return plain data with numbers that JSON has no word for in words."""
    if isinstance(value, dict):
        return {key: _write(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_write(one) for one in value]
    return {"number": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _read(value: Any) -> Any:
    """Undo :func:`_write`."""
    if isinstance(value, dict):
        return float(value["number"]) if set(value) == {"number"} else {k: _read(one) for k, one in value.items()}
    return [_read(one) for one in value] if isinstance(value, list) else value
