"""A scheduler and workers of Dask as processes that can be killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import distributed


class Machines:
    """A scheduler and some workers, each of which is a process with one thread, without a nanny."""

    def __init__(self, workers: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name, "scheduler.json")
        self.env = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}
        self.scheduler = self._start("dask_scheduler", "--port", "0", "--no-dashboard", "--no-show")
        self.workers = [self.start_worker() for _ in range(workers)]

    def _start(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                f"distributed.cli.{module}",
                "--scheduler-file",
                str(self.file),
                "--host",
                "127.0.0.1",
                *words,
            ],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker; it connects when it is ready."""
        words = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", self.folder.name)
        return self._start("dask_worker", *words)

    def replace_worker(self, number: int) -> None:
        """Kill a worker, which has no time to say anything, and start another one."""
        os.kill(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()
        self.workers[number] = self.start_worker()

    def have(self, count: int) -> None:
        """Start workers, or kill some, until there are so many, and wait until the scheduler knows."""
        while len(self.workers) < count:
            self.workers.append(self.start_worker())
        while len(self.workers) > count:
            worker = self.workers.pop()
            worker.kill()
            worker.wait()
        patience = time.monotonic() + 120.0
        while len(self.client.scheduler_info(n_workers=-1)["workers"]) != count:
            assert time.monotonic() < patience
            time.sleep(0.05)

    def __enter__(self) -> Any:
        for _ in range(600):
            if self.file.exists() and self.file.stat().st_size:
                break
            time.sleep(0.1)
        self.client = distributed.Client(scheduler_file=str(self.file), timeout=60)
        self.client.wait_for_workers(len(self.workers), timeout=120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close(timeout=5)
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self.folder.cleanup()
