"""Models, scans and curves that the experiments of the DoGS paper share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.lab.short_runs import run_short
from gibbsite.report._canvas import COLORS, FAINT

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
PASSES = 1000  # of iterated DoGS at most; it stops where nothing is gained, after ten or twenty
LOOKS = {"uniform": FAINT, "systematic": COLORS[0], "DoGS": COLORS[5], "iterated DoGS": COLORS[1]}


def random_grid(side: int, rng: np.random.Generator, *, fields: bool = True) -> gs.FactorGraph:
    """Draw the model of the paper's section 5.1: couplings from U(0, 0.25), fields 0 or 1, or none.

    Examples
    --------
    >>> random_grid(10, np.random.default_rng(1)).n_sites
    100
    """
    couplings = rng.uniform(0.0, 0.25, (2, side, side))
    field = rng.integers(0, 2, (side, side)) if fields else 0.0
    return gs.ising_grid((side, side), coupling=couplings, field=field)


def paper_order(sites: int) -> gs.Systematic:
    """Return the systematic scan of the paper, q_t = e_((t mod p) + 1), t = 1, 2, ...

    It starts at the second site and ends on the first.

    Examples
    --------
    >>> paper_order(4).order.tolist()
    [1, 2, 3, 0]
    """
    return gs.Systematic(np.roll(np.arange(sites, dtype=np.int32), -1))


def guarantee(
    model: gs.FactorGraph, lengths: Index, target: Any = None, *, influence: gs.Influence | None = None
) -> tuple[dict[str, Floats], list[gs.DogsScan]]:
    """Bound the bias after each number of steps: uniform, systematic, DoGS made from it, iterated DoGS.

    A scan is optimised for each length by itself; those of DoGS are returned too.

    Examples
    --------
    >>> curves, scans = guarantee(gs.ising_grid((4, 4), coupling=0.1), np.array([16, 32]))
    >>> bool((curves["DoGS"] <= curves["systematic"]).all()), len(scans[1].order)
    (True, 32)
    """
    bounds = gs.bound_influence(model) if influence is None else influence
    drawn, order = gs.RandomScan(), paper_order(model.n_sites)

    def improve(passes: int) -> list[gs.DogsScan]:
        common: dict[str, Any] = {"target": target, "initial": order, "influence": bounds}
        return [gs.dogs(model, steps=int(t), iterations=passes, **common) for t in lengths]

    uniform = [gs.certify(model, scan=drawn, steps=int(t), target=target, influence=bounds) for t in lengths]
    once, often = improve(1), improve(PASSES)
    curves = {
        "uniform": np.array([found.variation for found in uniform]),
        "systematic": np.array([scan.input_variation for scan in once]),
        "DoGS": np.array([scan.variation for scan in once]),
        "iterated DoGS": np.array([scan.variation for scan in often]),
    }
    return curves, once


def mean_spin(
    model: gs.FactorGraph, scan: gs.Scan, lengths: Index, *, site: int = 0, chains: int, rng: int
) -> Floats:
    """Return the mean of a site of value -1 or 1 after each number of steps, started at 1 everywhere.

    Examples
    --------
    >>> model = gs.ising_grid((3, 3), coupling=0.1)
    >>> bool(abs(mean_spin(model, gs.Systematic(), np.array([90]), chains=1000, rng=1)[0]) < 0.2)
    True
    """
    start = np.ones(model.n_sites, np.int8)
    x = run_short(model, scan, lengths, np.array([site]), chains=chains, start=start, rng=rng)
    means: Floats = 2.0 * x.mean(axis=(1, 2)) - 1.0
    return means
