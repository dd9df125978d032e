"""Short runs, local clusters for them, and whether two runs are the same to the last byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import gibbsite as gs


@contextmanager
def local_client(workers: int) -> Iterator[Any]:
    """Start a cluster of a number of processes with one thread each, none of which is going to be killed."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def sample(model: Any, **how: Any) -> gs.Result:
    """Sample with the settings of these tests."""
    kernel = how.pop("kernel", None)
    options = {"sweeps": 200, "rng": 3, "progress": False, "criteria": gs.Criteria(dispersed_starts=False), **how}
    return gs.sample(model, kernel, **options)


def sample_by(executor: Any, model: Any, **how: Any) -> gs.Result:
    """Sample with a executor of a test, as if it were that of a cluster; with threads where it is None."""
    if executor is None:
        return sample(model, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gibbsite.sampling.executors.choosing._employ", lambda *client: executor)

        class Client:
            submit = scatter = staticmethod(lambda: None)

        return sample(model, **how, on=Client())


RECORDED = ("totals", "_trace", "draw_sites", "draws", "energy", "_bests", "_best_x", "_pulse")


def same(one: gs.Result, other: gs.Result) -> bool:
    """Tell whether everything that was recorded, and the verdict, is the same, byte by byte."""
    blocks = zip(one._blocks, other._blocks, strict=True)
    kept = [(one.kept[name], other.kept[name]) for name in one.kept.keys() | other.kept.keys()]
    pairs = [(getattr(one, name), getattr(other, name)) for name in RECORDED] + [*blocks, *kept]
    return one.diagnostics.line() == other.diagnostics.line() and all(
        a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs
    )
