"""Decode a state from max-product messages: site by site, each given those that were decided before.

Sites are decided in the breadth-first order of the messages. On a tree the state is a most probable one, ties or not,
because messages from undecided parts carry the best continuation, and decided sites are given.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats, Ints
from gibbsite._numba.jit import Integer, compiled_loop
from gibbsite.inference.belief.layout import MessageGraph
from gibbsite.inference.belief.messages import ONE, LogMessages, Messages, log_message


@compiled_loop
def decode(ring: LogMessages, graph: MessageGraph, state: Messages, sites: Ints, score: Floats, codes: Ints) -> None:
    """Decide sites in the order of ``sites``; the beliefs (logarithms) of decided sites become point masses."""
    for t in range(sites.size):
        i = np.uintp(sites[t])
        cell, size = np.uintp(graph.offset[i]), np.uintp(graph.card[i])
        for a in range(size):
            score[a] = graph.log_unary[cell + a]
        for k in range(np.uintp(graph.start[i]), np.uintp(graph.start[i + ONE])):
            log_message(ring, graph, state, k)
            for a in range(size):
                score[a] += state.fresh[a]
        best: Integer = np.uintp(0)
        for a in range(size):
            # where those decided before leave nothing possible, the belief decides
            if score[a] > score[best]:
                best = a
        if score[best] == -np.inf:
            for a in range(size):
                if state.belief[cell + a] > state.belief[cell + best]:
                    best = a
        codes[i] = np.int64(best)
        for a in range(size):
            if a != best:
                state.belief[cell + a] = -np.inf
