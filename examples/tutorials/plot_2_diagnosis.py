"""
A diagnosis with a Bayesian network
===================================

A network for patient monitoring (ALARM, 37 variables) answers what a high heart rate on the monitor and a low cardiac
output mean. On the way we meet prior and posterior probabilities, the most probable explanation, and the probability
of the evidence.
"""

import math

import matplotlib.pyplot as plt

import gibbsite as gs

alarm = gs.example("alarm")
axes = gs.plot_model(alarm)

# %%
# Before and after the evidence
# -----------------------------

patient = alarm.observe({"HRBP": "HIGH", "CO": "LOW"})
prior, posterior = gs.infer(alarm), gs.infer(patient)
changes = {
    name: max(abs(p - prior.marginals[name][state]) for state, p in posterior.marginals[name].items())
    for name in patient.sites
}
most = sorted(changes, key=lambda name: -changes[name])[:6]
axes = gs.plot_marginals(posterior, most, reference=prior)

# %%
# The most probable explanation
# -----------------------------
#
# ``task="MAP"`` finds the single most probable state of everything that was not observed. It is a joint statement, so
# it need not consist of the most probable states of each variable.

best = gs.infer(patient, task="MAP")
print({name: best.assignment[name] for name in most})

# %%
# How probable was the evidence?
# ------------------------------
#
# The log-partition function of a Bayesian network with evidence is the logarithm of the probability of that evidence.

evidence = gs.infer(patient, task="PR")
print(f"P(evidence) = {math.exp(evidence.log_z):.4g}")

# %%
# Sampling instead of solving
# ---------------------------
#
# Exact inference is impossible in large networks of many loops. Plain Gibbs sampling struggles on ALARM, because some
# of its tables are nearly deterministic; ``recommend`` tries the methods that apply and says which one is best.

advice = gs.recommend(patient, seconds=2, rng=1)
print(advice)

# %%
# Weighted draws are such a method. They agree with the exact answer within their errors.

weighted = gs.sample_weighted(patient, draws=40_000, rng=1, progress=False)
figure, axes = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
axes = gs.plots.plot_comparison(posterior, weighted, labels=("exact", "weighted draws"), ax=axes)
