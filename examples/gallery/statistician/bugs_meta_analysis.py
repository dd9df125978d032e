"""
A random-effects meta-analysis in BUGS language
===============================================

Coaching for an admission test was tried in eight schools. The effects of single schools are uncertain, and are drawn
towards their common mean; a ninth school is predicted by one more line of the model.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (j in 1:J) {
      effect[j] ~ dnorm(theta[j], 1 / se[j]^2)
      theta[j] ~ dnorm(mu, 1 / sigma^2)
   }
   mu ~ dnorm(0, 0.0001)
   sigma ~ dunif(0, 100)
   theta.new ~ dnorm(mu, 1 / sigma^2)
}
"""
effect = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]
error = [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
model = gs.bugs(text, {"J": 8, "effect": effect, "se": error})
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=20_000, rng=1, progress=False)
print(result.diagnostics.text)

# %%
names = [*(f"theta[{j}]" for j in range(1, 9)), "theta.new", "mu"]
table = result.statistics(names)
row = np.arange(len(names))
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.errorbar(effect, row[:8] - 0.15, xerr=2 * np.array(error), fmt="o", color="0.6", label="each school by itself")
ends = np.array([[table[name][q] for q in ("q2.5", "q97.5")] for name in names]).T
mean = np.array([table[name]["mean"] for name in names])
ax.errorbar(mean, row + 0.15, xerr=abs(ends - mean), fmt="o", color="tab:blue", label="all schools together")
ax.set_yticks(row, [*(f"school {letter}" for letter in "ABCDEFGH"), "a new school", "mean"])
ax.invert_yaxis()
ax.axvline(0, color="0.8", lw=0.8, zorder=0)
ax.set(xlabel="effect in points, with the central 95 %")
ax.legend(frameon=False, loc="lower right")
