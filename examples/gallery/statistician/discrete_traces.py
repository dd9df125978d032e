"""
Traces of discrete variables
============================

A trace shows what each chain did. States appear as colors, one row for each chain; the energy appears as a line.
"""

import gibbsite as gs

model = gs.FactorGraph(
    {"rain": ["no", "yes"], "level": ["low", "middle", "high"], "alarm": ["off", "on"]},
    [(("rain", "level"), [[4, 1, 0.2], [0.2, 1, 3]]), (("level", "alarm"), [[5, 1], [2, 1], [1, 4]])],
)
result = gs.sample(model, sweeps=600, record=["marginals", "draws", "energy"], rng=1, progress=False)
axes = gs.plot_trace(result)

# %%
# Long runs of one color mean that a site changes its state seldom: draws then depend on each other.
print(result.ess["level"])
