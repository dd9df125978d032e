"""Folders of stored models, changed and sealed again with right checksums."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.models.stored import CHECKSUM, MANIFEST, hash_file, identify, sum_up


def renew(folder: Path, **changed: Any) -> None:
    """Make sizes and checksums of the manifest those of the files; change entries of it."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changed
    for name, about in manifest["files"].items():
        file = folder / f"{name}.npy"
        about |= {"bytes": file.stat().st_size, "blake2b": hash_file(file)}
    manifest["digest"] = identify(manifest)
    manifest[CHECKSUM] = sum_up(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def change(folder: Path, name: str, place: int, value: Any) -> None:
    """Change one number of an array, and seal the folder again."""
    found: NDArray[Any] = np.load(folder / f"{name}.npy")
    found[place] = value
    np.save(folder / f"{name}.npy", found)
    renew(folder)
