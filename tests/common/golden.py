"""Golden files: a small file of every stored format, as it was written once, and what must be read from it.

    python -m tests.common.golden

writes those that do not exist yet. Files that exist are never written again: they stand for files of users.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.campaigns.containers import CONTAINERS

FOLDER = Path(__file__).parent / "golden"
VALUES = FOLDER / "values.json"


def main() -> None:
    """Write files that do not exist yet, and what is read from them."""
    FOLDER.mkdir(exist_ok=True)
    known: dict[str, Any] = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    for name, container in CONTAINERS.items():
        if name not in known:
            container.make(FOLDER / name)
            known[name] = read(name, FOLDER)
    VALUES.write_text(json.dumps(known, indent=1) + "\n")


def read(name: str, folder: Path) -> Any:
    """Return what is read from a golden file; a copy is used, because runs go on writing to checkpoints."""
    path, spare = FOLDER / name, folder / f"{name}.copy"
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, spare)
    try:
        return json.loads(json.dumps(CONTAINERS[name].use(spare)))
    finally:
        if spare.is_dir():
            shutil.rmtree(spare)
        else:
            spare.unlink()


if __name__ == "__main__":
    main()
