"""Functions of ``gibbsite.lab.herded.collapsed`` on small inputs whose results are known."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsite.lab.herded.collapsed import CASES, make_data, solve


@pytest.mark.parametrize("case", CASES)
def test_chains_come_near_the_exact_sums(case: str) -> None:
    data = make_data(1)
    exact = solve(case, data, method="exact")
    for method in ("gibbs", "herded"):
        found = solve(case, data, method=method, sweeps=3000, chains=2)
        assert found.shape == exact.shape
        assert np.abs(found - exact).max() < 0.1
