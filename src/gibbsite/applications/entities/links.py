"""Skip-chains: equal names of a document are linked, so that what one sentence tells helps another.

A link of two tokens scores the class that both have: ``weights[c]`` if both are labelled with class c (outside of all
entities is a class, too), and nothing if their classes differ. The weights are learnt by maximum likelihood given the
chain, on documents that the chain has not seen: the gradient is what links have in the labels, less what they have in
states of chains that are moved on at every step (persistent contrastive divergence).

References
----------
.. [1] Sutton, C. and McCallum, A. (2004). Collective segmentation and labeling of distant entities. ICML
workshop. .. [2] Tieleman, T. (2008). Training restricted Boltzmann machines using approximations to the
likelihood gradient.
   ICML.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Bytes, Floats, Integers, Ints
from gibbsite.applications.entities.attributes import is_capitalised
from gibbsite.applications.entities.documents import Document
from gibbsite.learn.crf.chain import Chain
from gibbsite.learn.crf.labels import split_label
from gibbsite.learn.crf.sequences import Sequences

_NEAREST = 4  # later occurrences that an occurrence is linked to


def find_links(documents: Sequence[Document], similar: bool = True) -> Ints:
    """Return pairs of tokens of a document with the same name, counted through all documents.

    ``documents``: the text; ``similar``: whether names that differ in small and capital letters are the same.
    """
    found: list[tuple[int, int]] = []
    at = 0
    for document in documents:
        places: dict[str, list[int]] = defaultdict(list)
        for sentence in document.sentences:
            for word in sentence.tokens:
                if is_capitalised(word):
                    places[word.lower() if similar else word].append(at)
                at += 1
        for same in places.values():
            found += [(a, b) for k, a in enumerate(same) for b in same[k + 1 : k + 1 + _NEAREST]]
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def classes_of(labels: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the classes, "O" among them, and that of each label."""
    names = ["O", *sorted({split_label(label)[1] for label in labels} - {""})]
    return names, np.array([names.index(split_label(label)[1] or "O") for label in labels])


def link_table(labels: Sequence[str], weights: Floats) -> Floats:
    """Return the scores of a link for all pairs of labels."""
    of = classes_of(labels)[1]
    return np.where(of[:, None] == of[None, :], weights[of][:, None], 0.0)


def link_model(chain: Chain, sequences: Sequences, pairs: Ints, weights: Floats) -> gs.FactorGraph:
    """Return the law of all labels with links as a model; "links" is the group of links."""
    groups = chain.factors(sequences)
    if len(pairs):
        groups.append(gs.factors.TableFactors(pairs, link_table(chain.labels, weights)[None], name="links"))
    return gs.FactorGraph(sequences.n_positions, groups=groups, states=chain.labels)


def learn_links(
    chain: Chain,
    sequences: Sequences,
    codes: Bytes,
    pairs: Ints,
    *,
    steps: int = 60,
    chains: int = 2,
    l2: float = 0.5,
    rng: int = 1,
    watch: Callable[[int, Floats], None] | None = None,
) -> Floats:
    """Learn the weights of links from labelled documents.

    ``chain``: scores of tokens and neighbours; they stay as they are; ``sequences``, ``codes``: documents that the
    chain was not learnt from, and their labels; ``pairs`` (links, 2): which tokens are linked; ``steps``: steps of
    the gradient; the weights are averaged over the last half; ``chains``: chains that are moved on, one sweep a step;
    ``l2``: penalty on the squared weights; ``rng``: seed; ``watch``: called with the number of steps and the weights.
    There is one weight per class, "O" first.
    """
    names, of = classes_of(chain.labels)
    weights = np.zeros(len(names))
    if not len(pairs):
        return weights

    def count(states: Integers) -> Floats:
        first, second = of[states[..., pairs[:, 0]]], of[states[..., pairs[:, 1]]]
        equal = np.where(first == second, first, len(names)).reshape(-1, len(pairs))
        return np.bincount(equal.ravel(), minlength=len(names) + 1)[:-1] / len(equal)

    target = count(codes.astype(np.int64))
    model = link_model(chain, sequences, pairs, weights)
    start = np.tile(chain.best(sequences)[0].astype(np.int64), (chains, 1))
    walkers = gs.PersistentChains(model, chains=chains, rng=rng, start=start)
    walkers.run(5)
    kept: list[Floats] = []
    size = 4.0 / np.maximum(np.sqrt(target * len(pairs)), 10.0)
    for step in range(steps):
        mean = count(walkers.states)
        weights = weights + size / (1.0 + 4.0 * step / steps) * (target - mean - l2 * weights)
        weights = np.clip(weights, -3.0, 3.0)
        if step >= steps // 2:
            kept.append(weights)
        if watch is not None:
            watch(step + 1, weights)
        walkers.reweight(links=link_table(chain.labels, weights))
        walkers.run(1)
    average: Floats = np.mean(kept, axis=0)
    return average


def components(sequences: Sequences, pairs: Ints) -> Ints:
    """Return for each sequence the number of the part that it belongs to; parts share no link."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    of = np.searchsorted(sequences.begin, pairs, "right") - 1
    n = len(sequences)
    graph = coo_matrix((np.ones(len(of)), (of[:, 0], of[:, 1])), shape=(n, n))
    found: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return found
