"""
Reading verdicts
================

Every answer says how far it can be trusted. This tutorial provokes each kind of verdict and says what to do next.
"""

import warnings

import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)  # verdicts are printed below

# %%
# Converged
# ---------

model = gs.ising_grid((20, 20), coupling=0.2, field=0.05)
good = gs.sample(model, sweeps=2000, rng=1, progress=False)
print(good.diagnostics.line())
axes = gs.plot_convergence(good)

# %%
# Too short
# ---------
#
# Chains disagree, or there are too few effective draws. Run longer: four times as many sweeps halve the errors.

slow = gs.ising_grid((20, 20), coupling=0.43, field=0.001)
short = gs.sample(slow, sweeps=200, rng=1, progress=False)
print(short.diagnostics.line())
for reason in short.diagnostics.reasons:
    print("-", reason)
axes = gs.plot_convergence(short)

# %%
# Several modes
# -------------
#
# Below the critical temperature the lattice is magnetised up or down, and a Gibbs sampler does not cross. More sweeps
# do not help; another method does.

cold = gs.ising_grid((12, 12), coupling=0.7, field=0.002)
stuck = gs.sample(cold, sweeps=2000, rng=1, progress=False)
print(stuck.diagnostics.reasons[0])
tempered = gs.sample(cold, gs.Tempered(), sweeps=4000, rng=1, progress=False)
print(tempered.diagnostics.line())

# %%
# Moves that cannot reach every state
# -----------------------------------
#
# With zeros in its tables, a model may have states between which single-site moves are impossible.

parity = gs.FactorGraph(["a", "b", "c"], [(("a", "b", "c"), [[[1, 0], [0, 1]], [[0, 1], [1, 0]]])], states=2)
blocked = gs.sample(parity, sweeps=1000, rng=1, progress=False)
print(blocked.diagnostics.reasons[0])
blocks = gs.sample(parity, gs.BlockGibbs(), sweeps=1000, rng=1, progress=False)
print(blocks.diagnostics.line())

# %%
# Exact, settled, not judged
# --------------------------
#
# Exact answers need no verdict. Belief propagation and mean field come to rest, but how far they are from the truth
# is not known: ``converged`` is None. Herded chains have no standard errors and are not judged.

herded = gs.sample(model, gs.HerdedGibbs(), sweeps=500, progress=False)
for answer in (gs.infer(cold), gs.belief_propagation(model), herded):
    print(answer.diagnostics.converged, "|", answer.diagnostics.line())
