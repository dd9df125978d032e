"""Saved weighted draws: one ``.npz`` file of plain arrays and one JSON text, as other results.

The file depends on the content of the result alone, so equal results give equal bytes. Entries:

``about``
    JSON (ASCII bytes): plan, sites and evidence, numbers about the weights, proposals. Numbers that JSON has
    no word for are written ``{"number": "inf"}``.
``cells``, ``errors``
    Probability of each state of each site, site after site, and its standard error.
``label_set``, ``site_numbers``
    As in :mod:`gibbsite.result.save`.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gibbsite.errors import FormatError
from gibbsite.importance.estimate import Estimate
from gibbsite.importance.verdict import WeightDiagnostics
from gibbsite.result.save import (
    UNREADABLE,
    WEIGHTED_KIND,
    describe_sites,
    read_entries,
    read_sites,
    write_entries,
)

if TYPE_CHECKING:
    from gibbsite.importance.result import WeightedResult

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
    write_entries(
        path, {"kind": WEIGHTED_KIND, "format": FORMAT, **sites, "content": _write(content)}, arrays
    )


def load_weighted(path: str | Path) -> dict[str, Any]:
    """Return the attributes of weighted draws that were saved.

    Raises
    ------
    FormatError
        If there is no such file, or it is no complete result of weighted draws.
    """
    path = Path(path)
    about, arrays = read_entries(path, WEIGHTED_KIND)
    if about.get("format") != FORMAT:
        raise FormatError(
            f"the result was saved in format {about.get('format')}, this version of gibbsite reads {FORMAT}; "
            "use the version that saved it.",
            str(path),
        )
    try:
        domains, evidence, labels = read_sites(about, arrays)
        content = _read(about["content"])
        cells, errors = arrays["cells"], arrays["errors"]
        if cells.shape != (int(domains.cards.sum()),) or errors.shape != cells.shape:
            raise ValueError("sites and cells do not match")
        told = content["diagnostics"]
        return {
            "domains": domains,
            "evidence": evidence,
            "evidence_labels": labels,
            "estimate": Estimate(cells, errors, **content["estimate"]),
            "diagnostics": WeightDiagnostics(**{**told, "reasons": tuple(told["reasons"])}),
            "sources": tuple(content["sources"]),
            "plan": content["plan"],
            "remarks": tuple(content["remarks"]),
            "interrupted": content["interrupted"],
        }
    except UNREADABLE as reason:
        said = (str(reason).splitlines() or [type(reason).__name__])[0]
        raise FormatError(f"the saved result is inconsistent ({said}); save it again.", str(path)) from None


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
        return (
            float(value["number"])
            if set(value) == {"number"}
            else {k: _read(one) for k, one in value.items()}
        )
    return [_read(one) for one in value] if isinstance(value, list) else value
