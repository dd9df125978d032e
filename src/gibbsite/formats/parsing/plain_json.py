"""JSON text without NaN and infinities."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np


def write_json(value: Any, indent: int | None = 1) -> str:
    """Return data as JSON text, with null for what JSON cannot express."""
    return json.dumps(as_plain(value), allow_nan=False, indent=indent)


def as_plain(value: Any) -> Any:
    """Return plain Python data: arrays as lists, keys as text, None for floats that are not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
