"""The models of the benchmark, as data: arrays that both gibbsite and the C loops are built from."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gibbsite as gs
from gibbsite.formats.files import example_path

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


@dataclass(frozen=True)
class Spins:
    """Binary sites in pairs, ``p(s) ~ exp(sum J_ij s_i s_j + sum h_i s_i)``; ``shape`` if on a lattice."""

    name: str
    pairs: NDArray[np.int32]
    weights: NDArray[np.float64]
    fields: NDArray[np.float64]
    shape: tuple[int, ...] | None = None
    periodic: bool = False

    @property
    def n_sites(self) -> int:
        return self.fields.size

    def model(self, kind: str | None = None) -> gs.FactorGraph:
        """Build the model; as a lattice where that is asked for, otherwise from a list of pairs."""
        if kind == "lattice":
            assert self.shape is not None
            coupling = _by_axis(self.shape, self.pairs, self.weights)
            field = self.fields.reshape(self.shape)
            return gs.ising_grid(self.shape, coupling=coupling, field=field, periodic=self.periodic)
        i, j = self.pairs.T
        return gs.ising((i, j, self.weights), self.fields)

    def uniform(self) -> gs.FactorGraph:
        """Build a model of the same shape with one coupling for all."""
        assert self.shape is not None
        return gs.ising_grid(self.shape, coupling=0.2)

    def rows(self) -> Rows:
        """Return start, neighbour and coupling of compressed rows."""
        return _rows(self.pairs, self.weights, self.n_sites)

    def tables(self) -> Tables:
        """Return the same law as a product of tables."""
        spins = np.array([-1.0, 1.0])
        pairs = np.exp(self.weights[:, None, None] * np.multiply.outer(spins, spins))
        single = np.exp(self.fields[:, None] * spins)
        sites = np.arange(self.n_sites, dtype=np.int32)[:, None]
        return Tables(self.name, np.full(self.n_sites, 2, np.int32), ((self.pairs, pairs), (sites, single)))


@dataclass(frozen=True)
class Agreements:
    """Sites with equally many states, ``p(x) ~ exp(sum J_ij [x_i == x_j])``; ``shape`` if on a lattice."""

    name: str
    states: int
    n_sites: int
    pairs: NDArray[np.int32]
    weights: NDArray[np.float64]
    shape: tuple[int, ...] | None = None

    def model(self, kind: str | None = None) -> gs.FactorGraph:
        """Build the model; as a lattice or from tables where that is asked for, otherwise from pairs."""
        if kind == "lattice":
            assert self.shape is not None
            return gs.potts_grid(self.shape, self.states, _by_axis(self.shape, self.pairs, self.weights))
        if kind in ("pairwise", "table"):
            return self.tables().model()
        pairs = gs.factors.AgreementFactors(self.pairs, self.weights)
        return gs.FactorGraph(self.n_sites, groups=[pairs], states=self.states)

    def uniform(self) -> gs.FactorGraph:
        """Build a model of the same shape with one coupling for all."""
        assert self.shape is not None
        return gs.potts_grid(self.shape, self.states, coupling=0.5)

    def rows(self) -> Rows:
        """Return start, neighbour and coupling of compressed rows."""
        return _rows(self.pairs, self.weights, self.n_sites)

    def tables(self) -> Tables:
        """Return the same law as a product of tables."""
        tables = np.exp(self.weights[:, None, None] * np.eye(self.states))
        return Tables(self.name, np.full(self.n_sites, self.states, np.int32), ((self.pairs, tables),))


@dataclass(frozen=True)
class Tables:
    """Sites of any number of states; groups of equal-shaped tables as (scopes, potentials)."""

    name: str
    cards: NDArray[np.int32]
    groups: tuple[tuple[NDArray[np.int32], NDArray[np.float64]], ...]
    directed: bool = False

    @property
    def n_sites(self) -> int:
        return self.cards.size

    def model(self, kind: str | None = None) -> gs.FactorGraph:
        """Build the model."""
        with np.errstate(divide="ignore"):
            groups = [gs.factors.TableFactors(scopes, np.log(p), self.directed) for scopes, p in self.groups]
        if (self.cards == self.cards[0]).all():
            return gs.FactorGraph(self.n_sites, groups=groups, states=int(self.cards[0]))
        return gs.FactorGraph({f"v{i}": int(k) for i, k in enumerate(self.cards)}, groups=groups)

    def tables(self) -> Tables:
        return self


Workload = Spins | Agreements | Tables


def _rows(pairs: NDArray[np.int32], weights: NDArray[np.float64], n: int) -> Rows:
    """Return start, neighbour and coupling of compressed rows, neighbours in ascending order."""
    here = np.concatenate([pairs[:, 0], pairs[:, 1]]).astype(np.int64)
    there = np.concatenate([pairs[:, 1], pairs[:, 0]])
    order = np.argsort(here * n + there)
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(here, minlength=n), out=start[1:])
    return start, there[order], np.concatenate([weights, weights])[order]


def _by_axis(shape: tuple[int, ...], pairs: NDArray[np.int32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of the pairs of a lattice by axis and first site (axes, *shape)."""
    axes = np.zeros((len(shape), math.prod(shape)))
    step = np.array([math.prod(shape[a + 1 :]) for a in range(len(shape))])
    gap = pairs[:, 1] - pairs[:, 0]
    for axis, size in enumerate(shape):
        along = (gap == step[axis]) | (gap == -step[axis] * (size - 1))
        axes[axis, pairs[along, 0]] = weights[along]
    return axes.reshape(len(shape), *shape)


