"""Are weighted draws that are called converged right? ``python -m tests.campaigns.weights``.

Draws random networks with evidence, unlikely evidence and certain tables among them, by each proposal of
``gs.importance.Forward`` in turn, and compares with exact answers. *False* is a run called converged although a
marginal, or log Z, is off by more than the accuracy asked for. *Pulls* are errors divided by standard errors,
of one cell of a run and of log Z, of runs that have nothing against them but the accuracy asked for.

Options
    --numbers A:B     numbers of the networks (default 0:2000)
    --out FILE        a line of JSON for each run (default weights.jsonl); runs that are in it are not
                      made again
    --report          only print the table of what is in the file
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import gibbsite as gs
from tests.inference.importance.networks import random_network

PROPOSALS = ("auto", "prior", "evidence", "adaptive")
#: Draws and accuracies that take turns: few draws for little accuracy, many for more.
BUDGETS = ((8192, 0.05), (65_536, 0.02), (262_144, 0.01))


def try_once(number: int) -> dict[str, Any]:
    """Draw one network and compare with the truth."""
    model = random_network(number)
    exact = gs.solve_exact(model)
    proposal = PROPOSALS[number % len(PROPOSALS)]
    draws, accuracy = BUDGETS[number // len(PROPOSALS) % len(BUDGETS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = gs.sample_weighted(
            model,
            gs.importance.Forward(proposal),
            draws=draws,
            criteria=gs.Criteria(accuracy=accuracy),
            rng=number,
            threads=1,
            progress=False,
        )
    truth = _cells(exact.marginals.to_array(), model)
    error = float(np.abs(found.estimate.cells - truth).max(initial=0.0)) if found.diagnostics.positive else 1.0
    seen = found.diagnostics
    z_off = abs(found.log_z - exact.log_z)
    known = seen.effective >= 1000 and seen.pareto_k <= 0.7 and seen.unseen <= accuracy
    # one cell of each run that is neither rare nor nearly certain, chosen by the number of the run
    usable = np.flatnonzero(np.minimum(truth, 1.0 - truth) * seen.effective > 400.0)
    cell = usable[number % usable.size] if usable.size else None
    pull = [] if cell is None or not known else [_pull(found.estimate, truth, int(cell))]
    varies = known and 1.0 / seen.effective > 1.02 / seen.n_draws  # otherwise the error is that of the unseen
    z_pull = [(found.log_z - exact.log_z) / found.log_z_error] if varies else []
    return {
        "number": number,
        "proposal": proposal,
        "converged": seen.converged,
        "error": error,
        "log_z_off": z_off,
        "false": bool(seen.converged and (error > accuracy or z_off > accuracy)),
        "right": bool(error <= accuracy),
        "effective": seen.effective,
        "pulls": pull,
        "z_pulls": z_pull,
    }


def _cells(table: Any, model: gs.FactorGraph) -> Any:
    cards = np.asarray(model.cards)
    return table[np.arange(int(cards.max(initial=1))) < cards[:, None]]


def _pull(estimate: Any, truth: Any, cell: int) -> float:
    return float((estimate.cells[cell] - truth[cell]) / estimate.errors[cell])


def pulls(done: Iterable[dict[str, Any]], kind: str) -> Any:
    """Return all pulls of marginals ("pulls") or of log Z ("z_pulls")."""
    return np.array([pull for one in done for pull in one[kind]])


def report(done: list[dict[str, Any]]) -> str:
    """Return the table of verdicts by proposal, and the pulls."""
    lines = [f"{'proposal':<10} {'runs':>5} {'converged':>9} {'false':>5} {'right, not converged':>21}"]
    for proposal in (*PROPOSALS, "all"):
        mine = [one for one in done if proposal in (one["proposal"], "all")]
        counts = [
            len(mine),
            sum(one["converged"] for one in mine),
            sum(one["false"] for one in mine),
            sum(one["right"] and not one["converged"] for one in mine),
        ]
        lines.append(f"{proposal:<10} {counts[0]:>5} {counts[1]:>9} {counts[2]:>5} {counts[3]:>21}")
    for name, kind in (("marginals", "pulls"), ("log Z", "z_pulls")):
        seen = pulls(done, kind)
        if seen.size:
            lines.append(
                f"pulls of {name}: {seen.size}, mean {seen.mean():.3f}, mean square {np.mean(seen**2):.3f}, "
                f"beyond 2 {np.mean(np.abs(seen) > 2):.4f}, beyond 3 {np.mean(np.abs(seen) > 3):.4f}, "
                f"largest {np.abs(seen).max():.2f}"
            )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--numbers", default="0:2000")
    parser.add_argument("--out", default="weights.jsonl")
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args(arguments)
    path = Path(given.out)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {one["number"]: one for one in map(json.loads, lines)}
    first, last = map(int, given.numbers.split(":"))
    if not given.report:
        with path.open("a") as file:
            for number in range(first, last):
                if number not in done:
                    done[number] = try_once(number)
                    file.write(json.dumps(done[number]) + "\n")
                    file.flush()
    print(report([one for number, one in sorted(done.items()) if first <= number < last]))


if __name__ == "__main__":
    main(sys.argv[1:])
