"""What a campaign of densities samples from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Target(NamedTuple):
    """A model with the kernels that are tried on it; mean and standard deviation of its numbers if known."""

    name: str
    model: Any
    kernels: dict[str, Any]  # a kernel, or a kernel and further arguments of a run
    sweeps: int
    truth: tuple[np.ndarray, np.ndarray] | None = None
    home: Any = None  # a place in the first of several modes
