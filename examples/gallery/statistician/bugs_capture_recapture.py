"""
Capture and recapture in BUGS language
======================================

Marked animals are caught again on some of six occasions. An animal that is not caught may be dead, or alive and
missed. Its states after the last capture are unknowns of the model, which separates survival from recapture.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:animals) {
      alive[i,first[i]] <- 1
      for (t in (first[i] + 1):occasions) {
         alive[i,t] ~ dbern(survival * alive[i,t-1])
         caught[i,t] ~ dbern(recapture * alive[i,t])
      }
   }
   survival ~ dbeta(1, 1)
   recapture ~ dbeta(1, 1)
}
"""
rng = np.random.default_rng(3)
animals, occasions = 100, 6
first = rng.integers(1, occasions, animals)
caught = np.full((animals, occasions), np.nan)
alive = np.full((animals, occasions), np.nan)
for i, begin in enumerate(first):
    living, last = True, begin - 1
    for t in range(begin, occasions):
        living = living and rng.random() < 0.75
        caught[i, t] = living and rng.random() < 0.6
        last = t if caught[i, t] else last
    alive[i, begin : last + 1] = 1  # caught later, hence alive until then
data = {"animals": animals, "occasions": occasions, "first": first, "caught": caught, "alive": alive}
model = gs.bugs(text, data, ["survival", "recapture"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=4000, rng=1, progress=False)
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in result.statistics().items()), sep="\n")

# %%
# The share of animals that are caught again on the next occasion is the product of both: it says nothing about either.
draws = result.draws_dataframe()
history = caught.copy()
history[np.arange(animals), first - 1] = 1
again = history[:, 1:][history[:, :-1] == 1].mean()
p = np.linspace(0.3, 1, 200)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.hexbin(draws["survival"], draws["recapture"], gridsize=45, cmap="Blues", mincnt=1, linewidths=0.1)
ax.plot(p, again / p, color="0.5", lw=1, label=f"product {again:.2f}: caught again at once")
ax.plot(0.75, 0.6, "k+", ms=14, mew=2, label="truth")
ax.set(xlabel="survival", ylabel="recapture", xlim=(0.55, 1), ylim=(0.35, 0.85))
ax.legend(frameon=False)
