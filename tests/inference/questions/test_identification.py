"""Identification on textbook graphs, and d-separation against independence in random networks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gibbsite.formats.network import network_tables
from gibbsite.inference.questions.identification import find_adjustment, is_identifiable
from gibbsite.models.networks.relations import connected
from tests.inference.questions.networks import law_of, random_network

# positions: hidden sites come first; the cause is "x", the effect "y"
GRAPHS = {
    "confounder seen": ([set(), {0}, {0, 1}], 1, 2, set(), True, {0}),
    "confounder hidden": ([set(), {0}, {0, 1}], 1, 2, {0}, False, None),
    "front door": ([set(), {0}, {1}, {0, 2}], 1, 3, {0}, True, None),
    "instrument": ([set(), set(), {0, 1}, {0, 2}], 2, 3, {0}, False, None),
    "chain": ([set(), {0}, {1}], 0, 2, set(), True, set()),
    "M-bias": ([set(), set(), {0, 1}, {0}, {1, 3}], 3, 4, {0, 1}, True, set()),
    # hidden 0 -> x, z; x -> z -> y: the cause and its child have a hidden cause in common
    "bow on the way": ([set(), {0}, {0, 1}, {2}], 1, 3, {0}, False, None),
    # hidden 0 -> x, w and hidden 1 -> w, y; x -> y; w is seen: not adjusting is right
    "collider seen": ([set(), set(), {0}, {0, 1}, {1, 2}], 2, 4, {0, 1}, True, set()),
    # Pearl's napkin: w -> z -> x -> y; hidden 0: w, x; hidden 1: w, y
    "napkin": ([set(), set(), {0, 1}, {2}, {0, 3}, {1, 4}], 4, 5, {0, 1}, True, None),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_textbook_graphs(name: str) -> None:
    numbers, cause, effect, unseen, identifiable, adjustment = GRAPHS[name]
    parents = {str(site): sorted(map(str, each)) for site, each in enumerate(numbers)}
    hidden = set(map(str, unseen))
    assert is_identifiable(parents, str(cause), str(effect), hidden) is identifiable
    found = find_adjustment(parents, str(cause), str(effect), hidden)
    assert found == (None if adjustment is None else set(map(str, adjustment)))


@pytest.mark.parametrize("seed", range(10))
def test_separation_is_independence(seed: int) -> None:
    model = random_network(seed, n=5)
    parents = {
        str(site): [str(parent) for parent in table.scope[:-1]]
        for site, table in enumerate(network_tables(model, "A test"))
    }
    law = law_of(model)
    for a, b in itertools.combinations(range(5), 2):
        rest = [k for k in range(5) if k not in (a, b)]
        for size in range(4):
            for given in itertools.combinations(rest, size):
                gone = tuple(k for k in rest if k not in given)
                left = [k for k in range(5) if k not in gone]
                joint = np.moveaxis(law.sum(axis=gone), [left.index(a), left.index(b)], [-2, -1])
                both = joint.sum(axis=(-2, -1), keepdims=True)
                product = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True) / both
                independent = bool(np.abs(joint - product).max() < 1e-12)
                assert (str(b) not in connected(parents, [str(a)], map(str, given))) == independent, (a, b, given)
