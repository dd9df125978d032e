"""Where real models are: the folder ``GIBBSITE_DATA`` names, or ``shared/data`` beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GIBBSITE_DATA") or ROOT.parent / "shared" / "data")
