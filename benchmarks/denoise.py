"""Denoising: a whole call against NumPy, and herded sweeps against plain ones of the same graph and scan."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from benchmarks.forms import Bundle
from benchmarks.measure import Contestant, Spread, Times, race
from benchmarks.report import Section, Target
from benchmarks.workloads import grid
from gibbsite.sampling.layout import choose_scan_and_layout
from gibbsite.sampling.record import lay_out

SIGMA, SWEEPS = 2.0, 30


def noisy_disc(side: int) -> NDArray[np.float64]:
    """Return a disc of half the width in noise around -1 and +1."""
    radius = np.hypot(*(np.indices((side, side)) - side / 2))
    return np.where(radius < side / 4, 1.0, -1.0) + np.random.default_rng(1).normal(0, SIGMA, radius.shape)


def numpy_gibbs(y: NDArray[np.float64], sweeps: int) -> NDArray[np.float64]:
    """Denoise as one would in NumPy: one color of the checkerboard after the other, states averaged."""
    rng = np.random.default_rng(1)
    black = np.indices(y.shape).sum(axis=0) % 2 == 0
    x, own = np.where(y > 0, 1.0, -1.0), 2.0 * y / SIGMA**2
    around, total = np.empty_like(x), np.zeros_like(x)
    for _ in range(sweeps):
        for color in (black, ~black):
            around[:] = 0.0
            around[1:] += x[:-1]
            around[:-1] += x[1:]
            around[:, 1:] += x[:, :-1]
            around[:, :-1] += x[:, 1:]
            chance = 1.0 / (1.0 + np.exp(-(2.0 * around + own)))
            drawn = np.where(rng.random(y.shape) < chance, 1.0, -1.0)
            x = np.where(color, drawn, x)
        total += x > 0
    return total / sweeps


def whole_calls(side: int, repetitions: int) -> tuple[dict[str, Times], float]:
    """Race whole calls; return times and how far both averages are apart."""
    y = noisy_disc(side)

    def ours(calls: int) -> None:
        for _ in range(calls):
            denoise_once(y)

    def numpy(calls: int) -> None:
        for _ in range(calls):
            numpy_gibbs(y, SWEEPS)

    field = [
        Contestant("gibbsite", ours, SWEEPS * y.size, least=1),
        Contestant("NumPy", numpy, SWEEPS * y.size, least=1),
    ]
    apart = np.abs(denoise_once(y) - numpy_gibbs(y, SWEEPS)).mean()
    return race(field, repetitions=repetitions, seconds=0.1), float(apart)


def denoise_once(y: NDArray[np.float64]) -> NDArray[np.float64]:
    done = gs.applications.denoise(y, means=(-1, 1), sigma=SIGMA, method="herded-shared", sweeps=SWEEPS, progress=False)
    return done.probability


def sweeps_of(
    model: gs.FactorGraph, kernels: dict[str, gs.kernels.Kernel], scan: gs.scans.Scan, repetitions: int
) -> dict[str, Any]:
    """Race bare sweeps of kernels on one graph, each in the fastest form of the scan; Gibbs comes first."""
    graph = gs.graphs.compile_graph(model)
    chains = {}
    for name, kernel in kernels.items():
        _, form = choose_scan_and_layout(model, graph, kernel, scan, lay_out(model, graph, kernel, []), 1)
        chains[name] = Bundle(form, 1, False, kernel=kernel)
        chains[name].run(30)  # herded chains have met their keys then
    field = [Contestant(name, chain.run, graph.n_sites, least=2) for name, chain in chains.items()]
    return {"times": race(field, repetitions=repetitions, seconds=0.3), "chains": chains}


def bytes_per_key(chain: Bundle) -> float:
    """Return the bytes of a hash table for each key that was met."""
    ledger = chain.state.memory.ledger
    slots, keys, _ = ledger.fill  # memory beyond the slots in use is not touched
    return float(slots * (8 + 8 * ledger.width) / keys)


def measure(*, quick: bool = False) -> Section:
    """Race all."""
    repetitions = 3 if quick else 9
    side, large = (128, 200) if quick else (512, 1000)
    targets: list[Target] = []
    rows: list[list[str]] = []
    data: dict[str, Any] = {}

    times, apart = whole_calls(side, repetitions)
    call = f"denoise {side} x {side}, {SWEEPS} sweeps"
    seconds = Spread.of([t * SWEEPS * side**2 for t in times["gibbsite"].wall])
    targets.append(Target(f"{call}: herded-shared", seconds.median, 0.5, False, "s", _range(seconds)))
    ratio = times["gibbsite"].against(times["NumPy"])
    targets.append(Target(f"{call}: herded-shared against NumPy", ratio.median, 20.0, True, "NumPy", _range(ratio)))
    rows += [_row(f"{call}: {name}", seen, times["NumPy"]) for name, seen in times.items()]
    data["calls"] = {"apart": apart, **_data(times)}

    each = grid("denoise", large, periodic=False).model("lattice")
    one = gs.ising_grid((large, large), coupling=0.3, field=noisy_disc(large) / SIGMA**2)
    for name, model, keys in (("couplings of each edge", each, "blanket"), ("one coupling", one, "shared")):
        kernels: dict[str, gs.kernels.Kernel] = {"Gibbs": gs.Gibbs(), keys: gs.HerdedGibbs(keys=keys)}
        for scan, order in ((gs.Chromatic(), "by color"), (gs.Systematic(), "in order")):
            times = sweeps_of(model, kernels, scan, repetitions)["times"]
            cost = times["Gibbs"].against(times[keys])
            lattice = f"{name}, {large} x {large}, {order}"
            targets.append(Target(f"{lattice}: herded sweep, {keys}", cost.median, 1.1, False, "Gibbs", _range(cost)))
            rows += [_row(f"{lattice}: {kernel}", seen, times["Gibbs"]) for kernel, seen in times.items()]
            data[lattice] = _data(times)

    # many more keys than a table in the caches holds
    kernels = {storage: gs.HerdedGibbs(keys="blanket", storage=storage) for storage in ("dense", "hash")}
    seen = sweeps_of(one, kernels, gs.Systematic(), repetitions)
    rate = seen["times"]["hash"].against(seen["times"]["dense"])
    size = bytes_per_key(seen["chains"]["hash"])
    targets.append(Target(f"blanket, {large} x {large}: hash", rate.median, 0.5, True, "dense", _range(rate)))
    targets.append(Target(f"blanket, {large} x {large}: hash", size, 24.0, False, "B/key"))
    rows += [_row(f"storage {name}", t, seen["times"]["dense"]) for name, t in seen["times"].items()]
    data["storage"] = {"bytes_per_key": size, **_data(seen["times"])}
    head = ["million updates per second", "cpu", "wall", "ratio", "range"]
    return Section("denoise", targets, head, rows, data)


def _range(spread: Spread) -> str:
    return f"{spread.low:.2f} .. {spread.high:.2f}"


def _row(name: str, seen: Times, unit: Times) -> list[str]:
    ratio = seen.against(unit)
    return [
        name,
        f"{seen.rate.median / 1e6:.1f}",
        f"{seen.wall_rate.median / 1e6:.1f}",
        f"{ratio.median:.2f}",
        _range(ratio),
    ]


def _data(times: dict[str, Times]) -> dict[str, Any]:
    return {name: {"rate": t.rate.to_dict(), "wall_rate": t.wall_rate.to_dict()} for name, t in times.items()}
