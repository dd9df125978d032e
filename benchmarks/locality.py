"""Sites in an order that has nothing to do with their neighbours: what is left of the speed."""

from __future__ import annotations

import numpy as np

import gibbsite as gs
from benchmarks.measure import Contestant, race
from benchmarks.poisson import BETA, GAMMA, STATES, dense_potts
from benchmarks.report import Section, Target
from gibbsite.kernels.minibatch.factors import local_energies


def grid_as_graph(side: int, shuffled: bool) -> gs.FactorGraph:
    """Return a square spin glass as a list of edges, sites and edges in row order or in any."""
    rng = np.random.default_rng(1)
    site = np.arange(side * side).reshape(side, side)
    a = np.concatenate([site[:, :-1].ravel(), site[:-1].ravel()])
    b = np.concatenate([site[:, 1:].ravel(), site[1:].ravel()])
    coupling, field = rng.normal(0.0, 0.3, a.size), rng.normal(0.0, 0.1, site.size)
    if shuffled:
        name, order = rng.permutation(site.size), rng.permutation(a.size)
        a, b, coupling = name[a][order], name[b][order], coupling[order]
        field = field[np.argsort(name)]
    return gs.ising((a, b, coupling), field)


def scattered(sites: int) -> gs.FactorGraph:
    """Return a Potts model whose sites are all coupled, at random positions of density one, in any order."""
    at = np.random.default_rng(1).random((sites, 2)) * sites**0.5
    return gs.models.distance_potts(at, STATES, GAMMA, BETA)


def measure(*, quick: bool = False) -> Section:
    """Measure all."""
    side, few, many, repetitions = (300, 900, 40_000, 3) if quick else (1000, 4900, 250_000, 9)
    glasses = {name: grid_as_graph(side, name == "shuffled") for name in ("in rows", "shuffled")}
    clouds = {n: scattered(n) for n in (few, many)}
    # of the same size as on grids: it would be that of the closest positions otherwise, which few sites have
    poisson = gs.PoissonGibbs(local_energies(gs.graphs.compile_graph(dense_potts(20))).largest ** 2)
    ways = {"by color": gs.Gibbs(), "site by site": gs.Gibbs("metropolised")}
    jobs = {
        **{f"grid {name}, {how}": (glasses[name], kernel) for how, kernel in ways.items() for name in glasses},
        **{f"Poisson-Gibbs, {n:,} positions": (model, poisson) for n, model in clouds.items()},
    }
    contestants = []
    for name, (model, kernel) in jobs.items():
        chain = gs.PersistentChains(model, kernel, chains=1, rng=1, threads=1)
        contestants.append(Contestant(name, chain.run, model.n_sites, least=1))
    seen = race(contestants, repetitions=repetitions, seconds=0.3)
    targets = [
        Target.of(
            f"{side:,} x {side:,} grid as a graph, {how}: shuffled of rows",
            seen[f"grid shuffled, {how}"].against(seen[f"grid in rows, {how}"]),
            0.8,
        )
        for how in ways
    ]
    small, large = (f"Poisson-Gibbs, {n:,} positions" for n in (few, many))
    growth = seen[small].against(seen[large])
    targets.append(Target.of(f"{large} of {few:,}", growth, 1.6, least=False))
    rows = [[name, f"{1e9 / seen[name].rate.median:,.1f} ns", f"{1e9 * min(seen[name].cpu):,.1f} ns"] for name in jobs]
    data = {name: seen[name].rate.to_dict() for name in jobs}
    return Section("locality", targets, ["sites in any order", "an update", "at best"], rows, data)
