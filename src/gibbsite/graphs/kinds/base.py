"""Parts of which the arrays of several kinds are built.

State codes are 0..K-1 everywhere. Tables are stored shifted to a maximum of one (zero in logarithms); the
shifts are collected in ``Graph.log_offset``. Whatever does not depend on weights (row pointers, neighbours)
is kept in ``model.shared``, which reweighted copies of a model share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gibbsite._common.arrays import Floats, Ints, Ints32
from gibbsite.errors import SupportError
from gibbsite.graphs.rows import Rows, build_rows, row_starts

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, FactorGroup


def groups_of(model: FactorGraph) -> list[FactorGroup]:
    """Return the groups that have any factor; folding evidence may leave empty ones."""
    return [group for group in model.groups if group.size]


def all_binary(model: FactorGraph) -> bool:
    """Tell whether every site has two states."""
    return bool((model.cards == 2).all())


def pair_rows(model: FactorGraph) -> Rows:
    """Return the rows of all two-site factors; they depend on scopes only and are shared when reweighting.

    Where each entry stems from is kept from the second use on: a model that is compiled once needs only
    the rows themselves.
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
                tables = np.broadcast_to(
                    group.log_tables(model.cards), (group.size, *group.log_tables(model.cards).shape[1:])
                )
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


# Sites up to which couplings of all pairs are stored where a kind has room for them.
MOST_STORED = 2048


def too_many(model: FactorGraph) -> bool:
    """Whether couplings of all pairs are given by a function, and are too many to be stored."""
    from gibbsite.models import DistanceFactors

    return model.n_sites > MOST_STORED and any(isinstance(g, DistanceFactors) for g in model.groups)