def grid(name: str, side: int, *, periodic: bool = False) -> Spins:
    """Square lattice, couplings uniform in (0, 0.25), no fields."""
    rng = np.random.default_rng(side)
    sites = np.arange(side * side, dtype=np.int32).reshape(side, side)
    if periodic:
        ends = [(sites, np.roll(sites, -1, axis)) for axis in (0, 1)]
    else:
        ends = [(sites[:-1], sites[1:]), (sites[:, :-1], sites[:, 1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ends])
    weights = rng.uniform(0.0, 0.25, len(pairs))
    return Spins(name, pairs, weights, np.zeros(side * side), (side, side), periodic)


def regular3(name: str, n: int) -> Spins:
    """Random graph of degree 3 (a random ring plus a random matching), couplings normal times 0.5."""
    rng = np.random.default_rng(n)
    ring = rng.permutation(n)
    place = np.empty(n, np.int64)
    place[ring] = np.arange(n)
    while True:  # about one matching in three avoids all edges of the ring
        match = rng.permutation(n).reshape(-1, 2)
        apart = np.abs(place[match[:, 0]] - place[match[:, 1]])
        if not ((apart == 1) | (apart == n - 1)).any():
            break
    pairs = np.concatenate([np.stack([ring, np.roll(ring, -1)], axis=1), match]).astype(np.int32)
    return Spins(name, pairs, 0.5 * rng.normal(size=len(pairs)), np.zeros(n))


def potts(name: str, side: int, states: int) -> Agreements:
    """Square lattice with random weights of equal neighbours."""
    pairs = grid(name, side).pairs
    weights = np.random.default_rng(states).uniform(0.0, 1.0, len(pairs))
    return Agreements(name, states, side * side, pairs, weights, (side, side))


def potts_dense(name: str, side: int, states: int) -> Agreements:
    """Sites on a square, all pairs coupled by 4.6 exp(-1.5 d^2), d being their distance."""
    place = np.stack(np.divmod(np.arange(side * side), side), axis=1)
    pairs = np.stack(np.triu_indices(side * side, 1), axis=1)
    squares = ((place[pairs[:, 0]] - place[pairs[:, 1]]) ** 2).sum(axis=1)
    return Agreements(name, states, side * side, pairs.astype(np.int32), 4.6 * np.exp(-1.5 * squares))


def network(name: str, n: int) -> Tables:
    """A Bayesian network: 2 to 4 states, 0 to 4 parents among the 20 sites before, random tables."""
    rng = np.random.default_rng(n)
    cards = rng.integers(2, 5, n).astype(np.int32)
    factors = []
    for site in range(n):
        near = np.arange(max(0, site - 20), site)
        parents = rng.choice(near, min(near.size, int(rng.integers(0, 5))), replace=False)
        scope = np.append(parents, site).astype(np.int32)
        above = tuple(int(k) for k in cards[parents])
        factors.append((scope, rng.dirichlet(np.ones(cards[site]), above)))
    return Tables(name, cards, _by_shape(factors), directed=True)


def alarm(name: str) -> Tables:
    """The alarm network (37 sites) without evidence."""
    text = example_path("alarm").read_text(encoding="utf-8")
    listed = re.findall(r"variable\s+(\S+)\s*\{\s*type discrete\s*\[[^]]*\]\s*\{([^}]*)\}", text)
    labels = {site: [label.strip() for label in states.split(",")] for site, states in listed}
    position = {site: i for i, site in enumerate(labels)}
    factors = []
    for head, body in re.findall(r"probability\s*\(([^)]*)\)\s*\{([^}]*)\}", text):
        site, *parents = re.findall(r"[^\s,|]+", head)
        table = np.zeros([len(labels[s]) for s in (*parents, site)])
        for given, row in re.findall(r"(?:\(([^)]*)\)|table)\s*([^;]*);", body):
            codes = [labels[p].index(g.strip()) for p, g in zip(parents, given.split(","), strict=False)]
            table[tuple(codes)] = [float(number) for number in row.split(",")]
        factors.append((np.array([position[s] for s in (*parents, site)], np.int32), table))
    cards = np.array([len(states) for states in labels.values()], np.int32)
    return Tables(name, cards, _by_shape(factors), directed=True)


def _by_shape(factors: list[tuple[NDArray[np.int32], NDArray[np.float64]]]) -> Any:
    """Collect single factors into groups of equal shape."""
    groups: dict[tuple[int, ...], list[tuple[Any, Any]]] = {}
    for scope, table in factors:
        groups.setdefault(table.shape, []).append((scope, table))
    return tuple(
        (np.stack([scope for scope, _ in group]), np.stack([table for _, table in group])) for group in groups.values()
    )


#: Every workload by name.
WORKLOADS: dict[str, Callable[[str], Workload]] = {
    "tiny": lambda name: grid(name, 8),
    "tiny-network": lambda name: network(name, 12),
    "grid100": lambda name: grid(name, 100),
    "grid1000": lambda name: grid(name, 1000),
    "regular3": lambda name: regular3(name, 10_000),
    "regular3-million": lambda name: regular3(name, 1_000_000),
    "potts100": lambda name: potts(name, 100, 3),
    "potts-dense": lambda name: potts_dense(name, 20, 10),
    "tiny-potts": lambda name: potts_dense(name, 3, 4),
    "network40": lambda name: network(name, 40),
    "network200": lambda name: network(name, 200),
    "network1000": lambda name: network(name, 1000),
    "alarm": alarm,
}


def load(name: str) -> Workload:
    """Make a workload."""
    return WORKLOADS[name](name)
