"""
Interrupt a run and continue it
===============================

A run with a checkpoint can be interrupted at any time, even by ``kill -9``. Continued later, it gives the same bytes
as a run that was never interrupted.
"""

import tempfile
from pathlib import Path

import gibbsite as gs

model = gs.ising_grid((16, 16), coupling=0.3)
how = {"rng": 1, "warmup": 100, "progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
place = Path(tempfile.mkdtemp()) / "run.npz"

gs.sample(model, sweeps=500, checkpoint=place, **how)
continued = gs.sample(model, sweeps=2000, checkpoint=gs.Checkpoint(place, resume=True), **how)
whole = gs.sample(model, sweeps=2000, **how)
print((continued.marginals.to_array() == whole.marginals.to_array()).all())

# %%
axes = gs.plot_marginals(continued, shape=(16, 16))
