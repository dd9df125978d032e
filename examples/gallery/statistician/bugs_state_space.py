"""
A state space model in BUGS language
====================================

The yearly flow of the Nile at Aswan: a level that wanders slowly, and noise about it. All hundred levels are one
multivariate normal draw in each sweep.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   level[1] ~ dnorm(1000, 1.0E-6)
   flow[1] ~ dnorm(level[1], 1 / sigma.y^2)
   for (t in 2:T) {
      level[t] ~ dnorm(level[t-1], 1 / sigma.level^2)
      flow[t] ~ dnorm(level[t], 1 / sigma.y^2)
   }
   sigma.y ~ dunif(0, 500)
   sigma.level ~ dunif(0, 500)
}
"""
flow = [
    *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140),
    *(1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969),
    *(831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865),
    *(845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050),
    *(918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
]
ahead = 10
data = {"T": len(flow) + ahead, "flow": flow + [None] * ahead}  # missing years at the end are forecasts
model = gs.bugs(text, data, ["sigma.y", "sigma.level", "level", "flow"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=10_000, rng=1, progress=False)
print(
    *(
        f"{name}: {each['mean']:.0f} +- {each['sd']:.0f}"
        for name, each in result.statistics(["sigma.y", "sigma.level"]).items()
    ),
    sep="\n",
)

# %%
years = np.arange(1871, 1871 + data["T"])
table = result.statistics([f"level[{t + 1}]" for t in range(years.size)])
mean, low, high = (np.array([each[name] for each in table.values()]) for name in ("mean", "q2.5", "q97.5"))
table = result.statistics([f"flow[{t + 1}]" for t in range(len(flow), years.size)])
below, above = (np.array([each[name] for each in table.values()]) for name in ("q2.5", "q97.5"))
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(years[: len(flow)], flow, ".-", color="0.65", lw=0.6, label="flow")
ax.fill_between(years[len(flow) :], below, above, color="0.9", lw=0, label="95 % of future flows")
ax.fill_between(years, low, high, color="tab:blue", alpha=0.3, lw=0)
ax.plot(years, mean, color="tab:blue", label="level, with a 95 % band")
ax.set(ylabel="flow in $10^8$ m$^3$", xlim=(years[0], years[-1]))
ax.legend(frameon=False, ncols=3, loc="upper right")
