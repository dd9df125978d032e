"""Draw the picture of the README: marginals of a network, of a lattice, and errors of two samplers.

python examples/readme_picture.py docs/readme.png
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import gibbsite as gs

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


def draw_network(ax: Axes) -> None:
    """Show what two observations change in the alarm network."""
    alarm = gs.example("alarm")
    seen = alarm.observe({"HRBP": "HIGH", "CO": "LOW"})
    before, after = gs.solve_exact(alarm).marginals, gs.solve_exact(seen).marginals
    asked = [("HYPOVOLEMIA", "TRUE"), ("STROKEVOLUME", "LOW"), ("BP", "LOW"), ("LVFAILURE", "TRUE")]
    at = np.arange(len(asked))
    ax.barh(at + 0.2, [before[site][state] for site, state in asked], 0.38, color=GREY, label="before")
    ax.barh(at - 0.2, [after[site][state] for site, state in asked], 0.38, color=BLUE, label="after")
    ax.set_yticks(at, [f"{site}\n= {state}" for site, state in asked], fontsize=7)
    ax.set_xlim(0, 1)
    ax.set_xlabel("probability")
    ax.set_title("alarm: HRBP = HIGH and CO = LOW", fontsize=9)
    ax.legend(fontsize=7, frameon=False, loc="lower right")


def draw_lattice(ax: Axes) -> None:
    """Show the marginals of a lattice whose border is observed: half of it up, half of it down."""
    size = 64
    edge = [(i, j) for i in range(size) for j in range(size) if i in (0, size - 1) or j in (0, size - 1)]
    model = gs.ising_grid((size, size), coupling=0.42)
    seen = model.observe({str(i * size + j): 1 if i < size // 2 else -1 for i, j in edge})
    result = gs.sample(seen, gs.Gibbs(), sweeps=4000, rng=1, progress=False)
    picture = np.zeros((size, size))
    for site in range(size * size):
        picture[divmod(site, size)] = result.marginals[str(site)][1]
    image = ax.imshow(picture, cmap="cividis", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title("64 x 64 Ising model, border observed", fontsize=9)
    plt.colorbar(image, ax=ax, fraction=0.046, label="P(spin up)")


def draw_errors(ax: Axes) -> None:
    """Compare the largest error of the marginals of random and of herded draws."""
    model = gs.ising_grid((4, 4), coupling=0.1, field=0.2)
    exact = gs.solve_exact(model).marginals
    lengths = 2 ** np.arange(4, 15)
    for kernel, color, name in ((gs.Gibbs(), ORANGE, "Gibbs"), (gs.HerdedGibbs(), BLUE, "herded Gibbs")):
        errors = []
        for sweeps in lengths:
            how = {
                "record": [gs.Marginals(rao_blackwell=False)],
                "progress": False,
                "criteria": gs.Criteria(dispersed_starts=False),
            }
            result = gs.sample(model, kernel, sweeps=int(sweeps), chains=1, rng=2, **how)
            errors.append(max(abs(result.marginals[s][1] - exact[s][1]) for s in model.sites))
        ax.loglog(lengths, errors, "o-", color=color, label=name, markersize=3)
    ax.set_xlabel("sweeps T")
    ax.set_ylabel("largest error of a marginal")
    ax.set_title("errors fall like 1/sqrt(T) and 1/T", fontsize=9)
    ax.legend(fontsize=7, frameon=False)


def main() -> None:
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.1), layout="constrained")
    draw_network(left)
    draw_lattice(middle)
    draw_errors(right)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "readme.png", dpi=110)


if __name__ == "__main__":
    main()
