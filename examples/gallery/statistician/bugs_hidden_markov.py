"""
A hidden Markov model in BUGS language
======================================

Counts come from two states, a quiet one and a busy one, which take turns. The model is the text that JAGS would run;
gibbsite derives the full conditional distribution of every unknown and prints it. The picture shows the counts and the
probability that each of them came from the busy state.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   state[1] ~ dcat(start[])
   count[1] ~ dpois(rate[state[1]])
   for (t in 2:T) {
      state[t] ~ dcat(move[state[t-1],])
      count[t] ~ dpois(rate[state[t]])
   }
   for (k in 1:2) {
      start[k] <- 0.5
      move[k,1:2] ~ ddirch(prior[k,])
   }
   rate[1] ~ dgamma(2, 1)
   rate[2] <- rate[1] + more
   more ~ dgamma(2, 0.5)
}
"""
count = [
    *(1, 2, 3, 2, 0, 2, 0, 2, 0, 6, 4, 4, 8, 8, 4, 0, 2, 4, 8, 5, 4, 0, 1, 2, 7, 2, 3, 1, 6, 6),
    *(4, 6, 5, 4, 8, 2, 8, 3, 2, 5, 7, 4, 1, 9, 9, 3, 4, 2, 4, 4, 5, 4, 2, 9, 8, 8, 0, 0, 1, 2),
    *(1, 1, 1, 0, 0, 1, 4, 8, 8, 0, 0, 0, 2, 1, 2, 4, 1, 0, 2, 0, 1, 0, 0, 1, 2, 1, 1, 1, 1, 3),
    *(7, 3, 1, 0, 3, 0, 5, 3, 5, 7, 0, 0, 3, 2, 3, 3, 2, 2, 2, 0, 0, 0, 1, 0, 2, 7, 2, 3, 6, 4),
    *(3, 8, 4, 3, 6, 3, 5, 5, 7, 2, 6, 3, 9, 8, 2, 9, 1, 9, 5, 4, 8, 2, 1, 5, 4, 6, 7, 7, 6, 5),
]
model = gs.bugs(text, {"count": count, "T": len(count), "prior": [[4, 1], [1, 4]]}, ["rate", "move", "state"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=3000, rng=1, progress=False)
table = result.statistics(["rate[1]", "rate[2]", "move[1,1]", "move[2,2]"])
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in table.items()), sep="\n")

# %%
busy = [result.marginals[f"state[{t + 1}]"]["mean"] - 1 for t in range(len(count))]
figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
above.bar(np.arange(len(count)), count, color=plt.get_cmap("coolwarm")(busy))
above.set(ylabel="count")
for name, colour in (("rate[1]", "tab:blue"), ("rate[2]", "tab:red")):
    above.axhline(table[name]["mean"], color=colour, lw=0.8)
below.fill_between(np.arange(len(count)), busy, step="mid", color="tab:red", alpha=0.4)
below.set(ylabel="probability of the busy state", xlabel="time", ylim=(0, 1))
