"""Skip-chains: links between equal names of a document share evidence between sentences [1]_.

A link adds ``weights[c]`` to the log-potential if both of its tokens are labelled with class c, where "outside" is a
class, too. The weights are learnt by maximum likelihood given the chain, on documents from which the chain was not
learnt: the gradient is the mean number of links of each class in the labels, less that in states of persistent chains
(persistent contrastive divergence [2]_).

References
----------
.. [1] Sutton, C. and McCallum, A. (2004). Collective segmentation and labeling of distant entities. ICML workshop.
.. [2] Tieleman, T. (2008). Training restricted Boltzmann machines using approximations to the likelihood gradient.
   ICML.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Bytes, Floats, Integers, Ints
from gibbsite.applications.entities.attributes import is_capitalised
from gibbsite.applications.entities.documents import Document
from gibbsite.learn.crf.chain import Chain
from gibbsite.learn.crf.labels import split_label
from gibbsite.learn.crf.sequences import Sequences

_NEAREST = 4  # number of later occurrences to which an occurrence is linked
_STEPS, _CHAINS = 60, 2  # gradient steps, and chains that are advanced by one sweep at each of them
_RIDGE = 0.5  # penalty on squared weights


def find_links(documents: Sequence[Document]) -> Ints:
    """Return pairs of tokens of a document with equal names, up to case; tokens are numbered through all documents."""
    found: list[tuple[int, int]] = []
    at = 0
    for document in documents:
        places: dict[str, list[int]] = defaultdict(list)
        for sentence in document.sentences:
            for word in sentence.tokens:
                if is_capitalised(word):
                    places[word.lower()].append(at)
                at += 1
        for same in places.values():
            found += [(a, b) for k, a in enumerate(same) for b in same[k + 1 : k + 1 + _NEAREST]]
    return np.array(sorted(found), np.int64).reshape(-1, 2)


def classes_of(labels: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the classes, "O" first, and the class of each label."""
    names = ["O", *sorted({split_label(label)[1] for label in labels} - {""})]
    return names, np.array([names.index(split_label(label)[1] or "O") for label in labels])


def link_table(labels: Sequence[str], weights: Floats) -> Floats:
    """Return the scores of a link for all pairs of labels."""
    of = classes_of(labels)[1]
    return np.where(of[:, None] == of[None, :], weights[of][:, None], 0.0)


def link_model(chain: Chain, sequences: Sequences, pairs: Ints, weights: Floats) -> gs.FactorGraph:
    """Return the distribution of all labels as a model, with the links as the group "links"."""
    groups = chain.factors(sequences)
    if len(pairs):
        groups.append(gs.factors.TableFactors(pairs, link_table(chain.labels, weights)[None], name="links"))
    return gs.FactorGraph(sequences.n_positions, groups=groups, states=chain.labels)


def learn_links(chain: Chain, sequences: Sequences, codes: Bytes, pairs: Ints) -> Floats:
    """Learn the weights of links from labelled documents that were not used to learn the chain.

    ``chain``: fixed scores of tokens and neighbours; ``sequences``, ``codes``: the documents and their labels;
    ``pairs`` (links, 2): the linked tokens. There is one weight per class, "O" first, averaged over the second half of
    the steps.
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
    start = np.tile(chain.best(sequences)[0].astype(np.int64), (_CHAINS, 1))
    walkers = gs.PersistentChains(model, chains=_CHAINS, rng=1, start=start)
    walkers.run(5)
    kept: list[Floats] = []
    size = 4.0 / np.maximum(np.sqrt(target * len(pairs)), 10.0)
    for step in range(_STEPS):
        mean = count(walkers.states)
        weights = weights + size / (1.0 + 4.0 * step / _STEPS) * (target - mean - _RIDGE * weights)
        weights = np.clip(weights, -3.0, 3.0)
        if step >= _STEPS // 2:
            kept.append(weights)
        walkers.reweight(links=link_table(chain.labels, weights))
        walkers.run(1)
    average: Floats = np.mean(kept, axis=0)
    return average


def components(sequences: Sequences, pairs: Ints) -> Ints:
    """Return the number of the connected part to which each sequence belongs."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    of = np.searchsorted(sequences.begin, pairs, "right") - 1
    n = len(sequences)
    graph = coo_matrix((np.ones(len(of)), (of[:, 0], of[:, 1])), shape=(n, n))
    found: Ints = connected_components(graph, directed=False)[1].astype(np.int64)
    return found
