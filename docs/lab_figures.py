"""Figures of the lab page: ``python docs/lab_figures.py [FOLDER]`` writes the tables of runs into ``docs/lab.md``.

FOLDER is what ``gibbsite reproduce all -o FOLDER`` has written, or a part of it. Its tables are kept in
``docs/lab/NAME.json``, without the curves of the figures; without a FOLDER, the kept ones are written again. In the
page they stand between ``<!-- findings of NAME -->`` and ``<!-- end of findings -->``. A run does not replace a
longer one.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from gibbsite.lab.findings import Table

ROOT = Path(__file__).parent
PAGE, KEPT = ROOT / "lab.md", ROOT / "lab"
_BLOCK = re.compile(r"<!-- findings of ([a-z0-9-]+) -->\n.*?<!-- end of findings -->", re.S)


def keep(folder: Path) -> list[str]:
    """Keep the tables of the runs in a folder; return the names of the experiments."""
    names = []
    for path in sorted(folder.rglob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        name = found.get("experiment") if isinstance(found, dict) else None
        if name is None or path.stem != name:
            continue
        target = KEPT / f"{name}.json"
        if target.exists() and _length(found) < _length(json.loads(target.read_text(encoding="utf-8"))):
            continue
        del found["arrays"]
        found["data"] = re.sub(r", from .*", ", from the data folder.", found["data"])
        KEPT.mkdir(exist_ok=True)
        target.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        names.append(name)
    return names


def _length(found: dict[str, Any]) -> int:
    """Return 0 for a quick run, 1 for a full one, and 2 for one with as many draws as in the paper."""
    return 2 if found.get("long") else 0 if found["quick"] else 1


def show(found: dict[str, Any]) -> str:
    """Return the tables of a run as Markdown."""
    options = ("--quick ", "", "--long ")[_length(found)]
    lines = [f"`gibbsite reproduce {found['experiment']} {options}--rng {found['rng']}`. {found['data']}"]
    for given in found["tables"]:
        table = Table(given["title"], given["columns"], given["rows"])
        rows = [list(table.columns), ["---"] * len(table.columns), *table.shown()]
        lines += ["", f"*{_plain(table.title)}*", "", *("| " + " | ".join(map(_plain, row)) + " |" for row in rows)]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return a text without what Markdown would take for markup."""
    return re.sub(r"([|*_<>$\\])", r"\\\1", text.replace("\n", " "))


def write_findings(page: str) -> str:
    """Return the page with the kept tables in their places."""

    def block(match: re.Match[str]) -> str:
        path = KEPT / f"{match[1]}.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        return f"<!-- findings of {match[1]} -->\n{show(found)}\n<!-- end of findings -->"

    return _BLOCK.sub(block, page)


def main(folders: list[str]) -> None:
    """Keep the runs in folders, and write the page."""
    for folder in folders:
        print(", ".join(keep(Path(folder))) or f"{folder} has no run of an experiment")
    PAGE.write_text(write_findings(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
