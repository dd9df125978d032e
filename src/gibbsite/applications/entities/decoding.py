"""Labels of documents by sampling, and the probabilities of spans.

All documents form one model, which one chain samples. Sentences without common links are independent, so the best
visited state is found for each connected part separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsite._common.arrays import Bytes, Floats, Ints
from gibbsite.applications.entities.links import components, link_model
from gibbsite.kernels.base import Kernel
from gibbsite.learn.crf.chain import Chain
from gibbsite.learn.crf.decoding import Visited, label_alone, visit_states
from gibbsite.learn.crf.labels import find_spans, span_sets
from gibbsite.learn.crf.sequences import Sequences

_BATCHES = 20


@dataclass(frozen=True)
class Skip:
    """Links between sentences."""

    pairs: Ints  # (links, 2): the linked tokens
    weights: Floats  # of links, by class


def visit(
    chain: Chain,
    sequences: Sequences,
    skip: Skip | None,
    kernel: Kernel,
    sweeps: int,
    rng: int,
    start: Bytes | None = None,
) -> Visited:
    """Sample the labels of all documents; keep the state after every sweep.

    ``chain``, ``sequences``, ``skip``: the model; ``kernel``: the sampler; ``sweeps``: their number; ``rng``: seed;
    ``start``: labels at the start; by default the best label of each token without its neighbours.
    """
    pairs = np.zeros((0, 2), np.int64) if skip is None else skip.pairs
    weights = np.zeros(1) if skip is None else skip.weights
    model = link_model(chain, sequences, pairs, weights)
    begin = label_alone(chain, sequences) if start is None else start
    return visit_states(model, sequences, components(sequences, pairs), kernel, sweeps, rng, begin)


def span_probabilities(
    chain: Chain, sequences: Sequences, asked: Sequence[tuple[int, int, int, str]], scheme: str
) -> Floats:
    """Return the exact probabilities of spans (sequence, start, end, class) of sentences without links."""
    classes = sorted({label[2:] for label in chain.labels if label != "O"})
    sets = np.array([span_sets(chain.labels, name, scheme) for name in classes])
    s, low, high = (np.array([one[k] for one in asked], np.int64) for k in range(3))
    pattern = np.array([classes.index(one[3]) for one in asked], np.int64)
    return chain.probabilities_of(sequences, s, low, high - low, pattern, sets)


def span_shares(
    visited: Bytes, sequences: Sequences, labels: Sequence[str], asked: Sequence[tuple[int, int, int, str]]
) -> tuple[Floats, Floats]:
    """Return the relative frequencies of spans (sequence, start, end, class), and standard errors by batch means."""
    share, error = np.zeros(len(asked)), np.zeros(len(asked))
    by_sequence: dict[int, list[int]] = {}
    for k, (s, *_) in enumerate(asked):
        by_sequence.setdefault(s, []).append(k)
    for s, wanted in by_sequence.items():
        rows = visited[:, sequences.begin[s] : sequences.begin[s + 1]]
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        spans = [set(find_spans([labels[c] for c in row])) for row in unique.tolist()]
        for k in wanted:
            _, low, high, name = asked[k]
            here = np.array([(low, high, name) in found for found in spans], float)[inverse.ravel()]
            share[k] = here.mean()
            batches = min(_BATCHES, len(here))
            means = np.array([part.mean() for part in np.array_split(here, batches)])
            error[k] = means.std(ddof=1) / np.sqrt(batches) if batches > 1 else np.nan
    return share, error
