"""Expectation-maximisation: tables that fit cases with missing cells best.

Each step computes the expected counts of all tables given the observed cells, and then the tables of largest
objective. The objective is the log-likelihood plus, for each entry, its pseudocount times its logarithm: what a
Dirichlet prior of these pseudocounts adds when tables are written as softmax of free parameters. It never decreases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Floats, Ints16
from gibbsite.errors import ModelError
from gibbsite.inference.exact.cases import CaseTree
from gibbsite.learn.networks.layout import Layout, count_families, normalised
from gibbsite.learn.networks.missing import Groups, expect, find_groups, make_scratch
from gibbsite.models import FactorGraph

_MOST_STATES = 1 << 14  # joint states of a group up to which they are enumerated


class Ascent(NamedTuple):
    """Tables, expected counts, the objective before every step, the log-likelihood, and whether steps became small."""

    tables: Floats
    counts: Floats
    path: tuple[float, ...]
    log_likelihood: float
    settled: bool


class Expectations:
    """Expected counts of the tables of a network, for cases with missing cells."""

    def __init__(self, layout: Layout, codes: Ints16, weights: Floats, most: int = _MOST_STATES) -> None:
        self.layout, self.codes, self.weights = layout, codes, weights
        self.groups = find_groups(layout, codes)
        large = np.unique(self.groups.row[self.groups.states > most])
        self.small = np.flatnonzero(~np.isin(self.groups.row, large))
        self.scratch = make_scratch(layout, self.groups, most)
        self.complete = count_families(layout, codes, weights)
        self.trees = _Trees(layout, np.ascontiguousarray(codes[:, large]), weights[large]) if large.size else None

    def __call__(self, tables: Floats) -> tuple[Floats, float]:
        """Return expected counts, and the log-likelihood."""
        counts = self.complete.copy()
        with np.errstate(divide="ignore"):
            logs = np.log(tables)
        seen = counts > 0.0
        found = float(counts[seen] @ logs[seen])
        found += expect(self.layout, self.groups, self.small, self.codes, self.weights, logs, self.scratch, counts)
        if self.trees is not None and found > -np.inf:
            found += self.trees.add(tables, counts)
        return counts, found


class _Trees:
    """Cases whose missing cells have too many joint states: expected counts from a clique tree.

    The probability of each joint state of the missing cells of a table is that of the case with these states observed.
    """

    def __init__(self, layout: Layout, codes: Ints16, weights: Floats) -> None:
        self.layout, self.weights = layout, weights
        self.codes = codes.T.astype(np.int64)
        self.complete = count_families(layout, codes, weights)
        rows, entries, wanted = [], [], []
        for row, case in enumerate(self.codes):
            for i in range(layout.card.size):
                family = slice(int(layout.begin[i]), int(layout.begin[i + 1]))
                sites, strides = layout.site[family], layout.stride[family]
                free = case[sites] < 0
                if not free.any():
                    continue
                for states in np.ndindex(*layout.card[sites[free]].tolist()):
                    with_states = case.copy()
                    with_states[sites[free]] = states
                    rows.append(row)
                    entries.append(int(layout.start[i]) + int(strides @ with_states[sites]))
                    wanted.append(with_states)
        self.rows, self.entries, self.wanted = np.array(rows), np.array(entries), np.array(wanted)

    def add(self, tables: Floats, counts: Floats) -> float:
        """Add expected counts; return the log-likelihood of the missing part of these cases."""
        tree = CaseTree(make_model(self.layout, tables, [str(i) for i in range(self.layout.card.size)]))
        totals, _ = tree.solve(self.codes, marginals=False)
        if not np.isfinite(totals).all():
            return -np.inf
        logs, _ = tree.solve(self.wanted, marginals=False)
        np.add.at(counts, self.entries, self.weights[self.rows] * np.exp(logs - totals[self.rows]))
        seen = self.complete > 0.0
        return float(self.weights @ totals - self.complete[seen] @ np.log(tables[seen]))


def make_model(
    layout: Layout, tables: Floats, names: Sequence[str], states: Sequence[Sequence[str | int]] | None = None
) -> FactorGraph:
    """Return tables as a directed model."""
    factors = []
    for i in range(layout.card.size):
        scope = layout.site[layout.begin[i] : layout.begin[i + 1]]
        shape = layout.card[scope].tolist()
        table = tables[layout.start[i] : layout.start[i + 1]].reshape(shape)
        factors.append((tuple(names[k] for k in scope), table))
    labels = [list(range(card)) for card in layout.card.tolist()] if states is None else [list(each) for each in states]
    return FactorGraph(dict(zip(names, labels, strict=True)), factors, directed=True)


def maximise(
    layout: Layout, expectations: Expectations, pseudocounts: Floats, start: Floats, iterations: int, tolerance: float
) -> Ascent:
    """Climb from some tables until the objective rises by less than ``tolerance`` per case."""
    tables, path = start, [-np.inf]
    least = tolerance * float(expectations.weights.sum())
    priced = pseudocounts > 0.0
    while True:
        counts, likelihood = expectations(tables)
        if likelihood == -np.inf:
            raise ModelError("a case is impossible in every network of this structure that the other cases allow.")
        value = likelihood + float(pseudocounts[priced] @ np.log(np.maximum(tables[priced], 1e-300)))
        settled = value - path[-1] < least
        path.append(value)
        if settled or len(path) > iterations:
            return Ascent(tables, counts, tuple(path[1:]), likelihood, settled)
        tables = normalised(layout, counts + pseudocounts)


def start_tables(
    layout: Layout, expectations: Expectations, pseudocounts: Floats, rng: np.random.Generator, noise: float
) -> Floats:
    """Return random tables near those of the complete families: ``noise`` is the share of random ones."""
    known = normalised(layout, expectations.complete + pseudocounts + 0.1)
    random = normalised(layout, rng.standard_exponential(known.size) + 1e-3)
    return (1.0 - noise) * known + noise * random


def hidden_sites(groups_codes: Ints16) -> list[int]:
    """Return the sites all of whose cells are missing."""
    return np.flatnonzero((groups_codes < 0).all(axis=1)).tolist()


__all__ = ["Ascent", "Expectations", "Groups", "hidden_sites", "make_model", "maximise", "start_tables"]
