"""Random models for round trips, and how to compare two models that came different ways."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gibbsite.models import FactorGraph

# What people and programs write, and what only rounding makes.
NUMBER = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 1e-5, 3.0, 1e-200, 1e200, 1 / 3, 0.9999999999999999]),
    st.floats(1e-12, 1e12, allow_nan=False),
)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\r", exclude_categories=["Cc", "Cs"]), max_size=6)
ODD = st.sampled_from(
    ["Asy/Patch", "<5", ">=10", "12+", "5-12", "a b", "1", "0.5", "property", "x//y", "/*", 'q"', "\\"]
)


def positive(values: list[float]) -> list[float]:
    """Return the values with at least one that is not zero."""
    return values if any(values) else [1.0, *values[1:]]


@st.composite
def markov_models(draw: st.DrawFn) -> FactorGraph:
    n = draw(st.integers(0, 5))
    cards = [draw(st.integers(1, 3)) for _ in range(n)]
    factors: list[Any] = []
    for _ in range(draw(st.integers(0, 6))):
        scope = draw(st.permutations(range(n)))[: draw(st.integers(0, min(n, 3)))]
        size = int(np.prod([cards[k] for k in scope], dtype=int))
        factors.append((scope, positive(draw(st.lists(NUMBER, min_size=size, max_size=size)))))
    return FactorGraph({str(k): card for k, card in enumerate(cards)}, factors)


@st.composite
def networks(draw: st.DrawFn, names: st.SearchStrategy[str] | None = None) -> FactorGraph:
    """Return a Bayesian network with odd names, some rows being zero."""
    text = st.one_of(ODD, NAME) if names is None else names
    sites = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    labels = [draw(st.lists(text, min_size=1, max_size=3, unique=True)) for _ in sites]
    tables: list[Any] = []
    order = draw(st.permutations(range(len(sites))))
    for at, child in enumerate(order):
        parents = draw(st.permutations(order[:at]))[: draw(st.integers(0, 2))]
        shape = [len(labels[k]) for k in (*parents, child)]
        cells = draw(st.lists(st.integers(0, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        table = np.array(cells, float).reshape(-1, shape[-1])
        table[table.sum(axis=1) == 0] = 1.0
        table /= table.sum(axis=1, keepdims=True)
        tables.append(([sites[k] for k in (*parents, child)], table.reshape(shape)))
    tables.sort(key=lambda item: sites.index(item[0][-1]))
    return FactorGraph(dict(zip(sites, labels, strict=True)), tables, directed=True)


def assignments(model: FactorGraph) -> list[np.ndarray]:
    """Return every state of a small model as codes."""
    return [np.array(x, np.int32) for x in itertools.product(*(range(card) for card in model.cards))]


def energies(model: FactorGraph) -> np.ndarray:
    """Return the log-potential of every state."""
    return np.array([model.log_potential(x) for x in assignments(model)])


def check_groups(model: FactorGraph) -> None:
    """Check what the constructors of models check."""
    for group in model.groups:
        group.check(model.domains)
