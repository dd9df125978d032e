"""
A change point in BUGS language
===============================

Disasters in British coal mines became rarer at some time between 1851 and 1961. The year of the change is an unknown
with 111 values, all of which are weighed in every sweep.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (t in 1:T) {
      disasters[t] ~ dpois(rate[1 + step(t - change - 0.5)])
      p[t] <- 1 / T
   }
   change ~ dcat(p[])
   for (k in 1:2) {
      rate[k] ~ dgamma(0.5, 0.1)
   }
   ratio <- rate[2] / rate[1]
}
"""
published = (
    "454014340633402633545314415534252234213221111300101100310322011101010002100011023311211112420014000100000100101"
)
disasters = [int(each) for each in published]
years = np.arange(1851, 1851 + len(disasters))
model = gs.bugs(text, {"T": len(disasters), "disasters": disasters})
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=2000, rng=1, progress=False)
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in result.statistics().items()), sep="\n")

# %%
draws = result.draws_dataframe()
change = 1850 + draws["change"].to_numpy()
before = draws["rate[1]"].to_numpy()[:, None], draws["rate[2]"].to_numpy()[:, None]
rate = np.where(years <= change[:, None], *before)
low, high = np.quantile(rate, [0.025, 0.975], axis=0)
figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, height_ratios=(2, 1), layout="constrained")
above.bar(years, disasters, color="0.75", width=0.9, label="disasters")
above.fill_between(years, low, high, color="tab:red", alpha=0.3, lw=0)
above.plot(years, rate.mean(axis=0), color="tab:red", label="their rate, with a 95 % band")
above.set(ylabel="a year")
above.legend(frameon=False)
below.bar(years, [(change == year).mean() for year in years], color="tab:blue", width=0.9)
below.set(ylabel="probability", xlabel="last year before the change")
