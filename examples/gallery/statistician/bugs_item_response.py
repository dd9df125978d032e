"""
Item response in BUGS language
==============================

120 persons answered six questions. Each question has a difficulty and a discrimination, each person an ability.
A question tells most about persons whose ability is near its difficulty, where its curve is steep.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

text = """
model {
   for (i in 1:persons) {
      ability[i] ~ dnorm(0, 1)
      for (j in 1:items) {
         correct[i,j] ~ dbern(p[i,j])
         logit(p[i,j]) <- a[j] * (ability[i] - b[j])
      }
   }
   for (j in 1:items) {
      a[j] ~ dlnorm(0, 4)
      b[j] ~ dnorm(0, 0.25)
   }
}
"""
rng = np.random.default_rng(4)
persons, items = 120, 6
ability = rng.normal(size=(persons, 1))
steep, hard = np.array([1.8, 0.6, 1.2, 0.5, 1.6, 0.9]), np.linspace(-1.5, 1.5, items)
correct = rng.random((persons, items)) < 1 / (1 + np.exp(-steep * (ability - hard)))
model = gs.bugs(text, {"persons": persons, "items": items, "correct": correct}, ["a", "b"])
for conditional in model.conditionals():
    print(conditional)

# %%
result = model.sample(sweeps=3000, rng=1, progress=False)
table = result.statistics()
print(*(f"{name}: {each['mean']:.2f} +- {each['sd']:.2f}" for name, each in table.items()), sep="\n")

# %%
draws = result.draws_dataframe().iloc[::10]
x = np.linspace(-3, 3, 80)
figure, axes = plt.subplots(2, 3, figsize=(8, 5), sharex=True, sharey=True, layout="constrained")
for j, ax in enumerate(axes.flat):
    a, b = (draws[f"{name}[{j + 1}]"].to_numpy()[:, None] for name in "ab")
    curves = 1 / (1 + np.exp(-a * (x - b)))
    ax.fill_between(x, *np.quantile(curves, [0.025, 0.975], axis=0), color="tab:blue", alpha=0.25, lw=0)
    (line,) = ax.plot(x, curves.mean(axis=0), color="tab:blue")
    (truth,) = ax.plot(x, 1 / (1 + np.exp(-steep[j] * (x - hard[j]))), "k--", lw=1)
    ax.set_title(f"question {j + 1}: {correct[:, j].mean():.0%} correct", fontsize=9)
figure.supxlabel("ability", fontsize=10)
figure.supylabel("probability of a correct answer", fontsize=10)
axes[0, 0].legend([line, truth], ["estimate", "truth"], frameon=False, fontsize=8)
