"""Compile on every machine of a cluster before there is anything to do: once for all workers of a machine."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

from gibbsite.sampling.executors.choosing import connect
from gibbsite.sampling.executors.dask import known_workers


class Warmed(NamedTuple):
    """The last line that ``gibbsite warmup`` said on a machine, and whether it got to its end."""

    said: str
    complete: bool


def warm_up(on: str, jobs: int | None = None) -> dict[str, Warmed]:
    """Run ``gibbsite warmup`` once on each machine of a Dask cluster; return what came of it there.

    Parameters
    ----------
    on : str
        Address of the scheduler, or "local-dask".
    jobs : int, optional
        Processes that compile on each machine; one for each core by default.
    """
    with connect(on, ("local-dask",)) as client:
        first = {info["host"]: address for address, info in known_workers(client).items()}
        found: dict[str, Warmed] = client.run(_warm, jobs, workers=list(first.values()))
    host_of = {address: host for host, address in first.items()}
    return {host_of[address]: warmed for address, warmed in found.items()}


def _warm(jobs: int | None) -> Warmed:
    """Compile in processes of their own, which leave the worker as it is."""
    words = [] if jobs is None else ["--jobs", str(jobs)]
    done = subprocess.run(
        [sys.executable, "-m", "gibbsite", "warmup", *words], capture_output=True, text=True, check=False
    )
    return Warmed((done.stderr.strip() or "done").splitlines()[-1], done.returncode == 0)
