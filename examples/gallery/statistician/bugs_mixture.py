"""
A mixture of normal distributions in BUGS language
==================================================

Numbers come from two groups, and it is not known which comes from where. Membership is an unknown of each number. The
second mean is the first one plus a positive gap, so that the groups cannot exchange their names.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:N) {
      group[i] ~ dcat(weight[])
      y[i] ~ dnorm(mean.of[group[i]], tau[group[i]])
   }
   weight[1:2] ~ ddirch(one[])
   mean.of[1] ~ dnorm(50, 0.001)
   mean.of[2] <- mean.of[1] + gap
   gap ~ dnorm(0, 0.001) T(0,)
   for (k in 1:2) {
      one[k] <- 1
      tau[k] ~ dgamma(2, 50)
      sigma[k] <- 1 / sqrt(tau[k])
   }
}
"""
rng = np.random.default_rng(2)
y = np.where(rng.random(160) < 0.35, rng.normal(80, 8, 160), rng.normal(57, 6, 160))
model = gs.bugs(text, {"N": y.size, "y": y}, ["weight", "mean.of", "sigma"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=3000, rng=1, progress=False)
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in result.statistics().items()), sep="\n")

# %%
draws = result.draws_dataframe().iloc[::20]
x = np.linspace(y.min() - 8, y.max() + 8, 300)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.hist(y, bins=30, density=True, color="0.85")
total = np.zeros((len(draws), x.size))
for k, colour in ((1, "tab:blue"), (2, "tab:orange")):
    mean, sd, weight = (draws[f"{name}[{k}]"].to_numpy()[:, None] for name in ("mean.of", "sigma", "weight"))
    density = weight * np.exp(-0.5 * ((x - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    low, high = np.quantile(density, [0.025, 0.975], axis=0)
    ax.fill_between(x, low, high, color=colour, alpha=0.4, lw=0, label=f"group {k}, 95 % band")
    total += density
ax.plot(x, total.mean(axis=0), "k", lw=1, label="both")
ax.set(xlabel="y", ylabel="density", xlim=(x[0], x[-1]))
ax.legend(frameon=False)
