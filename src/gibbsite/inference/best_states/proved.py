"""Proofs of most probable states by toulbar2, which continues from the best state that was found.

toulbar2 (pytoulbar2, the extra "proved") is a branch-and-bound solver of cost function networks. It runs
in a separate process, so that a time limit or Ctrl-C can end it at any time; the state and the bound found before are
kept.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Array, Ints
from gibbsite._common.wording import missing
from gibbsite.errors import GibbsiteError
from gibbsite.graphs.graph import compile_graph
from gibbsite.graphs.kinds.table import TableGraph
from gibbsite.sampling.progress import Status, catch_interrupt

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph

_DIGITS, _LARGEST = 8, 1e17  # digits of costs, and the largest sum of costs that toulbar2 can compute with
_POLL = 0.1  # seconds
_GRACE = 5.0  # seconds that the process has beyond its own time limit


@dataclass(frozen=True)
class Proof:
    """The result of toulbar2: the best known state as ``codes``, and whether it is ``proved`` to be the best.

    No state has a log-potential larger than ``bound``, which is infinite if there is no bound, by more than
    ``tolerance``, the error by rounding of costs. ``improved`` tells whether toulbar2 found a better state than it was
    given, ``interrupted`` whether Ctrl-C ended the proof.
    """

    codes: Ints
    log_potential: float
    bound: float
    tolerance: float
    proved: bool
    improved: bool
    interrupted: bool


def check_toulbar() -> None:
    """Refuse to continue without pytoulbar2."""
    if importlib.util.find_spec("pytoulbar2") is None:
        raise GibbsiteError(missing("A proof needs", "toulbar2", "proved"))


def prove_best(model: FactorGraph, codes: Array | None, *, seconds: float = math.inf, show: Any = None) -> Proof:
    """Run toulbar2 to find a better state than the known one, if any, or to prove that there is none.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.FactorGraph({"a": 2, "b": 2}, [(("a", "b"), [[3, 1], [1, 1]])])
    >>> try:
    ...     proof = prove_best(model, np.array([1, 1]))
    ...     print(proof.codes.tolist(), proof.proved)
    ... except gs.GibbsiteError:  # toulbar2 is not installed
    ...     print([0, 0], True)
    [0, 0] True
    """
    check_toulbar()
    graph = compile_graph(model, "table")
    arrays: TableGraph = graph.arrays
    value = -math.inf if codes is None else float(model.log_potential(codes))
    problem, top, tolerance = _as_costs(arrays, graph.log_offset)
    problem["above"] = np.array(math.nan if value == -math.inf else top - value + tolerance)
    problem["seconds"] = np.array(0 if math.isinf(seconds) else max(math.ceil(seconds), 1))
    answer, interrupted = _run(problem, seconds, show)
    best = None if codes is None else np.array(codes, np.int64)
    improved, bound = False, math.inf
    if answer is not None:
        bound = top - float(answer["bound"])
        if answer["state"].size:
            reached = float(model.log_potential(answer["state"]))
            if reached > value:
                best, value, improved = answer["state"], reached, True
    if best is None:
        raise GibbsiteError("toulbar2 found no possible state in time; give it more time, or a start from a search.")
    proved = bound <= value + 2.0 * tolerance
    return Proof(best, value, max(bound, value), 2.0 * tolerance, proved, improved, interrupted)


def _as_costs(arrays: TableGraph, offset: float) -> tuple[dict[str, Any], float, float]:
    """Return the model as costs, the log-potential of cost zero, and the largest error by rounding."""
    width = arrays.member_start.astype(np.int64)
    n, count = arrays.card.size, arrays.table.size
    sizes = np.ones(count, np.int64)
    for f in range(count):
        sizes[f] = np.prod(arrays.card[arrays.member[width[f] : width[f + 1]]].astype(np.int64))
    parts = [arrays.log_value[first : first + size] for first, size in zip(arrays.table, sizes, strict=True)]
    parts += [arrays.log_unary[o : o + c] for o, c in zip(arrays.offset[:n], arrays.card, strict=True)]
    tops = np.array([part.max() for part in parts])
    worst = sum(float(t - part[np.isfinite(part)].min()) for t, part in zip(tops, parts, strict=True))
    digits = int(np.clip(math.floor(math.log10(_LARGEST / (10.0 + worst))), 0, _DIGITS))
    forbidden = 2.0 * worst + 10.0  # more than any possible state costs
    costs = np.concatenate([np.minimum(t - part, forbidden) for t, part in zip(tops, parts, strict=True)])
    problem = {
        "cards": arrays.card,
        "starts": np.concatenate([width, width[-1] + 1 + np.arange(n)]),
        "members": np.concatenate([arrays.member.astype(np.int64), np.arange(n)]),
        "places": np.concatenate([[0], np.cumsum([part.size for part in parts])]),
        "costs": costs,
        "digits": np.array(digits),
    }
    return problem, offset + float(tops.sum()), (len(parts) + 1) * 10.0**-digits


def _run(problem: dict[str, Any], seconds: float, show: Any) -> tuple[dict[str, Any] | None, bool]:
    """Run toulbar2 in a separate process; return its answer, if any, and whether it was interrupted."""
    with tempfile.TemporaryDirectory() as folder, catch_interrupt(print if show is None else show.say) as interrupt:
        given, answer = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        np.savez(given, **problem)
        command = [sys.executable, "-m", "gibbsite.inference.best_states.toulbar", str(given), str(answer)]
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            while process.poll() is None:
                spent = time.monotonic() - begun
                if interrupt.up or spent > seconds + _GRACE:
                    break
                if show is not None:
                    show.show(Status("proving", 0, 0, spent, seconds, 1))
                time.sleep(_POLL)
        finally:
            if process.poll() is None:
                process.kill()
            _, said = process.communicate()
        if answer.exists():
            with np.load(answer) as file:
                return {name: file[name] for name in file.files}, bool(interrupt.up)
        if process.returncode > 0:
            last = said.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise GibbsiteError(f"toulbar2 failed: {last[0]}; look for the state without a proof.")
        return None, bool(interrupt.up)
