"""
Missing data in BUGS language
=============================

In a regression, a third of the values of a covariate is missing, above all where the other covariate is large. With a
distribution for the covariate, missing values are unknowns like any other, and no case has to be thrown away.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:N) {
      y[i] ~ dnorm(b[1] + b[2] * x[i] + b[3] * z[i], tau)
      x[i] ~ dnorm(c[1] + c[2] * z[i], tau.x)
   }
   for (k in 1:3) {
      b[k] ~ dnorm(0, 0.01)
   }
   for (k in 1:2) {
      c[k] ~ dnorm(0, 0.01)
   }
   tau ~ dgamma(0.1, 0.1)
   tau.x ~ dgamma(0.1, 0.1)
}
"""
rng = np.random.default_rng(1)
z = rng.normal(size=100)
truth = 1 + 0.7 * z + rng.normal(0, 0.8, 100)
y = 2 + 1.5 * truth - z + rng.normal(0, 1.0, 100)
hidden = rng.random(100) < 0.65 / (1 + np.exp(-2 * z))
x = np.where(hidden, np.nan, truth)
model = gs.bugs(text, {"N": 100, "x": x, "y": y, "z": z}, ["b", "x"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=3000, rng=1, progress=False)
whole = ~hidden
few = gs.bugs(text, {"N": int(whole.sum()), "x": x[whole], "y": y[whole], "z": z[whole]}, "b")
dropped = few.sample(sweeps=3000, rng=1, progress=False).statistics()
for name, each in result.statistics(["b[1]", "b[2]", "b[3]"]).items():
    print(
        f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}; from complete cases {dropped[name]['mean']:.2f} "
        f"+- {dropped[name]['sd']:.2f}"
    )

# %%
filled = result.statistics([f"x[{i + 1}]" for i in np.flatnonzero(hidden)])
mean, low, high = (np.array([each[name] for each in filled.values()]) for name in ("mean", "q2.5", "q97.5"))
figure, ax = plt.subplots(figsize=(6, 5.5), layout="constrained")
ax.axline((0, 0), slope=1, color="0.8", lw=0.8)
ax.errorbar(truth[hidden], mean, yerr=[mean - low, high - mean], fmt="o", ms=4, color="tab:blue", elinewidth=0.8)
ax.set(xlabel="covariate that was hidden", ylabel="what was filled in, with the central 95 %")
inside = ((truth[hidden] > low) & (truth[hidden] < high)).mean()
ax.set_title(f"{inside:.0%} of {hidden.sum()} intervals hold the hidden value", fontsize=10)
