"""
Checking a BUGS model by its predictions
========================================

Counts that vary more than a Poisson distribution allows. ``model.predict`` draws the data again from each draw of the
unknowns: a model that fits gives data like those at hand. ArviZ compares the models by leaving one observation out.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz as az

poisson = "model { for (i in 1:N) { y[i] ~ dpois(mu) }  mu ~ dgamma(0.1, 0.1) }"
mixed = """
model {
   for (i in 1:N) {
      y[i] ~ dnegbin(r / (r + mu), r)
   }
   mu ~ dgamma(0.1, 0.1)
   r ~ dgamma(1, 0.1)
}
"""
rng = np.random.default_rng(1)
y = rng.negative_binomial(2, 2 / (2 + 4.0), 120)
models = {name: gs.bugs(text, {"N": y.size, "y": y}) for name, text in (("Poisson", poisson), ("mixed", mixed))}
results = {name: model.sample(sweeps=2000, rng=1, progress=False) for name, model in models.items()}
for name, model in models.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        elpd = az.loo(results[name].to_arviz()).elpd_loo
    print(f"{name}: expected log predictive density {elpd:.0f}, DIC {model.dic(results[name]).dic:.0f}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
values = np.arange(0, 20)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    title = {"Poisson": "Poisson distribution", "mixed": "negative binomial distribution"}[name]
    again = model.predict(results[name], rng=1)["y"].reshape(-1, y.size)[::10]
    counts = (again[:, :, None] == values).sum(axis=1)
    low, high = np.quantile(counts, [0.025, 0.975], axis=0)
    ax.bar(values, np.bincount(y, minlength=values.size)[: values.size], color="0.8", label="data")
    ax.vlines(values, low, high, color="tab:blue", label="predictions, central 95 %")
    ax.plot(values, counts.mean(axis=0), "o", ms=4, color="tab:blue")
    ax.set(xlabel="count", xticks=range(0, 20, 5), title=title)
axes[0].set_ylabel("how often")
axes[0].legend(frameon=False)
