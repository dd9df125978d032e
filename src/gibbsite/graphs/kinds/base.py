"""Builders of arrays that several kinds share.

State codes are 0..K-1 everywhere. Tables are stored shifted to a maximum of one (zero in logarithms); the
shifts are added to ``Graph.log_offset``. Arrays that do not depend on weights (row pointers, neighbours)
are kept in ``model.shared``, which reweighted copies of a model share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite.errors import SupportError
from gibbsite.graphs.rows import Rows, build_rows, row_starts
from gibbsite.models.distance import DistanceFactors
from gibbsite.models.factor import FactorGroup
from gibbsite.models.factorgraph import FactorGraph


def groups_of(model: FactorGraph) -> list[FactorGroup]:
    """Return the groups that are not empty; groups may become empty when evidence is absorbed."""
    return [group for group in model.groups if group.size]


def all_binary(model: FactorGraph) -> bool:
    """Return whether every site has two states."""
    return bool((model.cards == 2).all())


def pair_rows(model: FactorGraph) -> Rows:
    """Return the rows of all two-site factors, which depend on scopes only and are shared when reweighting.

    The source of each entry is stored from the second use on, because a model that is compiled once does not need it.
    """
    kept = model.shared.get(Rows)
    if kept is not None and kept.source.size == kept.neighbour.size:
        return kept
    pairs = [group.scopes for group in groups_of(model) if group.arity == 2]
    joined = np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int32)
    rows = build_rows(joined, model.n_sites)
    if kept is None:
        model.shared.put(rows._replace(source=rows.source[:0].copy(), side=rows.side[:0].copy()))
        return rows
    return model.shared.put(rows._replace(start=kept.start, neighbour=kept.neighbour))


@dataclass
class Cells:
    """Unary log-potentials of all sites, one entry per (site, state)."""

    offset: Ints
    log_unary: Floats
    constant: float

    @classmethod
    def collect(cls, model: FactorGraph) -> Cells:
        """Add up the factors of single sites; refuse sites without a possible state."""
        offset = row_starts(model.cards)
        logs = np.zeros(int(offset[-1]))
        constant = 0.0
        for group in groups_of(model):
            if group.arity == 1:
                tables = group.log_tables(model.cards)
                tables = np.broadcast_to(tables, (group.size, *tables.shape[1:]))
                cells = offset[group.scopes[:, 0]][:, None] + np.arange(tables.shape[1])
                np.add.at(logs, cells.ravel(), tables.ravel())
        if model.n_sites:
            top = np.maximum.reduceat(logs, offset[:-1])
            bad = np.flatnonzero(np.isneginf(top))
            if bad.size:
                raise SupportError(
                    f"Site {model.sites[int(bad[0])]!r} has no possible state: its factors and evidence "
                    "exclude every one; check the evidence."
                )
            logs -= np.repeat(top, model.cards)
            constant = float(top.sum())
        return cls(offset, logs, constant)

    def columns(self, model: FactorGraph) -> dict[str, Any]:
        """Return the arrays of single sites that all kinds with many states have."""
        card = np.ascontiguousarray(model.cards)
        return {"card": card, "offset": self.offset, "unary": np.exp(self.log_unary), "log_unary": self.log_unary}


@dataclass
class Tables:
    """Tables of all larger factors, shifted to maximum one, one after another."""

    logs: list[Floats] = field(default_factory=list)
    size: int = 0
    constant: float = 0.0

    def add(self, group: FactorGroup, cards: Ints32) -> Floats:
        """Return the tables of a group, shifted; collect the shifts."""
        tables = group.log_tables(cards)
        flat = tables.reshape(len(tables), -1)
        top = flat.max(axis=1)
        self.constant += float(top.sum()) * (group.size if len(tables) == 1 else 1)
        shifted: Floats = (flat - top[:, None]).reshape(tables.shape)
        return shifted

    def keep(self, tables: Floats, size: int) -> Ints:
        """Append tables; return where the table of each of ``size`` factors starts."""
        each = math.prod(tables.shape[1:])
        start = self.size + each * np.arange(len(tables), dtype=np.int64)
        self.logs.append(np.ascontiguousarray(tables).ravel())
        self.size += tables.size
        return np.broadcast_to(start, (size,)) if len(tables) == 1 else start

    def joined(self) -> Floats:
        """Return all tables as one array of logarithms."""
        return np.concatenate(self.logs) if self.logs else np.zeros(0)


MOST_STORED = 2048  # largest number of sites for which couplings of all pairs are stored


def too_many(model: FactorGraph) -> bool:
    """Return whether couplings of all pairs are given by a function and are too many to be stored."""
    return model.n_sites > MOST_STORED and any(isinstance(g, DistanceFactors) for g in model.groups)
