"""Segments of chains on the workers of a Dask cluster.

Tasks are pure, carry all they need, and are forgotten as soon as their block is over: a lost worker costs the
segment it was at, and the scheduler's memory does not grow with the length of a run.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from importlib import import_module
from typing import Any

from gibbsite.errors import ArgumentError, SamplingError
from gibbsite.run.recipe import Recipe
from gibbsite.scale.crew import RemoteCrew, Returned
from gibbsite.scale.segment import Segment, move_segment
from gibbsite.scale.versions import differences, installed_versions

# Seconds that a run waits for a scheduler or a worker to come back.
PATIENCE = 60.0
LOOK = 0.5  # seconds between two looks at the workers


def _move(versions: dict[str, str], run: str, recipe: Recipe, segment: Segment) -> Returned:
    """Move a bundle, and say who did; not with other versions than those of who asks for it."""
    from distributed import get_worker

    worker, other = str(get_worker().address), differences(versions)
    return Returned(None if other else move_segment(run, recipe, segment), worker, other)


def allow_large_messages() -> Any:
    """Allow large arguments of tasks without a warning: a model, or the state of a chain, goes out once."""
    dask: Any = import_module("dask")
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


class DaskCrew(RemoteCrew):
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self.sent: Any = None
        self.attempts = 0

    def workers(self) -> dict[str, Any]:
        """Return what the scheduler knows of its workers, by address."""
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def send_recipe(self, recipe: Recipe) -> None:
        """Send the recipe to the scheduler."""
        cloudpickle: Any = import_module("cloudpickle")
        self._await_workers()
        # a task, not scattered data: what is lost with a worker is made again from what the scheduler has
        with allow_large_messages():
            self.sent = self.client.submit(
                pickle.loads, cloudpickle.dumps(recipe), key=("gibbs-model", self.run), pure=False
            )

    def _await_workers(self) -> None:
        """Wait until there is a worker; give up after a while."""
        begun, told = time.monotonic(), False
        while True:
            if self.client.status == "running" and self.workers():
                return
            if not told and time.monotonic() - begun > LOOK:
                self.say("No worker is there; waiting for one to come back.")
                told = True
            if time.monotonic() - begun > PATIENCE:
                raise SamplingError(
                    f"The cluster had no worker for {PATIENCE:.0f} seconds, or its scheduler is gone; what "
                    "was recorded before is kept. Start workers, and resume from the checkpoint, if any."
                )
            time.sleep(LOOK)

    def places(self) -> int:
        """Return the number of threads of all workers."""
        return max(1, sum(int(worker["nthreads"]) for worker in self.workers().values()))

    def threads_each(self, bundles: int) -> int:
        """Return how many threads of a worker each of so many bundles can have."""
        known = [int(worker["nthreads"]) for worker in self.workers().values()]
        return max(1, min(min(known, default=1), sum(known) // bundles))

    def hand_out(self, segments: Sequence[tuple[int, Segment]]) -> list[Returned]:
        """Submit a task for each segment; the dashboard shows them as ``gibbs-segment``."""
        self._await_workers()
        self.attempts += 1
        with allow_large_messages():
            futures = [
                self.client.submit(
                    _move,
                    installed_versions(),
                    self.run,
                    self.sent,
                    segment,
                    key=("gibbs-segment", self.run, number, self.blocks, self.attempts),
                    pure=False,
                )
                for number, segment in segments
            ]
        try:
            self._wait(futures)
            return [self._take(future) for future in futures]
        finally:
            for future in futures:
                future.release()  # now, not when Python finds the time: the scheduler forgets the segment

    def _wait(self, futures: list[Any], needed: Sequence[str] = ()) -> None:
        """Wait for tasks; until one of the workers that are needed is lost.

        A cluster without workers is given up after a while. Tasks that nobody is at for some time, though
        there are workers, are handed out again.
        """
        distributed: Any = import_module("distributed")
        seen = time.monotonic()
        while True:
            try:
                distributed.wait(futures, timeout=LOOK)
                return
            except TimeoutError:
                self._await_workers()
                if self._is_missing(needed):
                    return
                now = {key for keys in self.client.processing().values() for key in keys}
                if any(future.key in now or future.status == "finished" for future in futures):
                    seen = time.monotonic()
                elif time.monotonic() - seen > PATIENCE:
                    self.say("No worker is at any chain; they are handed out again.")
                    self.client.cancel(futures)
                    return
            except CancelledError:  # lost with the scheduler
                return

    def _is_missing(self, needed: Sequence[str]) -> bool:
        """Tell whether one of some workers is gone."""
        there = self.workers() if needed else {}
        return any(worker not in there for worker in needed)

    def _is_done(self, future: Any) -> bool:
        """Tell whether a task has returned, or was lost with its worker or the scheduler."""
        from distributed.scheduler import KilledWorker

        wrong = future.exception() if future.status == "error" else None
        if isinstance(wrong, ModuleNotFoundError):
            raise ArgumentError(
                f"A worker cannot import {wrong.name}: install gibbsite there, in the version that is here "
                f"({installed_versions()['gibbsite']})."
            )
        if wrong is not None and not isinstance(wrong, KilledWorker):
            raise wrong
        return bool(future.status == "finished")

    def _take(self, future: Any) -> Returned:
        """Return what a task has returned; nothing if it was lost."""
        from distributed.scheduler import KilledWorker

        if self._is_done(future):
            # what was finished may be lost with its worker before it is here; Dask raises one of these then
            with suppress(TimeoutError, CancelledError, KilledWorker, RuntimeError):
                found: Returned = future.result(timeout=PATIENCE)
                return found
        return Returned(None, "")

    def drop(self, worker: str) -> None:
        """Retire a worker."""
        self.client.retire_workers([worker], close_workers=True)
