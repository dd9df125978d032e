"""Members of a batch that share a constraint have their joint distribution."""

from __future__ import annotations

import itertools

import numpy as np

from gibbsite.applications.bugs import read_bugs
from gibbsite.applications.bugs.checks.bench import Bench
from gibbsite.applications.bugs.checks.quadrature import multinomial_p
from gibbsite.applications.bugs.compiled import units

TEXT = """model { for (i in 1:4) { k[i] ~ dbern(q[i])  y[i] ~ dnorm(k[i], 1) }
    c ~ dinterval(sum(k[]), 1) }"""


def test_constrained_members_have_their_joint_distribution() -> None:
    model = read_bugs(TEXT, {"c": 1, "y": [0.3, -1.0, 1.2, 0.4], "q": [0.2, 0.4, 0.3, 0.5]})
    bench = Bench(model, 1)
    assert bench.rows[: bench.n, units.UPDATE].tolist() == [units.BATCH]
    bench.load(np.ones(4))
    states = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
    log = bench.along(bench.places(0), states)
    law = np.exp(log - log.max())
    law /= law.sum()
    assert (law == 0.0).sum() == 5  # fewer than two ones
    seen = np.zeros(16, int)
    for start in bench.rng.choice(16, 20_000, p=law):
        bench.load(states[start])
        assert bench.update(0)
        seen[int(bench.x @ [8, 4, 2, 1])] += 1
    possible = law > 0.0
    assert seen[~possible].sum() == 0
    assert multinomial_p(seen[possible], law[possible]) > 1e-9
