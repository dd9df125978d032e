"""What blocks look like, and how wide they should be: ``python examples/block_widths.py blocks.png``.

Left, the two forests that cover a lattice ("trees"): sites that are drawn jointly have the same color, sites
of both forests are dark. Right, effective draws per second of the worst marginal of a spin glass, by the
entries of the largest clique table.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import gibbsite as gs
from gibbsite.inference.sampling import try_out


def show_forests(axes: Axes, side: int = 12) -> None:
    """Color the sites of a lattice by the forests they are in, and draw the edges within each."""
    model = gs.FactorGraph(
        {f"{r},{c}": 2 for r in range(side) for c in range(side)},
        [
            ((f"{r},{c}", f"{r + a},{c + b}"), [[2.0, 1.0], [1.0, 2.0]])
            for r in range(side)
            for c in range(side)
            for a, b in ((0, 1), (1, 0))
            if r + a < side and c + b < side
        ],
    )
    blocks = gs.BlockGibbs("trees").plan(gs.graphs.compile_graph(model, "table")).blocks
    for block, color, shift in zip(blocks[:2], ("tab:blue", "tab:orange"), (-0.06, 0.06), strict=True):
        inside = set(block.tolist())
        for i in inside:
            row, column = divmod(i, side)
            for j, there in ((i + 1, (row, column + 1)), (i + side, (row + 1, column))):
                if j in inside and there[0] < side and there[1] < side:
                    ends = [column + shift, there[1] + shift], [row + shift, there[0] + shift]
                    axes.plot(*ends, color=color, linewidth=2)
        axes.plot([i % side + shift for i in inside], [i // side + shift for i in inside], "o", color=color)
    axes.set_title(f"Two forests cover a {side} x {side} lattice")
    axes.set_aspect("equal")
    axes.set_axis_off()


def show_widths(axes: Axes, side: int = 10, seconds: float = 4.0) -> None:
    """Measure effective draws per second for several widths."""
    rng = np.random.default_rng(3)
    model = gs.ising_grid((side, side), coupling=rng.normal(0.0, 1.5, (2, side, side)))
    widths = range(2, 13)
    rates = []
    for log2 in widths:
        found = try_out(model, gs.BlockGibbs("width", entries=2**log2), seconds=seconds, rng=1, threads=1)
        rates.append((found.diagnostics.ess_min or 0.0) / found.seconds)
    plain = try_out(model, gs.Gibbs(), seconds=seconds, rng=1, threads=1)
    axes.semilogy(widths, rates, "o-", label="blocks")
    level = (plain.diagnostics.ess_min or 0.0) / plain.seconds
    axes.axhline(level, color="tab:gray", linestyle="--", label="single sites")
    axes.set_xlabel("log2 of the entries of the largest clique table")
    axes.set_ylabel("effective draws per second, worst marginal")
    axes.set_title(f"Spin glass, {side} x {side}")
    axes.legend()


def main(path: str = "blocks.png") -> None:
    """Draw both pictures."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    show_forests(left)
    show_widths(right)
    figure.savefig(path, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
