"""
A hierarchical model by its full conditionals
=============================================

The classic use of Gibbs sampling: groups with means of their own, which share a distribution. We write each
conditional as a function, verify that the functions belong to the joint density, and read the posterior.
"""

import numpy as np

import gibbsite as gs

# %%
# Data: eight schools, the effect measured in each, and its standard error.

effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

# %%
# The model: effects theta are normal around mu with standard deviation tau; mu has a wide normal prior and 1 / tau^2
# a gamma prior with shape 1 and rate 10. Sites in order: theta of the eight schools, mu, and the precision.


def draw_effects(x, rng):
    mu, precision = x[8], x[9]
    weight = 1 / error**2 + precision
    return rng.normal((effect / error**2 + precision * mu) / weight, weight**-0.5)


def draw_mean(x, rng):
    weight = 8 * x[9] + 1 / 100**2
    return rng.normal(x[9] * x[:8].sum() / weight, weight**-0.5)


def draw_precision(x, rng):
    return rng.gamma(1 + 4, 1 / (10 + ((x[:8] - x[8]) ** 2).sum() / 2))


def log_density(x):
    theta, mu, precision = x[:8], x[8], x[9]
    if precision <= 0:
        return -np.inf
    return (
        -0.5 * (((effect - theta) / error) ** 2).sum()
        + 4 * np.log(precision)
        - 0.5 * precision * ((theta - mu) ** 2).sum()
        - 0.5 * (mu / 100) ** 2
        - 10 * precision
    )


schools = tuple(f"school {k}" for k in "ABCDEFGH")
model = gs.Conditionals(
    {schools: draw_effects, "mean": draw_mean, "precision": draw_precision},
    {
        **dict.fromkeys(schools, gs.Interval()),
        "mean": gs.Interval(),
        "precision": gs.Interval(0, np.inf),
    },  # in this order
    log_density=log_density,
)

# %%
# Do the conditionals belong together?
# ------------------------------------
#
# A wrong sign or a forgotten factor is easily made. The check draws from each conditional and compares with the joint
# density.

print(gs.inference.check_conditionals(model, tolerance=0.2, rng=1))

# %%
# Sample
# ------

result = gs.sample(model, sweeps=8000, rng=1, record=["marginals", "draws"], progress=False)
print(result.summary())
axes = gs.plot_marginals(result)

# %%
# Estimates of single schools are drawn towards the common mean. Quantiles come with errors, too.

print(result.quantiles("school A", [0.05, 0.5, 0.95]))
