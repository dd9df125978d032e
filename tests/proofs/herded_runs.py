"""Errors of a herded run at many lengths, from one run."""

from __future__ import annotations

from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._random import stream
from gibbsite.exact.enumeration import enumerate_states
from gibbsite.kernel.base import alone
from gibbsite.run.chain import advance, start_chain
from gibbsite.run.record import lay_out


def lengths(most: float, per_decade: int = 20) -> Any:
    """Return numbers of sweeps, evenly spaced on a logarithmic scale from 100 on."""
    return np.unique(np.logspace(2, np.log10(most), int(per_decade * (np.log10(most) - 2)) + 1).astype(int))


def joint_errors(model: Any, kernel: Any, sweeps: Any, seed: int = 1, scan: Any = None) -> Any:
    """Return the L1 distance of the joint frequencies from the law after each number of sweeps."""
    exact, scan = enumerate_states(model), gs.Systematic() if scan is None else scan
    graph = gs.compile_graph(model)
    layout = lay_out(model, graph, kernel, [gs.Joint([tuple(model.sites)])])
    state = start_chain(graph, kernel, scan, exact.states[0], stream(seed, 0), False)
    tape, found, done = layout.empty_tape(graph), [], 0
    parameters, schedule = kernel.parameters(graph), scan.schedule(graph, model)
    for sweep in sweeps.tolist():
        advance(parameters, graph.arrays, schedule, state, tape, sweep - done, graph.n_sites, True, alone())
        done = sweep
        counts = tape.total + tape.open_batch
        found.append(np.abs(counts / counts.sum() - exact.joint.ravel()).sum())
    return np.array(found)


def envelope(errors: Any) -> Any:
    """Return the largest error from each length on."""
    return np.maximum.accumulate(errors[::-1])[::-1]


def slope(sweeps: Any, errors: Any) -> float:
    """Return the slope of the envelope in logarithms."""
    return float(np.polyfit(np.log(sweeps), np.log(envelope(errors)), 1)[0])
