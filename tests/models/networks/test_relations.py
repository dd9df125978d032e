"""Relations of nodes, compared with the distribution and with brute force."""

from __future__ import annotations

import itertools

import numpy as np

import gibbsite as gs


def random_network(rng: np.random.Generator, n: int = 6) -> gs.BayesianNetwork:
    net = gs.BayesianNetwork()
    for k in range(n):
        given = [name for name in net if rng.random() < 0.4]
        net.add(f"n{k}", 2, given=given, table=rng.dirichlet([1, 1], 2 ** len(given)))
    return net


def independent(law: np.ndarray, a: int, b: int, given: tuple[int, ...]) -> bool:
    """Return whether two sites are independent given others, from the whole distribution."""
    rest = tuple(k for k in range(law.ndim) if k not in (a, b, *given))
    joint = law.sum(axis=rest, keepdims=True)
    own, other = joint.sum(axis=b, keepdims=True), joint.sum(axis=a, keepdims=True)
    return bool(np.allclose(joint * joint.sum(axis=(a, b), keepdims=True), own * other, atol=1e-12))


def test_d_separation_is_independence_in_random_distributions() -> None:
    rng = np.random.default_rng(7)
    separated = 0
    for _ in range(12):
        net = random_network(rng)
        law = gs.exact.enumerate(net).law
        for a, b in itertools.combinations(range(6), 2):
            others = [k for k in range(6) if k not in (a, b)]
            for size in range(4):
                for given in itertools.combinations(others, size):
                    found = net.d_separated(f"n{a}", f"n{b}", [f"n{k}" for k in given])
                    assert found == independent(law, a, b, given), (net.edges, a, b, given)
                    separated += found
    assert separated > 300


def test_a_markov_blanket_separates_from_the_rest() -> None:
    rng = np.random.default_rng(8)
    for _ in range(10):
        net = random_network(rng)
        for name in net:
            blanket = net.markov_blanket(name)
            rest = [other for other in net if other != name and other not in blanket]
            assert not rest or net.d_separated(name, rest, blanket)
            for dropped in blanket:
                kept = [other for other in blanket if other != dropped]
                assert not net.d_separated(name, [*rest, dropped], kept)


def test_a_subnetwork_has_the_same_marginals() -> None:
    net = gs.BayesianNetwork.from_model(gs.example("alarm"))
    part = net.subnetwork(["LVFAILURE", "HRBP"])
    assert set(part.nodes) == {"LVFAILURE", "HRBP", *net.ancestors(["LVFAILURE", "HRBP"])}
    whole, small = gs.solve_exact(net).marginals, gs.solve_exact(part).marginals
    for name in part:
        assert np.allclose(list(whole[name].values()), list(small[name].values()), atol=1e-12)
    assert "HRBP" in net.descendants("HR")
    assert not set(net.ancestors("HR")) & set(net.descendants("HR"))
