"""Labels of sequences by sampling: the best state that a chain visits, separately for each independent part.

All sequences form one model, which one chain samples. Sequences that share no factor are independent, so the best
visited labels of each part are the best of its own visits, whatever the others were at that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arrays import Bools, Bytes, Floats, Ints
from gibbsite.inference.persistent import PersistentChains
from gibbsite.kernels.base import Kernel
from gibbsite.kernels.blocks.gibbs import BlockGibbs
from gibbsite.kernels.gibbs.annealed import AnnealedGibbs
from gibbsite.kernels.gibbs.gibbs import Gibbs
from gibbsite.kernels.herded.herded import HerdedGibbs
from gibbsite.learn.crf.chain import Chain
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.models import FactorGraph

METHODS = ("viterbi", "posterior", "gibbs", "herded", "blocks")
_CELLS = 1 << 25  # largest number of labels that are scored together
_BATCH = 20_000  # about the number of positions that are labelled together


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


def kernel_of(method: str, sweeps: int, sequences: Sequences) -> Kernel:
    """Return the kernel of a method; "plain" is Gibbs sampling."""
    if method == "gibbs":
        return AnnealedGibbs("linear", sweeps=sweeps, start=1.0)
    if method == "herded":
        return HerdedGibbs()
    if method == "blocks":
        return block_kernel(sequences)
    return Gibbs()


def block_kernel(sequences: Sequences) -> Kernel:
    """Return the kernel that samples whole sequences jointly."""
    bounds = zip(sequences.begin[:-1].tolist(), sequences.begin[1:].tolist(), strict=True)
    return BlockGibbs(blocks=[list(range(low, high)) for low, high in bounds if high > low])


def visit_states(
    model: FactorGraph, sequences: Sequences, part: Ints, kernel: Kernel, sweeps: int, rng: int, start: Bytes
) -> Visited:
    """Sample the labels of all sequences; keep the state after every sweep.

    ``model``: the distribution of the labels of ``sequences``; ``part``: the independent part of each sequence;
    ``start``: labels at the start.
    """
    walker = PersistentChains(model, kernel, chains=1, rng=rng, start=start.astype(np.int64)[None])
    states = np.empty((sweeps, sequences.n_positions), np.uint8)
    for row in states:
        row[:] = walker.run(1).states[0]
    return Visited(states, _score_states(model, np.repeat(part, np.diff(sequences.begin)), part, states), part)


def _score_states(model: FactorGraph, position_part: Ints, part: Ints, states: Bytes) -> Floats:
    """Return the log-potentials (states, parts) of many labellings."""
    found = np.zeros((len(states), int(part.max(initial=-1)) + 1))
    groups: Any = model.groups
    for group in groups:
        of = position_part[group.scopes[:, 0]]
        chunk = max(1, _CELLS // max(group.size * group.arity, 1))
        row = np.arange(group.size) if len(group.weights) > 1 else np.zeros(group.size, np.int64)
        for low in range(0, len(states), chunk):
            x = states[low : low + chunk]
            score = group.weights[(row, *(x[:, at] for at in group.scopes.T))]
            for k, one in enumerate(score, low):
                found[k] += np.bincount(of, one, minlength=found.shape[1])
    return found


def label_alone(chain: Chain, sequences: Sequences) -> Bytes:
    """Return the best label of each position alone, or labels that are allowed where these are not.

    These are "O" throughout a sequence if that is allowed, otherwise the most probable labels.
    """
    codes: Bytes = chain.scores(sequences).argmax(axis=1).astype(np.uint8)
    bad = _forbidden(chain, sequences, codes)
    codes[bad] = chain.labels.index("O") if "O" in chain.labels else 0
    if bad.any() and (bad := _forbidden(chain, sequences, codes)).any():
        codes[bad] = chain.best(sequences)[0][bad]
    return codes


def _forbidden(chain: Chain, sequences: Sequences, codes: Bytes) -> Bools:
    """Return the positions of sequences whose labels are forbidden."""
    return np.repeat(~np.isfinite(chain.score(sequences, codes)), np.diff(sequences.begin))


def decode(chain: Chain, sequences: Sequences, method: str, sweeps: int, rng: int, threads: int = 1) -> Bytes:
    """Return the labels that a method of ``METHODS`` finds."""
    if method == "viterbi":
        return chain.best(sequences, threads)[0]
    if method == "posterior":
        codes: Bytes = chain.marginals(sequences, threads)[0].argmax(axis=1).astype(np.uint8)
        return codes
    found = [np.zeros(0, np.uint8)]
    for low, high in sequences.parts(-(-sequences.n_positions // _BATCH)):
        batch = sequences.take(low, high)
        if batch.n_positions:
            start, part = label_alone(chain, batch), np.arange(len(batch))
            kernel = kernel_of(method, sweeps, batch)
            visited = visit_states(chain.factor_graph(batch), batch, part, kernel, sweeps, rng, start)
            found.append(visited.best(batch)[0])
    return np.concatenate(found)
