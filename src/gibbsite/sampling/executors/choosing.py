"""Where a run takes place, as users say it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from gibbsite._common.arguments import check_integer
from gibbsite._common.wording import argument, missing, unknown
from gibbsite.errors import ArgumentError
from gibbsite.sampling.executor import Executor, usable_cores
from gibbsite.sampling.executors.certificates import make_security

#: Words for clusters that are started on this machine, or that this process is connected to.
CLUSTERS = ("local-dask", "ray")
CONNECT_SECONDS, CLOSE_SECONDS = 15.0, 10.0


@dataclass(frozen=True)
class Cluster:
    """A cluster of workers, and in how many parts it moves each chain.

    Parameters
    ----------
    workers : distributed.Client or str
        A client of a Dask cluster, the address of its scheduler ("tcp://host:8786"), "local-dask" for processes
        of this machine that end with the run, or "ray".
    partitions : int, optional
        Divide the model into this many parts, each of which a Dask worker moves; all of them move the same
        chain at the same time. This is for large models many of whose sites move at once. The rungs of tempered
        chains are divided instead of the sites. Without it, each worker moves whole chains.

    Examples
    --------
    >>> Cluster("tcp://host:8786", partitions=4)
    Cluster(workers='tcp://host:8786', partitions=4)
    """

    workers: Any
    partitions: int | None = None

    def __post_init__(self) -> None:
        if self.partitions is None:
            return
        check_integer("partitions", self.partitions, 1)
        if self.workers is None or (isinstance(self.workers, str) and self.workers == "ray"):
            raise ArgumentError(
                f"{argument('partitions')} are for workers of a Dask cluster: say where with "
                f"{argument('on')}, or leave them out; threads share the sites of a large model as it is."
            )


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C: terminals send it to all, and this one ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def find_executor(on: Any) -> Iterator[Executor | None]:
    """Return the executor that moves the chains of a run; None by default, which stands for threads.

    Parameters
    ----------
    on : Cluster, distributed.Client, str or None
        Where the chains run. A client or text stands for a :class:`Cluster` that moves each chain in one part.

    Examples
    --------
    >>> with find_executor(None) as executor:
    ...     executor is None
    True
    """
    partitions = None
    if isinstance(on, Cluster):
        on, partitions = on.workers, on.partitions
    if on is None:
        yield None
    elif isinstance(on, str) and on == "ray":
        _need("ray", "ray")
        from gibbsite.sampling.executors.ray import RayExecutor

        yield RayExecutor()
    elif isinstance(on, str):
        with connect(on) as client, _dismissing(_employ(client, partitions)) as executor:
            yield executor
    elif callable(getattr(on, "submit", None)) and callable(getattr(on, "scatter", None)):
        if getattr(on, "status", "running") in ("closing", "closed"):
            raise ArgumentError(f"The client given as {argument('on')} is closed; connect to its cluster anew.")
        with _dismissing(_employ(on, partitions)) as executor:
            yield executor
    else:
        hint = " (a cluster has one: cluster.get_client())" if hasattr(on, "get_client") else ""
        raise ArgumentError(
            f"{argument('on')} must be a client of Dask, the address of its scheduler, or one of "
            f"{', '.join(CLUSTERS)}, got {on!r}{hint}."
        )


def _need(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise ArgumentError(missing("This needs", package, extra))


def _employ(client: Any, partitions: int | None) -> Executor:
    from gibbsite.sampling.executors.dask import DaskExecutor
    from gibbsite.sampling.executors.partitions.site_executor import PartitionExecutor

    return DaskExecutor(client) if partitions is None else PartitionExecutor(client, int(partitions))


@contextmanager
def _dismissing(executor: Executor) -> Iterator[Executor]:
    try:
        yield executor
    finally:
        executor.dismiss()


@contextmanager
def connect(on: str, clusters: Sequence[str] = CLUSTERS) -> Iterator[Any]:
    """Connect to a scheduler of Dask by its address, or start one with a process for every core.

    ``clusters`` are what else might have been meant.
    """
    if on != "local-dask" and "://" not in on:
        raise ArgumentError(
            unknown(argument("on"), on, clusters, ", or the address of a scheduler such as tcp://host:8786")
        )
    _need("distributed", "dask")
    distributed: Any = import_module("distributed")
    dask: Any = import_module("dask")
    if on == "local-dask":
        security = make_security()
        # pages about the cluster have no password, and other users could read them
        no_pages = dask.config.set({f"distributed.{who}.http.routes": [] for who in ("scheduler", "worker")})
        try:
            with _deaf_children(), no_pages:
                cluster = distributed.LocalCluster(
                    n_workers=usable_cores(),
                    threads_per_worker=1,
                    security=security,
                    protocol="tls://",
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                )
        except RuntimeError as reason:
            raise ArgumentError(
                f"No worker processes could be started: {reason} A script that starts them must be a file, "
                'and what it does must stand under if __name__ == "__main__":'
            ) from None
        try:
            with distributed.Client(cluster) as client:
                yield client
        finally:
            # closing may wait forever for a worker that was lost a moment ago; they end with this process
            with suppress(TimeoutError):
                cluster.close(timeout=CLOSE_SECONDS)
        return
    try:
        client = distributed.Client(on, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as reason:
        raise ArgumentError(
            f"There is no scheduler of Dask at {on}: {reason}. Start one with: dask scheduler"
        ) from None
    with client:
        yield client
