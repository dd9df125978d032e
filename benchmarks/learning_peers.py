"""Learning of networks by other libraries: ``python learning_peers.py pyagrum|pgmpy CASES.csv``, without gibbsite.

Prints, as JSON, the edges found, the seconds of processor time to read the cases, to search for edges and to count the
tables, on one thread, and which contestant it is.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from typing import Any


def learn_pyagrum(path: str) -> dict[str, Any]:
    """Greedy hill climbing by BIC, and tables with a pseudocount."""
    import pyagrum

    begun = time.process_time()
    learner = pyagrum.BNLearner(path)
    read = time.process_time() - begun
    learner.setNumberOfThreads(1)
    learner.useScoreBIC()
    learner.useNoPrior()
    learner.useGreedyHillClimbing()
    begun = time.process_time()
    dag = learner.learnDAG()
    searched = time.process_time() - begun
    names = learner.names()
    edges = [(names[a], names[b]) for a, b in dag.arcs()]
    tables = pyagrum.BNLearner(path)
    tables.setNumberOfThreads(1)
    tables.useSmoothingPrior(1)
    begun = time.process_time()
    tables.learnParameters(dag)
    return {"edges": edges, "read": read, "search": searched, "tables": time.process_time() - begun}


def learn_pgmpy(path: str) -> dict[str, Any]:
    """Hill climbing by BIC with a list of 100 steps that are not taken back, and tables of maximum likelihood."""
    import pandas
    from pgmpy.estimators import BIC, HillClimbSearch
    from pgmpy.models import DiscreteBayesianNetwork

    begun = time.process_time()
    frame = pandas.read_csv(path, dtype=str)
    read = time.process_time() - begun
    begun = time.process_time()
    dag = HillClimbSearch(frame).estimate(scoring_method=BIC(frame), show_progress=False)
    searched = time.process_time() - begun
    edges = [(str(a), str(b)) for a, b in dag.edges()]
    model = DiscreteBayesianNetwork(edges)
    model.add_nodes_from(frame.columns)
    begun = time.process_time()
    model.fit(frame)
    return {"edges": edges, "read": read, "search": searched, "tables": time.process_time() - begun}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps({"pyagrum": learn_pyagrum, "pgmpy": learn_pgmpy}[sys.argv[1]](sys.argv[2])))
