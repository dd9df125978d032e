"""A scheduler and workers of Dask as processes that can be killed, stopped and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Any

import distributed


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Machines:
    """A scheduler and some workers, each of which is a process with some threads, without a nanny.

    ``timeout`` is how many seconds the client looks for a scheduler that is gone.
    """

    def __init__(self, workers: int, timeout: float = 60.0, threads: int = 1) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.timeout, self.threads = timeout, threads
        self.scheduler = self.start_scheduler()
        self.workers = [self.start_worker() for _ in range(workers)]

    def _start(self, module: str, *words: str, python: str = sys.executable, **env: str) -> Any:
        return subprocess.Popen(
            [python, "-m", f"distributed.cli.{module}", *words],
            env={**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s", **env},
            cwd=self.folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start_scheduler(self, python: str = sys.executable, **env: str) -> Any:
        """Start the scheduler, always at the same address."""
        host, port = self.address.removeprefix("tcp://").split(":")
        return self._start(
            "dask_scheduler", "--host", host, "--port", port, "--no-dashboard", "--no-show", python=python, **env
        )

    def start_worker(self, python: str = sys.executable, **env: str) -> Any:
        """Start a worker, by another Python or in another environment; it connects when it is ready."""
        words = ("--nthreads", str(self.threads), "--no-nanny", "--no-dashboard")
        words = (*words, "--local-directory", self.folder.name)
        return self._start("dask_worker", self.address, *words, python=python, **env)

    def replace_worker(self, number: int) -> None:
        """Kill a worker, which has no time to say anything, and start another one."""
        self._kill(self.workers[number])
        self.workers[number] = self.start_worker()

    def replace_scheduler(self, after: float = 0.0) -> None:
        """Kill the scheduler, and start another one some seconds later; workers end with it."""
        self._kill(self.scheduler)
        time.sleep(after)
        self.scheduler = self.start_scheduler()
        for number in range(len(self.workers)):
            self.replace_worker(number)

    @staticmethod
    def _kill(process: Any) -> None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    def have(self, count: int) -> None:
        """Start workers, or kill some, until their number is right, and wait until the scheduler knows."""
        while len(self.workers) < count:
            self.workers.append(self.start_worker())
        while len(self.workers) > count:
            self._kill(self.workers.pop())
        patience = time.monotonic() + 120.0
        while len(self.client.scheduler_info(n_workers=-1)["workers"]) != count:
            assert time.monotonic() < patience
            time.sleep(0.05)

    def __enter__(self) -> Any:
        try:
            self.client = distributed.Client(self.address, timeout=60)
            self.client._timeout = self.timeout  # from now on
            if self.workers:
                self.client.wait_for_workers(len(self.workers), timeout=120)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close(timeout=5)
        self._end()

    def _end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()  # a process that is stopped ends as well
            process.wait()
        self.folder.cleanup()
