"""
The first ten minutes
=====================

This tutorial writes a small model, asks for its marginals in three ways, and reads the verdict.
"""

import gibbsite as gs

# %%
# Write a model down
# ------------------
#
# A factor graph has named sites with states, and factors: tables of non-negative numbers over some of the sites. The
# probability of a state is proportional to the product of its factors.

model = gs.FactorGraph(
    {"rain": ["no", "yes"], "sprinkler": ["off", "on"], "grass": ["dry", "wet"]},
    [
        ("rain", [0.8, 0.2]),
        (("rain", "sprinkler"), [[0.6, 0.4], [0.99, 0.01]]),
        (("rain", "sprinkler", "grass"), [[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]),
    ],
    directed=True,  # a Bayesian network: each table is the conditional distribution of its last site
)
axes = gs.plot_model(model)

# %%
# A notebook shows the picture. In a script, ``matplotlib.pyplot.show()`` opens it in a window, and
# ``axes.figure.savefig("model.png")`` writes it to a file.
#
# Ask for marginals
# -----------------
#
# ``observe`` gives evidence. ``infer`` chooses a method; for a small model that is an exact one.

wet = model.observe({"grass": "wet"})
answer = gs.infer(wet)
print(answer.summary())

# %%
# ``sample`` runs a Gibbs sampler. Every probability comes with a standard error.

result = gs.sample(wet, gs.Gibbs(), sweeps=40_000, rng=1, progress=False)
print(result.summary())

# %%
# The first line is the verdict: R-hat compares chains, *effective draws* says how many independent draws the run is
# worth, and the dispersed-start check compares the run with short chains from other starts. A run for which something
# speaks against the answer says "NOT CONVERGED" and gives the reasons.
#
# Compare two answers
# -------------------

print(gs.compare(result, answer))
axes = gs.plots.plot_comparison(answer, result, labels=("exact", "sampled"))

# %%
# Look at what was drawn
# ----------------------
#
# Plots are matplotlib plots: they take ``ax=`` or ``figure=`` and return axes. In this picture, running means of the
# chains come close to each other, R-hat is below its limit (the orange line), and the number of effective draws is
# above it.

axes = gs.plot_convergence(result)

# %%
# Read a model from a file
# ------------------------
#
# ``gs.read_model`` reads BIF, XMLBIF, UAI and other formats, and ``gs.example`` knows some networks by name. The
# same works on the command line::
#
#     gibbsite infer alarm --observe HRBP=HIGH
#
# Next: :ref:`sphx_glr_tutorials_plot_2_diagnosis.py`.

alarm = gs.example("alarm")
print(alarm)
