"""Compile on every machine of a cluster before there is anything to do: once for all workers of a machine."""

from __future__ import annotations

import subprocess
import sys

from gibbsite.scale.choosing import connect


def warm_up(on: str, jobs: int | None = None) -> dict[str, str]:
    """Run ``gibbsite warmup`` once on each machine of a Dask cluster; return the last line it said there.

    Parameters
    ----------
    on : str
        Address of the scheduler, or "local-dask".
    jobs : int, optional
        Processes that compile on each machine; one for each core by default.
    """
    with connect(on) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        first = {info["host"]: address for address, info in workers.items()}
        said: dict[str, str] = client.run(_warm, jobs, workers=list(first.values()))
    host_of = {address: host for host, address in first.items()}
    return {host_of[address]: text for address, text in said.items()}


def _warm(jobs: int | None) -> str:
    """Compile in processes of their own, which leave the worker as it is."""
    words = [] if jobs is None else ["--jobs", str(jobs)]
    done = subprocess.run(
        [sys.executable, "-m", "gibbsite", "warmup", *words], capture_output=True, text=True, check=False
    )
    return (done.stderr.strip() or "done").splitlines()[-1]
