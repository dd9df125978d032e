"""What experiments find in quick mode, each run once: tests of a family are in one file, for one worker."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import gibbsite as gs

FAMILIES = ("herded", "dogs", "poisson", "notes", "tempering")


def family(name: str) -> list[str]:
    """Return the names of the experiments of a family."""
    return [each for each in gs.lab.NAMES if each.startswith(f"{name}-")]


@cache
def findings(name: str) -> gs.lab.Findings:
    return gs.lab.run(name, quick=True, rng=1, progress=False)


def claims(name: str, subject: str = "") -> dict[str, str]:
    """Return whether what a paper says holds, by what it says."""
    return {row[0]: row[2] for row in findings(name).table(f"Paper against ours{subject}").rows}


def check_what_it_says_and_saves(name: str, folder: Path) -> None:
    """Check what all experiments have in common."""
    experiment, found = gs.lab.find(name), findings(name)
    assert (experiment.name, found.name, found.quick, found.rng) == (name, name, True, 1)
    assert experiment.title
    assert "(" in experiment.source  # a year
    assert any(table.title.startswith("Paper against ours") for table in found.tables)
    paths = experiment.save(found, folder / "new" / "folder")
    assert [path.name for path in paths] == [f"{name}.json", f"{name}.png"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    saved = json.loads(paths[0].read_text(encoding="utf-8"))
    assert saved == json.loads(json.dumps(found.to_dict()))
    assert saved["tables"][0]["rows"]
    assert all(table.title in found.text() for table in found.tables)
