"""Arrays that are put together from parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array


@dataclass
class Growing:
    """An array that is put together from parts."""

    dtype: type[Any]
    parts: list[Array] = field(default_factory=list)
    size: int = 0

    def add(self, values: Any) -> int:
        """Append values; return where they start."""
        values = np.asarray(values, self.dtype).ravel()
        begin = self.size
        self.parts.append(values)
        self.size += values.size
        return begin

    def joined(self) -> Array:
        """Return everything; at least one entry, for pointers."""
        return np.concatenate([*self.parts, np.zeros(1, self.dtype)])
