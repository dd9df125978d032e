"""Threads may use the library at the same time from the beginning: in new processes, with real threads."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

HEAD = """
    import sys
    import threading

    import gibbsite as gs

    failed = []

    def run_together(jobs):
        barrier = threading.Barrier(len(jobs))

        def run(job):
            barrier.wait()
            try:
                job()
            except BaseException as error:
                failed.append(repr(error))

        threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
"""

# the interpreter changes threads often, so that imports meet
NAMES = """
    names = "Gibbs Tempered SwendsenWang Wolff Slice Metropolis MALA BlockGibbs infer sample".split()
    sys.setswitchinterval(float(sys.argv[1]))
    run_together([lambda name=name: getattr(gs, name) for name in names])
    print(failed)
"""

FUNCTIONS = """
    from gibbsite import belief_propagation, example, infer, mean_field, sample_weighted

    asia = example("asia")
    run_together([
        lambda: infer(asia, progress=False),
        lambda: infer(asia, method="mean-field", progress=False),
        lambda: mean_field(asia, progress=False),
        lambda: belief_propagation(asia, progress=False),
        lambda: sample_weighted(asia, draws=2000, rng=1, progress=False),
        lambda: gs.certify(asia, sweeps=10),
        lambda: gs.solve_exact(asia),
        lambda: gs.exact.predict_exact(asia),
    ])
    print(failed)
"""


def run_new(code: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(HEAD) + textwrap.dedent(code), *words],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("interval", ["0.005", "1e-6"])
def test_names_are_loaded_by_many_threads(interval: str) -> None:
    assert run_new(NAMES, interval) == "[]"


@pytest.mark.long
def test_functions_are_called_by_many_threads() -> None:
    assert run_new(FUNCTIONS) == "[]"
