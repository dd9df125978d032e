"""Real models: small ones of this repository, and larger ones where a data folder is at hand.

The data folder is the one that the environment variable ``GIBBSITE_DATA`` names, otherwise ``shared/data``
beside the repository. Nothing else says where it is.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.data import DATA, ROOT
from gibbsite.formats.files import EXAMPLES, example_path

__all__ = ["DATA", "HERE", "ROOT", "known_answers", "needs_data", "network_files"]

HERE = ROOT / "tests" / "networks"


def needs_data(*names: str) -> pytest.MarkDecorator:
    """Skip a test, by name, unless these files or folders are in the data folder."""
    missing = [name for name in names if not (DATA / name).exists()]
    return pytest.mark.skipif(bool(missing), reason=f"not in the data folder: {', '.join(missing)}")


def network_files() -> dict[str, Path]:
    """Return Bayesian networks by name: the examples of the package, and those of the data folder."""
    found = {path.name.partition(".")[0]: path for path in sorted(DATA.glob("bif/*.bif.gz"))}
    return {**found, **{name: example_path(name) for name in EXAMPLES}}


def known_answers(name: str) -> Any:
    """Return states, evidence and exact marginals of a network."""
    if name in EXAMPLES:
        return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    with gzip.open(DATA / "bif" / "exact" / f"{name}.json.gz") as file:
        return json.load(file)
