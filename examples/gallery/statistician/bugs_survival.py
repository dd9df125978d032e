"""
Survival with censored times in BUGS language
=============================================

Some of 90 patients were still alive at the end of the study: of their times, only a lower bound is known.
``dinterval`` says so, and their times become unknowns above that bound.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:N) {
      over[i] ~ dinterval(time[i], end[i])
      time[i] ~ dweib(shape, rate[i])
      log(rate[i]) <- b0 + b1 * treated[i]
   }
   b0 ~ dnorm(0, 0.01)
   b1 ~ dnorm(0, 0.1)
   shape ~ dgamma(2, 1)
}
"""
rng = np.random.default_rng(7)
treated = np.arange(90) % 2
drawn = (rng.exponential(size=90) / np.exp(-3.0 - 0.9 * treated)) ** (1 / 1.4)
end = rng.uniform(5, 20, 90)
over = drawn > end
time = np.where(over, np.nan, drawn)
model = gs.bugs(text, {"N": 90, "treated": treated, "time": time, "end": end, "over": over}, ["b0", "b1", "shape"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=6000, rng=1, progress=False)
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in result.statistics().items()), sep="\n")


# %%
def kaplan_meier(times, dead):
    """Return when the share of survivors falls, and how far, without a model."""
    order = np.argsort(times)
    left = np.arange(times.size, 0, -1)
    return times[order], np.cumprod(1 - dead[order] / left)


draws = result.draws_dataframe().iloc[::10]
b0, b1, shape = (draws[name].to_numpy()[:, None] for name in ("b0", "b1", "shape"))
t = np.linspace(0, 20, 100)
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for group, colour, name in ((0, "0.4", "control"), (1, "tab:blue", "treated")):
    curves = np.exp(-np.exp(b0 + b1 * group) * t**shape)
    ax.fill_between(t, *np.quantile(curves, [0.025, 0.975], axis=0), color=colour, alpha=0.25, lw=0)
    ax.plot(t, curves.mean(axis=0), color=colour, label=name)
    mine = treated == group
    seen = np.where(over, end, drawn)[mine]
    steps, share = kaplan_meier(seen, ~over[mine])
    ax.step(np.append(0, steps), np.append(1, share), where="post", color=colour, lw=0.8)
    lost = np.sort(seen[over[mine]])
    ax.plot(lost, share[np.searchsorted(steps, lost)], "|", color=colour, ms=9)
ax.set(
    xlabel="time (ticks: patients still alive at the end)", ylabel="share of survivors", ylim=(0, 1.02), xlim=(0, 20)
)
ax.legend(frameon=False)
