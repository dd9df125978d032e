"""Functions of ``gibbsite.applications.storage`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np

from gibbsite._common.boundary import Wanted
from gibbsite.applications.storage import pack, unpack


def test_pack_returns_header_and_arrays_as_the_content_of_a_file() -> None:
    data = pack("ner", {"name": "x"}, {"numbers": np.arange(3)})
    wanted = {"numbers": Wanted(np.int64, ("n",), high=2)}
    header, arrays = unpack("ner", data, "x.ner", {"name": str}, lambda header: wanted)
    assert (header["name"], arrays["numbers"].tolist()) == ("x", [0, 1, 2])
