"""
Herded Gibbs sampling: errors that fall like 1/T
================================================

Random Gibbs sampling has errors that fall like one over the square root of the number of sweeps T. Herded Gibbs
sampling is deterministic, and on complete graphs its errors fall like 1/T (Bornn et al., 2013). The points are root
mean squares over 20 models of five spins, with one chain each.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)  # short runs are meant to have large errors
rng = np.random.default_rng(2)
models = [gs.ising(np.triu(rng.normal(0, 0.5, (5, 5)), 1), rng.normal(0, 0.3, 5)) for _ in range(20)]
exact = [gs.solve_exact(model).marginals.to_array() for model in models]
quick = gs.Criteria(dispersed_starts=False)
lengths = 4 ** np.arange(3, 9)
figure, axes = plt.subplots(layout="constrained")
for name, kernel in {"random": gs.Gibbs(), "herded": gs.HerdedGibbs()}.items():
    errors = []
    for sweeps in lengths:
        how = {"sweeps": int(sweeps), "warmup": 0, "chains": 1, "record": ["draws"]}
        runs = [gs.sample(model, kernel, rng=1, progress=False, criteria=quick, **how) for model in models]
        shares = [run.draws[0].mean(axis=0) for run in runs]
        errors.append(np.sqrt(np.mean([(share - true[:, 1]) ** 2 for share, true in zip(shares, exact, strict=True)])))
    axes.loglog(lengths, errors, "o-", ms=4, label=name)
for power, scale, style in ((0.5, 1.5, ":"), (1.0, 5.0, "--")):
    axes.loglog(lengths, scale * lengths**-power, style, color="0.5", lw=1, label=f"T to the power -{power:g}")
axes.set(xlabel="sweeps T", ylabel="root mean square error of a marginal")
axes.legend(frameon=False)
