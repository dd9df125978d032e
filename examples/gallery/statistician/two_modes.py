"""
A check that notices a second mode
==================================

Six voters nearly always agree with their neighbours. All chains start with "no" and stay there: they agree perfectly
with each other, and they are wrong. Before a run is called converged, gibbsite compares it with short chains from
other starts, and these find the second mode.
"""

import warnings
from itertools import pairwise

import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)  # the reason is printed below
voters = [f"voter{k}" for k in range(6)]
agree = [((a, b), [[1e6, 1], [1, 1e6]]) for a, b in pairwise(voters)]
model = gs.FactorGraph(voters, [*agree, ("voter0", [1, 2])], states=["no", "yes"])
result = gs.sample(model, start=dict.fromkeys(voters, "no"), sweeps=2000, rng=1, progress=False)
for reason in result.diagnostics.reasons:
    print("-", reason)

# %%
# The model is small, so the exact answer is at hand; it is drawn beside the wrong one.
axes = gs.plot_marginals(result, reference=gs.solve_exact(model))
