"""Tasks that run on several workers of a Dask cluster at the same time, and need each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from gibbsite.sampling.executors.dask import LOOK, DaskExecutor, allow_large_messages

_FAREWELL = 5.0  # seconds for asking workers to forget something


class TogetherExecutor(DaskExecutor):
    """Workers of a Dask cluster, all of which are at the same block of sweeps."""

    def on_each(
        self, name: str, workers: Sequence[str], function: Any, arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any] | None:
        """Run a task on each worker at the same time; return nothing if one of them is lost."""
        self.attempts += 1
        futures: list[Any] = []
        try:
            with allow_large_messages(), self.in_spite_of_losses():
                for number, (worker, given) in enumerate(zip(workers, arguments, strict=True)):
                    futures.append(
                        self.client.submit(
                            function,
                            *given,
                            key=(name, self.run, number, self.blocks, self.attempts),
                            workers=[worker],
                            allow_other_workers=False,
                            pure=False,
                            retries=0,
                        )
                    )
            if len(futures) == len(workers):
                self._wait(futures, workers)
                done = [self._is_done(future) for future in futures]  # all are asked: no error is missed
                if all(done):
                    return self._gather(futures, workers)
            self.cancel(futures, force=True)
            return None
        finally:
            for future in futures:
                future.release()  # so that the scheduler forgets the block
            self._empty_logs()

    def _gather(self, futures: list[Any], workers: Sequence[str]) -> list[Any] | None:
        """Bring here what tasks have returned; nothing if it was lost with a worker.

        What is lost would be waited for in vain: no other worker can make it again.
        """
        from distributed.scheduler import KilledWorker

        answer: SimpleQueue[Any] = SimpleQueue()

        def bring() -> None:
            try:
                with self.in_spite_of_losses(), suppress(KilledWorker):
                    answer.put(list(self.client.gather(futures)))
                    return
                answer.put(None)
            except BaseException as wrong:  # raised again where somebody listens
                answer.put(wrong)

        Thread(target=bring, daemon=True, name="gibbsite-gather").start()
        while True:
            try:
                found = answer.get(timeout=LOOK)
            except Empty:
                if self._is_missing(workers):
                    self.cancel(futures, force=True)
                    return None
                continue
            if isinstance(found, BaseException):
                raise found
            return found  # type: ignore[no-any-return]

    def tell_to_forget(self, function: Any, workers: Sequence[str], *about: str) -> None:
        """Let workers forget something of the run, beside whatever they do.

        One that is gone, or silent, is not called: that may take long.
        """
        there = [worker for worker in workers if worker in self.workers()]

        def tell() -> None:
            with self.in_spite_of_losses():
                self.client.run(function, self.run, *about, workers=there, wait=False, on_error="ignore")

        if there:
            teller = Thread(target=tell, daemon=True, name="gibbsite-forget")
            teller.start()
            teller.join(_FAREWELL)
