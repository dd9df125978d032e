"""The process that runs toulbar2: it reads a cost function network, and writes a state and a bound.

``python -m gibbsite.inference.best_states.toulbar PROBLEM.npz ANSWER.npz`` imports neither Numba nor the rest of
gibbsite. Costs are negative log-potentials; toulbar2 rounds them to a number of digits and computes with integers.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def solve(problem: dict[str, Any]) -> dict[str, Any]:
    """Solve a problem by toulbar2; return the state it found, if any, its bound, and whether it finished."""
    import pytoulbar2

    above = float(problem["above"])
    known = None if np.isnan(above) else above
    network = pytoulbar2.CFN(ubinit=known, resolution=int(problem["digits"]), verbose=-1)
    for i, size in enumerate(problem["cards"].tolist()):
        network.AddVariable(f"x{i}", range(size))
    starts, members, places = (problem[name] for name in ("starts", "members", "places"))
    costs = problem["costs"]
    for f in range(len(starts) - 1):
        scope = members[starts[f] : starts[f + 1]].tolist()
        table = costs[places[f] : places[f + 1]].tolist()
        network.AddFunction(scope, table)
    found = network.Solve(timeLimit=int(problem["seconds"]))
    state = np.zeros(0, np.int64) if found is None else np.array(found[0], np.int64)
    return {"state": state, "bound": float(network.GetDDualBound())}


if __name__ == "__main__":
    with np.load(sys.argv[1]) as file:
        given = {name: file[name] for name in file.files}
    np.savez(sys.argv[2], **solve(given))
