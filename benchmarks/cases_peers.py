"""Cases answered by pyAgrum or pgmpy, without gibbsite: prints the processor time and the answers as JSON."""

from __future__ import annotations

import csv
import json
import sys
import time
from typing import Any


def with_pyagrum(network: str, cases: list[dict[str, str]], targets: list[str]) -> list[list[float]]:
    """Answer by lazy propagation; evidence is erased and set again for each case."""
    import pyagrum

    net = pyagrum.loadBN(network)
    engine = pyagrum.LazyPropagation(net)
    engine.setTargets(set(targets))
    found = []
    for case in cases:
        engine.setEvidence(case)
        engine.makeInference()
        found.append([float(p) for target in targets for p in engine.posterior(target).tolist()])
    return found


def with_pgmpy(network: str, cases: list[dict[str, str]], targets: list[str]) -> list[list[float]]:
    """Answer by variable elimination, a target at a time."""
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    net = BIFReader(network).get_model()
    engine = VariableElimination(net)
    found = []
    for case in cases:
        row: list[float] = []
        for target in targets:
            law: Any = engine.query([target], evidence=case, show_progress=False)
            row += [float(law.get_value(**{target: state})) for state in ("TRUE", "FALSE")]
        found.append(row)
    return found


def main() -> None:
    """Read the arguments: library, network, cases, how many of them, targets."""
    name, network, path, many, *targets = sys.argv[1:]
    with open(path, encoding="utf-8", newline="") as file:
        rows = [row for _, row in zip(range(int(many)), csv.DictReader(file), strict=False)]
    cases = [{site: state for site, state in row.items() if state} for row in rows]
    answer = {"pyagrum": with_pyagrum, "pgmpy": with_pgmpy}[name]
    answer(network, cases[:1], targets)  # libraries load what they need
    begun = time.process_time()
    found = answer(network, cases, targets)
    print(json.dumps({"seconds": time.process_time() - begun, "answers": found}))


if __name__ == "__main__":
    main()
