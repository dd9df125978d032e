"""Labels of documents by sampling, and the probabilities of spans.

All documents form one model, which one chain samples. Sentences without common links are independent, so the best
visited state is found for each connected part separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Bytes, Floats, Ints
from gibbsite.applications.entities.links import components, link_model, link_table
from gibbsite.learn.crf.chain import Chain
from gibbsite.learn.crf.labels import find_spans, span_sets
from gibbsite.learn.crf.sequences import Sequences

_BATCHES = 20
_CELLS = 1 << 25  # largest number of labels that are scored together


@dataclass(frozen=True)
class Skip:
    """Links between sentences."""

    pairs: Ints  # (links, 2): the linked tokens
    weights: Floats  # of links, by class


@dataclass(frozen=True)
class Visited:
    """States that a chain visited."""

    states: Bytes  # (sweeps, positions): labels after every sweep
    scores: Floats  # (sweeps, parts): log-potentials of the parts
    part: Ints  # (sequences,): the part that a sequence belongs to

    def best(self, sequences: Sequences) -> tuple[Bytes, float]:
        """Return the best visited labels, for each part separately, and their log-potential."""
        which = self.scores.argmax(axis=0)
        position_part = np.repeat(self.part, np.diff(sequences.begin))
        codes = self.states[which[position_part], np.arange(self.states.shape[1])]
        return codes, float(self.scores.max(axis=0).sum())


def kernel_of(method: str, sweeps: int, sequences: Sequences) -> gs.kernels.Kernel:
    """Return the kernel of a method."""
    if method == "gibbs":
        return gs.AnnealedGibbs("linear", sweeps=sweeps, start=1.0)
    if method == "herded":
        return gs.HerdedGibbs()
    if method == "blocks":
        return block_kernel(sequences)
    return gs.Gibbs()


def block_kernel(sequences: Sequences) -> gs.kernels.Kernel:
    """Return the kernel that samples whole sentences jointly."""
    bounds = zip(sequences.begin[:-1].tolist(), sequences.begin[1:].tolist(), strict=True)
    return gs.BlockGibbs(blocks=[list(range(low, high)) for low, high in bounds if high > low])


def visit(
    chain: Chain,
    sequences: Sequences,
    skip: Skip | None,
    kernel: gs.kernels.Kernel,
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
    begin = alone(chain, sequences) if start is None else start
    walker = gs.PersistentChains(model, kernel, chains=1, rng=rng, start=begin.astype(np.int64)[None])
    states = np.empty((sweeps, sequences.n_positions), np.uint8)
    for row in states:
        row[:] = walker.run(1).states[0]
    part = components(sequences, pairs)
    return Visited(states, score_states(chain, sequences, skip, states, part), part)


def alone(chain: Chain, sequences: Sequences) -> Bytes:
    """Return the best label of each position alone; "O" in sentences where the scheme forbids these labels."""
    outside = chain.labels.index("O") if "O" in chain.labels else 0
    codes: Bytes = chain.scores(sequences).argmax(axis=1).astype(np.uint8)
    bad = ~np.isfinite(chain.score(sequences, codes))
    codes[np.repeat(bad, np.diff(sequences.begin))] = outside
    return codes


def score_states(chain: Chain, sequences: Sequences, skip: Skip | None, states: Bytes, part: Ints) -> Floats:
    """Return the log-potentials (states, parts) of many labellings."""
    groups = {group.name: group for group in chain.factors(sequences)}
    own, n = groups["labels"].weights, states.shape[1]
    position_part = np.repeat(part, np.diff(sequences.begin))
    found = np.zeros((len(states), int(part.max(initial=-1)) + 1))
    table = None if skip is None else link_table(chain.labels, skip.weights)
    chunk = max(1, _CELLS // max(n, 1))
    for low in range(0, len(states), chunk):
        x = states[low : low + chunk]
        score = own[np.arange(n), x]
        for name in ("pairs", "triples"):
            if name in groups:
                scopes = groups[name].scopes
                score[:, scopes[:, -1]] += groups[name].weights[0][tuple(x[:, at] for at in scopes.T)]
        if table is not None and skip is not None:
            for a, b in skip.pairs.tolist():
                score[:, b] += table[x[:, a], x[:, b]]
        for row, one in enumerate(score, low):
            found[row] = np.bincount(position_part, one, minlength=found.shape[1])
    return found


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
