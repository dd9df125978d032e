"""Deterministic relations of arrays become rules of their entries."""

from __future__ import annotations

import numpy as np

import gibbsite as gs


def test_slices_products_and_lists_of_unknowns() -> None:
    text = """model {
       for (i in 1:3) { x[i] ~ dnorm(0, 1) }
       chosen[1:2] <- x[c(1,3)]
       last[1:2] <- x[2:3] * 2
       product[1:2] <- A[rows,] %*% x[]
       listed[1:4] <- c(x[1:2], 7, x[3])
    }"""
    A = np.arange(9.0).reshape(3, 3)
    model = gs.bugs(text, {"A": A, "rows": [3, 1]}, ["x", "chosen", "last", "product", "listed"])
    draws = model.sample(sweeps=60, rng=1, progress=False).draws_dataframe()
    x = draws[["x[1]", "x[2]", "x[3]"]].to_numpy()
    for name, wanted in (("chosen", x[:, [0, 2]]), ("last", 2 * x[:, 1:]), ("product", x @ A[[2, 0]].T)):
        np.testing.assert_allclose(draws[[f"{name}[1]", f"{name}[2]"]].to_numpy(), wanted, rtol=1e-12)
    np.testing.assert_array_equal(draws[["listed[1]", "listed[2]", "listed[4]"]].to_numpy(), x)
