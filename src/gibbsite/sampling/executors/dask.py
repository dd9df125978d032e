"""Pure tasks, segments of chains above all, on the workers of a Dask cluster.

Tasks carry all they need, and are forgotten as soon as they are over: a lost worker costs the task it was at,
and the scheduler's memory does not grow with the length of a run. A scheduler that is started again is waited
for.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import signature
from typing import Any

from gibbsite.errors import ArgumentError, GibbsiteError, SamplingError
from gibbsite.sampling.executors.remote import RemoteExecutor, Returned, Work
from gibbsite.sampling.executors.segment import Done
from gibbsite.sampling.executors.versions import differences, installed_versions

# Seconds that a run waits for a scheduler or a worker to come back.
PATIENCE = 60.0
# Seconds that tasks wait while no worker does anything: those they were meant for are gone.
IDLE = 2.0
# Seconds without a heartbeat after which others make what a worker was at; there is one every few seconds.
SILENCE = 30.0
LOOK = 0.5  # seconds between two looks at the workers
JOINING = 0.0  # seconds that a run waits for the answer of a worker that comes later, which gets work then
_LOST = ("cancelled", "lost", "error")  # how what was sent is called after its workers were lost
# What Dask may raise where a scheduler is gone, or something is lost on the way.
_GONE = (OSError, TimeoutError, CancelledError, RuntimeError)


def _make(
    versions: dict[str, str], function: Callable[[str, Any, Any], Done], run: str, recipe: Any, task: Any
) -> Returned:
    """Make a task, and say who did; not with other versions than those of who asks for it."""
    from distributed import get_worker

    worker, other = str(get_worker().address), differences(versions)
    return Returned(None if other else function(run, recipe, task), worker, other)


def known_workers(client: Any) -> dict[str, Any]:
    """Return what a scheduler knows of all its workers, by address; nothing if its client is closed.

    It is asked by ourselves: ``client.scheduler_info`` returns whatever the client has heard last, which may
    be an answer without workers to a question of its own.
    """
    distributed: Any = import_module("distributed")
    named = signature(distributed.Scheduler.identity).parameters
    all_of_them = {"n_workers": -1} if "n_workers" in named else {}  # older ones name all anyway
    if client.status != "running" or client.scheduler is None:
        return {}
    return dict(client.sync(client.scheduler.identity, **all_of_them)["workers"])


def allow_large_messages() -> Any:
    """Allow large arguments of tasks without a warning: a model, or the state of a chain, goes out once."""
    dask: Any = import_module("dask")
    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})


class DaskExecutor(RemoteExecutor):
    """The workers of a Dask cluster."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self.client = client
        self.address = str(client.scheduler.address)
        self.own: Any = None  # a client in place of one that has given up
        self.packed = b""  # what all tasks need
        self.sent: Any = None
        self.avoided: set[str] = set()  # workers that were silent when it was sent
        self.attempts = 0
        self.asked: dict[str, Any] = {}  # workers, for their versions
        self.admitted: dict[str, bool] = {}  # whether they have those of this process
        self.seen = 0.0  # when a worker was last at a task
        self.emptied = 0.0  # when logs were last emptied
        self.heard: dict[str, tuple[float, float]] = {}  # last heartbeat of each worker, and when we saw it

    @contextmanager
    def in_spite_of_losses(self) -> Iterator[None]:
        """Leave a block of code where the scheduler is gone, or something is lost on the way.

        A client that is closed meanwhile, as it is when its scheduler stays away, may raise anything.
        """
        client = self.client
        try:
            yield
        except GibbsiteError:
            raise
        except _GONE:
            return
        except Exception:
            if client.status == "running":
                raise

    def wait_for(self, futures: list[Any], timeout: float, first: bool = False) -> None:
        """Wait until all tasks are over, or the ``first`` of them.

        Dask asks the current client of the thread otherwise, which may be another one: tasks would be waited
        for in the event loop of that.
        """
        distributed: Any = import_module("distributed")
        with self.client.as_current():
            distributed.wait(futures, timeout, "FIRST_COMPLETED" if first else "ALL_COMPLETED")

    def workers(self) -> dict[str, Any]:
        """Return what the scheduler knows of its workers, by address.

        Those that are silent, or cannot do what is done here, are left out.
        """
        known = self._known()
        now = time.monotonic()
        self.heard = {
            address: self.heard[address]
            if address in self.heard and self.heard[address][0] == float(told["last_seen"])
            else (float(told["last_seen"]), now)
            for address, told in known.items()
        }
        there = {address: told for address, told in known.items() if now - self.heard[address][1] < SILENCE}
        self._admit(list(there))
        return {address: told for address, told in there.items() if self.admitted.get(address)}

    def _admit(self, there: Sequence[str]) -> None:
        """Ask workers for their versions before they get any work; those that lack something get none.

        The answers of those that are there from the beginning are waited for; one may be busy for others.
        """
        versions = installed_versions()

        def compare() -> str:  # a function inside of a function goes out as it is, also to who lacks gibbsite
            from gibbsite.sampling.executors.versions import differences

            return differences(versions)

        with self.in_spite_of_losses():
            for worker in [each for each in self.asked if each not in self.heard]:
                self.asked.pop(worker).release()
            new = [worker for worker in there if worker not in self.asked]
            for worker in new:
                self.attempts += 1
                key = ("gibbs-versions", self.run, worker, self.attempts)
                self.asked[worker] = self.client.submit(compare, key=key, workers=[worker], pure=False)
            self._await_answers(new)
        for worker in there:
            self._hear(worker)

    def _await_answers(self, asked: Sequence[str]) -> None:
        """Wait until workers have answered, or are gone."""
        until = time.monotonic() + (SILENCE if self.blocks <= 1 else JOINING)
        while asked:
            left = until - time.monotonic()
            try:
                self.wait_for([self.asked[worker] for worker in asked], max(0.0, min(LOOK, left)))
                return
            except TimeoutError:
                if left <= 0.0:
                    return
                known = self._known()
                asked = [worker for worker in asked if worker in known]

    def _hear(self, worker: str) -> None:
        """Take a worker in whose answer is here, and has nothing to say."""
        answer = self.asked.get(worker)
        if answer is None or worker in self.admitted or answer.status == "pending":
            return
        with self.in_spite_of_losses():
            wrong = answer.exception(timeout=LOOK)
            other = f"no {wrong.name}" if isinstance(wrong, ModuleNotFoundError) else ""
            if wrong is None:
                other = answer.result(timeout=LOOK)
                self.admitted[worker] = not other
            elif other:
                self.admitted[worker] = False
            else:
                del self.asked[worker]  # lost in the meantime: it is asked again
            answer.release()
            if other:
                self._refuse(Returned(None, worker, other))
            return
        self.asked.pop(worker, None)

    def _known(self) -> dict[str, Any]:
        """Return what the scheduler knows of all its workers; nothing if it is gone."""
        with self.in_spite_of_losses():
            return known_workers(self.client)
        return {}

    def send_recipe(self, recipe: Any) -> None:
        """Send the recipe to the scheduler."""
        cloudpickle: Any = import_module("cloudpickle")
        try:
            self.packed, self.sent = cloudpickle.dumps(recipe), None
        except (TypeError, AttributeError, pickle.PicklingError) as reason:
            raise ArgumentError(
                f"What is sampled cannot be sent to workers: {reason}. Your functions must not use open "
                "files, locks and the like."
            ) from None
        self._await_workers()

    def _send(self) -> None:
        """Send what all tasks need; again, where it was lost with a scheduler, or a silent worker has it."""
        there = self.workers()
        silent = set(self.heard) - set(there)
        if self.sent is not None and self.sent.status not in _LOST and silent <= self.avoided:
            return
        self.attempts += 1
        self.avoided = silent
        # a task, not scattered data: what is lost with a worker is made again from what the scheduler has
        with allow_large_messages():
            self.sent = self.client.submit(
                pickle.loads,
                self.packed,
                key=("gibbs-model", self.run, self.attempts),
                pure=False,
                workers=list(there) if silent else None,
                allow_other_workers=bool(silent),  # these may be lost, too
            )

    def _await_workers(self) -> None:
        """Wait until there is a worker, and the scheduler has what tasks need; give up after a while."""
        begun, told = time.monotonic(), False
        while True:
            self._connect_again()
            if self.workers():
                with self.in_spite_of_losses():
                    self._send()
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

    def _connect_again(self) -> None:
        """Take another client where the one that was given has lost its scheduler for too long."""
        if self.client.status != "closed":
            return
        distributed: Any = import_module("distributed")
        with self.in_spite_of_losses():
            self.own = self.client = distributed.Client(self.address, timeout=2 * LOOK, security=self.client.security)
            self.sent = None

    def dismiss(self) -> None:
        """Let the scheduler forget what was sent, and close what was opened here."""
        self.packed, self.sent = b"", None
        self._empty_logs(now=True)
        if self.own is not None:
            self.own.close()

    def places(self) -> int:
        """Return the number of threads of all workers."""
        return max(1, sum(int(worker["nthreads"]) for worker in self.workers().values()))

    def threads_each(self, bundles: int) -> int:
        """Return the number of threads of a worker for each of a number of bundles."""
        known = [int(worker["nthreads"]) for worker in self.workers().values()]
        return max(1, min(min(known, default=1), sum(known) // bundles))

    def hand_out(self, work: Work, tasks: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Returned]]:
        """Submit each task; the dashboard shows them by the name of the work, such as ``gibbs-segment``."""
        self._await_workers()
        waiting: dict[Any, tuple[int, Any]] = {}
        try:
            with self.in_spite_of_losses():
                self._submit(work, tasks, waiting)
            if len(waiting) < len(tasks):  # lost with the scheduler
                yield from ((number, Returned(None, "")) for number, _ in tasks)
                return
            while waiting:
                self._wait(list(waiting), first=True)
                for future in [each for each in waiting if each.status != "pending"]:
                    number, _ = waiting.pop(future)
                    try:
                        returned = self._take(future)
                    finally:
                        # now, not when Python finds the time: the scheduler forgets the task
                        future.release()
                    yield number, returned
                self._move_from_silent(work, waiting)
        finally:
            for future in waiting:
                future.release()
            self._empty_logs()

    def _empty_logs(self, now: bool = False) -> None:
        """Empty Dask's logs of messages now and then: a thousand for each worker, with all they carried.

        They are for looking into Dask itself. With the states of large models they would take gigabytes.
        """

        def empty(dask_scheduler: Any) -> None:
            for comm in (*dask_scheduler.stream_comms.values(), *dask_scheduler.client_comms.values()):
                comm.recent_message_log.clear()

        if not now and time.monotonic() - self.emptied < LOOK:
            return
        self.emptied = time.monotonic()
        with self.in_spite_of_losses(), suppress(AttributeError):  # other versions may have other logs
            self.client.scheduler_comm.recent_message_log.clear()
            self.client.run_on_scheduler(empty)

    def _submit(self, work: Work, tasks: Sequence[tuple[int, Any]], waiting: dict[Any, tuple[int, Any]]) -> None:
        """Submit tasks to all workers but the silent ones.

        Where there are as many workers, each gets one: the scheduler knows how long tasks took before, and
        blocks that grow from one sweep to seconds would let it give several of them to the same worker.
        """
        self.attempts += 1
        self.seen = time.monotonic()
        self._send()
        there = list(self.workers())
        silent, enough = len(there) < len(self.heard), len(tasks) <= len(there)
        with allow_large_messages():
            for place, (number, task) in enumerate(tasks):
                future = self.client.submit(
                    _make,
                    installed_versions(),
                    work.function,
                    self.run,
                    self.sent,
                    task,
                    key=(work.name, self.run, number, self.blocks, self.attempts),
                    pure=False,
                    workers=[there[place]] if enough else there if silent else None,
                    allow_other_workers=enough and not silent,
                )
                waiting[future] = number, task

    def _move_from_silent(self, work: Work, waiting: dict[Any, tuple[int, Any]]) -> None:
        """Submit again what silent workers are at; what they return later is not waited for."""
        there = self.workers()
        silent = [worker for worker in self.heard if worker not in there]
        if not silent or not there:
            return
        with self.in_spite_of_losses():  # which are found out when what is lost is waited for
            theirs = {key for worker in silent for key in self.client.processing([worker]).get(worker, ())}
            lost = [future for future in waiting if future.key in theirs]
            if not lost:
                return
            self.say(
                f"Nothing was heard of worker {', '.join(silent)} for {SILENCE:.0f} seconds; "
                "what it was at is made by others."
            )
            again = [waiting.pop(future) for future in lost]
            self.client.cancel(lost, force=True)
            self._submit(work, again, waiting)

    def _wait(self, futures: list[Any], needed: Sequence[str] = (), first: bool = False) -> None:
        """Wait for tasks, or for the ``first`` of them; until one of the workers that are needed is lost.

        A cluster without workers is given up after a while. Tasks that no worker has taken after some
        time, though there are workers, are submitted again.
        """
        if not first:
            self.seen = time.monotonic()
        while True:
            try:
                self.wait_for(futures, LOOK, first)
                return
            except TimeoutError:
                self._await_workers()
                if self._is_missing(needed):
                    return
                patience = self._patience(futures)
                if patience == math.inf:
                    self.seen = time.monotonic()
                elif time.monotonic() - self.seen > patience:
                    self.say("No worker is at any chain; they are handed out again.")
                    self.cancel(futures)
                    self.sent = None
                    return
                if first and len(self.workers()) < len(self.heard):
                    return  # some are silent: what they are at is to be moved
            except CancelledError:  # lost with the scheduler
                return

    def _patience(self, futures: list[Any]) -> float:
        """Return how many seconds to wait for unassigned tasks; infinite, if a worker has taken one.

        Workers that do something else may come to them later. Tasks that were meant for workers that are gone
        by now would wait in vain, though others are idle.
        """
        with self.in_spite_of_losses():
            there = self.workers()
            now = {key for worker, keys in self.client.processing().items() if worker in there for key in keys}
            if any(future.key in now or future.status == "finished" for future in futures):
                return math.inf
            return PATIENCE if now else IDLE
        return PATIENCE

    def _is_missing(self, needed: Sequence[str]) -> bool:
        """Tell whether one of some workers is gone."""
        there = self.workers() if needed else {}
        return any(worker not in there for worker in needed)

    def _is_done(self, future: Any) -> bool:
        """Tell whether a task has returned, or was lost with its worker or the scheduler."""
        from distributed.scheduler import KilledWorker

        wrong = future.exception() if future.status == "error" else None
        lacks = wrong.__cause__ if isinstance(wrong, RuntimeError) else wrong
        if isinstance(lacks, ModuleNotFoundError):
            raise ArgumentError(
                f"The scheduler or a worker cannot import {lacks.name}: install there what is here "
                f"(gibbsite {installed_versions()['gibbsite']})."
            )
        if wrong is not None and not isinstance(wrong, KilledWorker):
            raise wrong
        return bool(future.status == "finished")

    def _take(self, future: Any) -> Returned:
        """Return what a task has returned; nothing if it was lost."""
        from distributed.scheduler import KilledWorker

        if self._is_done(future):
            # what was finished may be lost with its worker before it is here; Dask raises one of these then
            with self.in_spite_of_losses(), suppress(KilledWorker):
                found: Returned = future.result(timeout=PATIENCE)
                return found
        return Returned(None, "")

    def cancel(self, futures: list[Any], force: bool = False) -> None:
        """Let the scheduler forget tasks; also those that others have asked for, by ``force``."""
        with self.in_spite_of_losses():
            self.client.cancel(futures, force=force)

    def drop(self, worker: str) -> None:
        """Retire a worker."""
        with self.in_spite_of_losses():
            self.client.retire_workers([worker], close_workers=True)
