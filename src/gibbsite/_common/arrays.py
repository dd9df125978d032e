"""Names of the array types that most modules use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints16 = NDArray[np.int16]
Ints8 = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Words32 = NDArray[np.uint32]
Words64 = NDArray[np.uint64]
Bools = NDArray[np.bool_]
Positions = NDArray[np.intp]
Integers = NDArray[np.integer[Any]]
Codes = NDArray[np.signedinteger[Any]]
