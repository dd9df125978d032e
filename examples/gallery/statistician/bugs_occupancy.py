"""
An occupancy model in BUGS language
===================================

Each of 80 sites was visited three times, and a visit may miss the animal. The share of sites where it was seen is
therefore too small. The model keeps apart whether a site is inhabited and whether a visit finds the animal.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:sites) {
      z[i] ~ dbern(psi[i])
      logit(psi[i]) <- a0 + a1 * forest[i]
      for (j in 1:visits) {
         seen[i,j] ~ dbern(z[i] * p)
      }
   }
   a0 ~ dnorm(0, 0.25)
   a1 ~ dnorm(0, 0.25)
   p ~ dbeta(1, 1)
   occupied <- sum(z[])
}
"""
rng = np.random.default_rng(5)
sites, visits = 80, 3
forest = np.sort(rng.normal(size=sites))
present = rng.random(sites) < 1 / (1 + np.exp(-0.4 - 1.2 * forest))
seen = present[:, None] & (rng.random((sites, visits)) < 0.45)
data = {"sites": sites, "visits": visits, "forest": forest, "seen": seen}
model = gs.bugs(text, data, ["a0", "a1", "p", "occupied", "z"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=4000, rng=1, progress=False)
table = result.statistics(["p", "occupied"])
print(f"seen at {seen.any(axis=1).sum()} sites, {present.sum()} are inhabited;", end=" ")
print(f"estimate {table['occupied']['mean']:.0f} ({table['occupied']['q2.5']:.0f} to {table['occupied']['q97.5']:.0f})")

# %%
draws = result.draws_dataframe()
x = np.linspace(-2.6, 2.6, 60)
curves = 1 / (1 + np.exp(-draws["a0"].to_numpy()[:, None] - draws["a1"].to_numpy()[:, None] * x))
low, high = np.quantile(curves, [0.025, 0.975], axis=0)
mean = np.array([result.marginals[f"z[{i + 1}]"]["mean"] for i in range(sites)])
found = seen.any(axis=1)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.fill_between(x, low, high, color="tab:blue", alpha=0.2, lw=0)
ax.plot(x, curves.mean(axis=0), color="tab:blue", label="probability that a site is inhabited")
ax.plot(x, 1 / (1 + np.exp(-0.4 - 1.2 * x)), "k--", lw=1, label="truth")
ax.plot(forest[found], mean[found], "o", color="tab:blue", ms=5, label="seen there")
ax.plot(forest[~found], mean[~found], "o", mfc="white", mec="tab:blue", ms=5, label="not seen in three visits")
ax.set(xlabel="forest around the site", ylabel="probability", ylim=(-0.03, 1.03))
ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.97))
