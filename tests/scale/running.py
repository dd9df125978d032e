"""Short runs, local clusters for them, and whether two runs are the same to the last byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gibbsite as gs


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """Start a cluster of so many processes with one thread each, none of which is going to be killed."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def sample(model: Any, **how: Any) -> gs.Result:
    """Sample with the settings of these tests."""
    kernel = how.pop("kernel", None)
    options = {"sweeps": 200, "rng": 3, "progress": False, "second_look": False, **how}
    return gs.sample(model, kernel, **options)


def same(one: gs.Result, other: gs.Result) -> bool:
    """Tell whether marginals, their errors and the verdict are the same, byte by byte."""
    return bool(
        one.marginals.cells.tobytes() == other.marginals.cells.tobytes()
        and one.mcse.cells.tobytes() == other.mcse.cells.tobytes()
        and one.diagnostics.line() == other.diagnostics.line()
    )
