"""Exact transition matrices of minibatch kernels, the minibatch summed out; in plain NumPy, from the papers.

Everything is about models of a few sites: factors as (sites, table of log-potentials).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

Matrix = NDArray[np.float64]


class Model:
    """A model of sites with equally many states, factors of several sites and of single ones."""

    def __init__(self, n: int, states: int, factors: list[tuple[tuple[int, ...], Any]], fields: Any) -> None:
        self.n, self.states = n, states
        self.factors = [(tuple(scope), np.asarray(table) - np.min(table)) for scope, table in factors]
        self.fields = np.asarray(fields, float)
        self.codes = np.array(list(product(range(states), repeat=n)))
        logs = np.array([self.pair_energy(x) + self.fields[np.arange(n), x].sum() for x in self.codes])
        weights = np.exp(logs - logs.max())
        self.law = weights / weights.sum()

    def pair_energy(self, x: Any) -> float:
        return float(sum(table[tuple(x[j] for j in scope)] for scope, table in self.factors))

    def of_site(self, site: int, x: Any) -> list[tuple[float, Matrix]]:
        """Factors of a site: the bound, and the values for all states of the site given the others."""
        found = []
        for scope, table in self.factors:
            if site in scope:
                at: list[Any] = [slice(None) if j == site else x[j] for j in scope]
                found.append((float(table.max()), table[tuple(at)]))
        return found

    @property
    def local(self) -> Matrix:
        return np.array([sum(m for m, _ in self.of_site(i, self.codes[0])) for i in range(self.n)])

    @property
    def largest(self) -> float:
        return float(self.local.max())

    @property
    def total(self) -> float:
        return float(sum(table.max() for _, table in self.factors))

    def number(self, x: Any) -> int:
        return int(np.ravel_multi_index(tuple(x), (self.states,) * self.n))

    def moved(self, x: Any, site: int, value: int) -> Any:
        y = np.array(x)
        y[site] = value
        return y


def enough(mean: float) -> int:
    """Return a number that a Poisson number of this mean reaches with a probability below 1e-20."""
    return int(mean + 12.0 * np.sqrt(mean) + 25.0) if mean > 0 else 1


def counts_of(means: list[float]) -> tuple[NDArray[np.int64], Matrix]:
    """All vectors of independent Poisson numbers but for tiny tails, and their probabilities."""
    ranges = [np.arange(enough(m)) for m in means]
    grids = np.meshgrid(*ranges, indexing="ij")
    counts = np.stack([g.ravel() for g in grids], axis=1) if means else np.zeros((1, 0), np.int64)
    chance = np.ones(len(counts))
    for k, m in enumerate(means):
        chance *= poisson.pmf(counts[:, k], m)
    return counts, chance


def softmax(logs: Matrix) -> Matrix:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def gibbs_row(model: Model, x: Any, site: int) -> Matrix:
    logs = model.fields[site] + sum(values for _, values in model.of_site(site, x))
    return softmax(logs[None])[0]


def poisson_row(model: Model, x: Any, site: int, size: float) -> Matrix:
    """Poisson-Gibbs: s ~ Poisson(lambda M / L + phi), weights prod (1 + L phi / (lambda M))^s."""
    tau = size / model.largest
    factors = [(m, values) for m, values in model.of_site(site, x) if m > 0]
    counts, chance = counts_of([tau * m + values[x[site]] for m, values in factors])
    gains = np.array([np.log1p(values / (tau * m)) for m, values in factors])
    logs = model.fields[site] + counts @ gains.reshape(len(factors), model.states)
    return chance @ softmax(logs)


def mgpmh_row(model: Model, x: Any, site: int, size: float) -> Matrix:
    """Minibatch proposals, corrected by the exact local energies."""
    energies, chance = _proposals(model, x, site, size)
    exact = sum(values - values[x[site]] for _, values in model.of_site(site, x))
    accepted = np.exp(np.minimum(exact + energies[:, [x[site]]] - energies, 0.0))
    row: Matrix = chance @ (softmax(energies + model.fields[site]) * accepted)
    row[x[site]] += 1.0 - row.sum()
    return row


def accepted_by_minibatch(factors: list[tuple[float, float, float]], tau: float, odds: float) -> float:
    """Return the acceptance rate of a move by Poisson numbers of means tau M + phi(x).

    Factors are triples of bound, value before and value after the move; ``odds`` is the gain of everything else.
    """
    factors = [f for f in factors if f[1] != f[2]]  # others cancel
    counts, chance = counts_of([tau * m + before for m, before, _ in factors])
    gains = [np.log((tau * m + after) / (tau * m + before)) for m, before, after in factors]
    return float(chance @ np.exp(np.minimum(counts @ np.array(gains) + odds, 0.0)))


def discrete_row(model: Model, x: Any, site: int, size: float) -> Matrix:
    """Metropolis-Hastings of a site with uniform proposals of its other states and Poisson minibatches."""
    row = np.zeros(model.states)
    factors = model.of_site(site, x)
    for v in range(model.states):
        if v != x[site]:
            moves = [(m, float(values[x[site]]), float(values[v])) for m, values in factors]
            odds = model.fields[site, v] - model.fields[site, x[site]]
            row[v] = accepted_by_minibatch(moves, size / model.largest, odds) / (model.states - 1)
    row[x[site]] = 1.0 - row.sum()
    return row


def metropolis_row(model: Model, x: Any, site: int) -> Matrix:
    """Metropolis-Hastings of a site with uniform proposals of its other states and all factors."""
    logs = model.fields[site] + sum(values for _, values in model.of_site(site, x))
    row: Matrix = np.exp(np.minimum(logs - logs[x[site]], 0.0)) / (model.states - 1)
    row[x[site]] = 0.0
    row[x[site]] = 1.0 - row.sum()
    return row


def proposed_matrix(model: Model, proposal: Matrix, size: float | None) -> Matrix:
    """Metropolis-Hastings with any proposal q(y | x) of whole states, by minibatches, or by all factors (None)."""
    found = np.zeros_like(proposal)
    own = np.array([model.fields[np.arange(model.n), x].sum() for x in model.codes])
    values = np.array([[table[tuple(x[j] for j in scope)] for scope, table in model.factors] for x in model.codes])
    bounds = [float(table.max()) for _, table in model.factors]
    for k, h in np.argwhere((proposal > 0.0) & ~np.eye(len(proposal), dtype=bool)):
        if proposal[h, k] > 0.0:
            odds = own[h] - own[k] + np.log(proposal[h, k] / proposal[k, h])
            if size is None:
                accepted = float(np.exp(min(odds + values[h].sum() - values[k].sum(), 0.0)))
            else:
                moves = list(zip(bounds, values[k].tolist(), values[h].tolist(), strict=True))
                accepted = accepted_by_minibatch(moves, size / model.total, odds)
            found[k, h] = proposal[k, h] * accepted
    found[np.diag_indices(len(found))] = 1.0 - found.sum(axis=1)
    return found


def _proposals(model: Model, x: Any, site: int, size: float) -> tuple[Matrix, Matrix]:
    """LocalEnergies of all values by minibatch, and the probabilities of the minibatches."""
    tau = size / model.largest
    factors = [(m, values) for m, values in model.of_site(site, x) if m > 0]
    counts, chance = counts_of([tau * m for m, _ in factors])
    gains = np.array([values / (tau * m) for m, values in factors]).reshape(len(factors), model.states)
    return counts @ gains, chance


def local_row(model: Model, x: Any, site: int, size: int) -> Matrix:
    """Local minibatches: a uniform subset, scaled up."""
    from itertools import combinations

    factors = model.of_site(site, x)
    subsets = list(combinations(factors, min(size, len(factors))))
    logs = [model.fields[site] + len(factors) / len(subset) * sum(values for _, values in subset) for subset in subsets]
    return softmax(np.array(logs)).mean(axis=0)


def site_matrix(model: Model, row: Any, site: int, *size: float) -> Matrix:
    matrix = np.zeros((len(model.codes), len(model.codes)))
    for k, x in enumerate(model.codes):
        for v, p in enumerate(row(model, x, site, *size)):
            matrix[k, model.number(model.moved(x, site, v))] += p
    return matrix


def random_scan(model: Model, row: Any, *size: float) -> Matrix:
    return sum(site_matrix(model, row, i, *size) for i in range(model.n)) / model.n  # type: ignore[return-value]


def gap(model: Model, matrix: Matrix) -> float:
    """Spectral gap of a reversible matrix."""
    root = np.sqrt(model.law)
    values = np.linalg.eigvalsh(matrix * root[:, None] / root)
    return float(1.0 - values[-2])


class Estimates:
    """MIN-Gibbs (of two states) and DoubleMIN-Gibbs with their estimates; factors are 0 or their bound.

    An estimate is log(1 + 1 / tau) times a number N; given x, N is Poisson with mean tau U(x), where U is the energy
    of the factors, and in the stationary law with mean (tau + 1) U(x).
    """

    def __init__(self, model: Model, size: float) -> None:
        assert all(np.isin(table, (0.0, table.max())).all() for _, table in model.factors)
        self.model = model
        self.tau = size / model.total
        self.step = float(np.log1p(1.0 / self.tau))
        self.energy = np.array([model.pair_energy(x) for x in model.codes])
        self.numbers = np.arange(enough((self.tau + 1.0) * self.energy.max()))
        self.fresh = poisson.pmf(self.numbers, (self.tau * self.energy)[:, None])
        self.tilted = poisson.pmf(self.numbers, ((self.tau + 1.0) * self.energy)[:, None])

    @property
    def law(self) -> Matrix:
        """Probability of each state and number."""
        return self.model.law[:, None] * self.tilted

    def min_gibbs(self, site: int) -> Matrix:
        """P[x, N, y, N'] of one update."""
        model, many = self.model, self.numbers.size
        assert model.states == 2
        found = np.zeros((len(model.codes), many, len(model.codes), many))
        for k, x in enumerate(model.codes):
            other = model.number(model.moved(x, site, 1 - x[site]))
            odds = self.step * (self.numbers[None, :] - self.numbers[:, None])
            odds += model.fields[site, 1 - x[site]] - model.fields[site, x[site]]
            moves = self.fresh[other][None, :] / (1.0 + np.exp(-odds))
            found[k, :, other, :] = moves
            found[k, self.numbers, k, self.numbers] = 1.0 - moves.sum(axis=1)
        return found

    def double_min(self, site: int, size: float) -> Matrix:
        """P[x, N, y, N'] of one update with proposals of mean size ``size``."""
        model, many = self.model, self.numbers.size
        found = np.zeros((len(model.codes), many, len(model.codes), many))
        better = self.step * (self.numbers[None, :] - self.numbers[:, None])
        for k, x in enumerate(model.codes):
            energies, chance = _proposals(model, x, site, size)
            for v in range(model.states):
                y = model.number(model.moved(x, site, v))
                # minibatches that differ in nothing but what they propose by are taken together
                lead, which = np.unique(energies[:, x[site]] - energies[:, v], return_inverse=True)
                weight = np.bincount(which, chance * softmax(energies + model.fields[site])[:, v])
                for g, p in zip(lead, weight, strict=True):
                    found[k, :, y, :] += p * self.fresh[y] * np.exp(np.minimum(better + g, 0.0))
            left = 1.0 - found[k].sum(axis=(1, 2))
            found[k, self.numbers, k, self.numbers] += left
        return found

    def row(self, moves: Matrix, x: Any, site: int) -> Matrix:
        """Law of the next value from state x, its number drawn from the stationary law."""
        k = self.model.number(x)
        states = (self.tilted[k][:, None, None] * moves[k]).sum(axis=(0, 2))
        values = range(self.model.states)
        row: Matrix = np.array([states[self.model.number(self.model.moved(x, site, v))] for v in values])
        return row


def drawn_estimates(model: Model, x: Any, size: float) -> tuple[Matrix, Matrix]:
    """All estimates of the energy of a state by their definition, and their probabilities.

    Every factor has a Poisson number s of mean tau M; the estimate is the sum of s log(1 + phi(x) / (tau M)).
    """
    tau = size / model.total
    bounds = [float(table.max()) for _, table in model.factors]
    values = [float(table[tuple(x[j] for j in scope)]) for scope, table in model.factors]
    counts, chance = counts_of([tau * m for m in bounds])
    return counts @ np.log1p(np.array(values) / (tau * np.array(bounds))), chance
