"""What a run may have missed: states and regions its chains could not enter.

Zeros can cut the support of a model into regions that single-site moves do not connect. All chains may then stay in
one region and agree with each other. Every run on a model with zeros is therefore asked three questions, and each
is answered by a proof or left as a doubt:

* is a state that no chain could ever enter really impossible?
* do single-site moves connect the chains with each other?
* do they connect them with states of positive probability found elsewhere, at random?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import SupportError
from gibbsite.graphs.support.possible import find_support, has_zeros
from gibbsite.graphs.support.start import find_start, find_state_with
from gibbsite.kernels.base import connects, sites_of
from gibbsite.results.verdict.convergence import Unreached
from gibbsite.sampling.driver import Recording
from gibbsite.sampling.setup import Setup

_CERTAIN = 10  # unreached states after which no further suspects are examined
_SUSPECTS = 200  # states a run never reached that are examined; further ones stay in doubt
_ELSEWHERE = 24  # states found at random that must be connected with the chains
_LARGE = 2000  # sites above which fewer of them are looked for


def find_unreached(
    recording: Recording, totals: Floats, late: Callable[[], bool] = lambda: False
) -> tuple[Unreached, ...]:
    """Return every reason to doubt that a run has seen all of the support.

    Parameters
    ----------
    recording : Recording
        The run.
    totals : float array (chains, cells)
        Sums of the recorded probabilities.
    late : function
        Whether the time is over; states that have not been examined by then stay in doubt.

    Returns
    -------
    tuple of Unreached
    """
    setup = recording.setup
    unreached = [] if setup.scan.once and setup.graph.units is None else _left_out(recording)
    if not setup.graph.discrete or setup.graph.binary or not has_zeros(setup.graph):
        return tuple(unreached)
    rng = np.random.default_rng(setup.plan.entropy)
    if setup.record.n_marginal:
        unreached += _unreached(recording, totals, rng, late)
    return tuple(unreached or _regions(recording, rng))


def _left_out(recording: Recording) -> list[Unreached]:
    """Name the sites the scan never visits: they kept their start, whatever the factors say of it."""
    setup = recording.setup
    model, start = setup.model, recording.states[0]
    unreached = []
    left_out = setup.scan.left_out(setup.graph, model)
    if setup.graph.discrete and setup.graph.units is not None:  # sites that are in no block that is visited
        moved = np.zeros(setup.graph.n_sites, bool)
        for unit in np.setdiff1d(np.arange(setup.graph.n_units), left_out).tolist():
            moved[sites_of(setup.kernel, setup.graph, unit)] = True
        left_out = np.flatnonzero(~moved)
    for site in left_out.tolist():
        if not setup.graph.discrete:
            unreached.append(Unreached(_unit_name(setup, site), "", False, "scan"))
            continue
        others = [label for code, label in enumerate(model.labels(site)) if code != start[site]]
        if others:
            unreached.append(Unreached(model.domains.names[site], others[0], False, "scan"))
    return unreached


def _unit_name(setup: Setup, unit: int) -> str:
    """Return the name of what a scan leaves out: a site, unless blocks of them are visited."""
    return setup.model.domains.names[unit] if setup.graph.units is None else f"block {unit}"


def _unreached(
    recording: Recording, totals: Floats, rng: np.random.Generator, late: Callable[[], bool]
) -> list[Unreached]:
    """Name the states that were never possible, but are not proved impossible nor seen to be in reach."""
    graph, model = recording.setup.graph, recording.setup.model
    never = totals[:, : graph.n_cells].max(axis=0) <= 0.0
    suspects = np.flatnonzero(never & find_support(graph, model).board.alive)
    sites = np.searchsorted(graph.offset, suspects, side="right") - 1
    kernel, here = recording.setup.kernel, recording.states[0]
    unreached: list[Unreached] = []
    for number, (site, cell) in enumerate(zip(sites.tolist(), suspects.tolist(), strict=True)):
        code = cell - int(graph.offset[site])
        found: Any = None
        impossible = False
        if number < _SUSPECTS and len(unreached) < _CERTAIN and not late():
            found, impossible = find_state_with(model, graph, site, code, rng)
        if impossible or (found is not None and connects(kernel, graph, here, found, rng)):
            continue
        label = model.labels(site)[code]
        unreached.append(Unreached(model.domains.names[site], label, found is not None, "state"))
    return unreached


def _regions(recording: Recording, rng: np.random.Generator) -> list[Unreached]:
    """Return a doubt if the first chain is not seen to be connected with another chain or state."""
    graph, model = recording.setup.graph, recording.setup.model
    here = recording.states[0]
    others = recording.states[1:]
    elsewhere = _ELSEWHERE if graph.n_sites <= _LARGE else _ELSEWHERE // 6
    for number in range(len(others) + elsewhere):
        try:
            there = others[number] if number < len(others) else find_start(model, graph, rng)
        except SupportError:
            break
        if not connects(recording.setup.kernel, graph, here, there, rng):
            site = int(np.flatnonzero(here != there)[0])
            label = model.labels(site)[int(there[site])]
            return [Unreached(model.domains.names[site], label, False, "region")]
    return []
