"""Functions of ``gibbsite.lab.dogs.segmentation`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.lab.dogs.segmentation import Summary
from gibbsite.lab.dogs.segmentation_counts import COUPLINGS, no_counts


def test_errors_and_gains_are_shares_of_pixels_by_split() -> None:
    counts = no_counts(3, 2, 2)
    counts.total[:] = 100
    counts.centre[:] = 20
    counts.alone[:] = 5
    counts.scattered[:] = 1
    counts.wrong[..., 0] = 40
    counts.wrong[..., 1:] = 34
    counts.wrong[:, 0, 1, 3] = [30, 28, 32]
    counts.by_scan[..., 1, :] = 4
    found = Summary(counts, np.array([[0, 1], [2, 3], [4, 5]]), (110, 620), photographs=True)
    assert found.errors[:, 0, 0].tolist() == [0.4] * 3
    assert found.errors[:, 1, 3].tolist() == pytest.approx([0.32, 0.31, 0.33])
    assert np.array(COUPLINGS)[found.chosen[:, 1]].tolist() == [2.0] * 3
    gain, error = found.gain(1)
    assert gain == pytest.approx(0.08 / 0.4)
    assert error == pytest.approx(0.01 / np.sqrt(3) / 0.4)
    assert found.middle[0, :, :, 0].tolist() == [[0.0, 0.2], [0.0, 0.2]]
    assert found.alone.tolist() == [0.25] * 3
