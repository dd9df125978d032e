"""Real models whose marginals are known: the UAI and BIF models of a data folder."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import gibbsite as gs
from gibbsite.results.table import SiteTable

Known = dict[str, list[float]]
Case = tuple[str, Callable[[], tuple[gs.FactorGraph, Known]]]


def networks(folder: Path) -> Iterator[Case]:
    """Yield models with exact marginals by name, evidence folded in."""
    for case in json.loads((folder / "uai/index.json").read_text()):
        path = folder / "uai" / case["path"]
        found = [p for p in (Path(f"{path}.uai.MAR"), Path(f"{path}.uai.MAR.gz")) if p.exists()]
        if found:
            yield case["path"], lambda path=path, mar=found[0]: _read_uai(path, mar)
    for file in sorted((folder / "bif").glob("*.bif.gz")):
        for law in ("prior", "posterior"):
            yield f"bif/{file.name.split('.')[0]}-{law}", lambda file=file, law=law: _read_bif(file, law)


def largest_error(marginals: SiteTable, known: Known) -> float:
    """Return the largest error of a marginal; 1 where one is not a number."""
    errors = [abs(p - q) for site, law in known.items() for p, q in zip(marginals[site].values(), law, strict=True)]
    return 1.0 if any(math.isnan(error) for error in errors) else float(max(errors, default=0.0))


def _read_uai(path: Path, mar: Path) -> tuple[gs.FactorGraph, Known]:
    model = gs.read_model(f"{path}.uai.gz")
    evidence = gs.read_evidence(f"{path}.uai.evid", model)
    text = _read_text(mar)
    words = iter(text.split()[1:])
    count = int(next(words))
    known = {str(i): [float(next(words)) for _ in range(int(next(words)))] for i in range(count)}
    return (model.observe(evidence) if evidence else model), known


def _read_text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


def _read_bif(file: Path, law: str) -> tuple[gs.FactorGraph, Known]:
    model = gs.read_model(str(file))
    exact = json.loads(_read_text(file.parent / "exact" / file.name.replace(".bif", ".json")))
    if law == "posterior":
        model = model.observe(exact["evidence"])
    return model, exact[law]
