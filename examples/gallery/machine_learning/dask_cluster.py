"""
Chains on a cluster of this machine
===================================

With ``on="local-dask"`` chains run in worker processes; on a real cluster the address of its scheduler takes this
place. The numbers are the same bytes as on threads.
"""

import gibbsite as gs

if __name__ == "__main__":
    model = gs.ising_grid((12, 12), coupling=0.3)
    how = {"sweeps": 500, "chains": 4, "rng": 1, "progress": False, "criteria": gs.Criteria(dispersed_starts=False)}
    here = gs.sample(model, **how)
    there = gs.sample(model, on="local-dask", **how)
    print((here.marginals.to_array() == there.marginals.to_array()).all())
    gs.plot_marginals(there, shape=(12, 12))
