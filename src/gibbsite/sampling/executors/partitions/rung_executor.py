"""Rungs of tempered chains on the workers of a Dask cluster, block by block."""

from __future__ import annotations

import secrets
from typing import Any

from gibbsite.errors import IncompatibleError
from gibbsite.kernels.ensemble import Ensemble
from gibbsite.kernels.protocols import Replicated
from gibbsite.sampling.executor import Bundles
from gibbsite.sampling.executors.partitions.rungs import (
    MovedBlock,
    cut_block,
    forget_listener,
    join_block,
    move_rungs,
    open_listener,
)
from gibbsite.sampling.executors.partitions.together import TogetherExecutor
from gibbsite.sampling.executors.remote import MOST_ATTEMPTS, lost_too_often
from gibbsite.sampling.executors.segment import checksum
from gibbsite.sampling.executors.versions import installed_versions
from gibbsite.scans.base import period

_TOKEN = 32  # bytes that workers of a block know each other by


class RungExecutor(TogetherExecutor):
    """Workers of a Dask cluster, each of which moves some replicas of every chain."""

    def __init__(self, client: Any, partitions: int) -> None:
        super().__init__(client)
        self.partitions = partitions
        self.kernel: Any = None

    def send_recipe(self, recipe: Any) -> None:
        """Send the recipe, and remember how chains are shared out."""
        self.kernel = recipe.kernel
        super().send_recipe(recipe)

    def advance(self, chains: Bundles, rounds: int, length: int, keep: bool) -> float:
        """Make steps of all chains, each of them on all workers."""
        cycle = int(period(chains.schedule))
        if length % cycle or any(state.position[0] for state in chains.states):
            return chains.threads.advance(chains, rounds, length, keep)  # what is left of a last sweep is made here
        ensemble = self.kernel.ensemble(chains.layout.moving) if isinstance(self.kernel, Replicated) else None
        if ensemble is None:
            raise IncompatibleError(
                f"The replicas of {type(self.kernel).__name__} cannot be shared out to workers; take "
                "Tempered with a ladder of your own, or leave out the partitions."
            )
        self.blocks += 1
        for _ in range(MOST_ATTEMPTS):
            self._await_workers()
            found = self._try(ensemble, chains, rounds, length // cycle, keep)
            if found is not None:
                return found
            self.say("A worker was lost; its block is made again.")
        raise lost_too_often(MOST_ATTEMPTS)

    def _try(self, ensemble: Ensemble, chains: Bundles, rounds: int, sweeps: int, keep: bool) -> float | None:
        """Have a block made; return the seconds it took, or nothing if a worker was lost."""
        workers = sorted(self.workers())[: min(self.partitions, ensemble.most)]
        if not workers:  # all of them are gone
            return None
        opening, token = secrets.token_hex(8), secrets.token_bytes(_TOKEN)
        asked = (installed_versions(), self.run, self.sent, opening, token)
        addresses = self.on_each("gibbs-listeners", workers, open_listener, [asked] * len(workers))
        if addresses is None:
            return None
        pairs = list(zip(chains.states, chains.tapes, strict=True))
        block = cut_block(ensemble, pairs, len(workers), rounds, sweeps, keep)
        tasks = [(self.run, self.sent, opening, addresses, host, block.part(host)) for host in range(len(workers))]
        moved: list[MovedBlock] | None = self.on_each("gibbs-rungs", workers, move_rungs, tasks)
        if moved is None:
            self.tell_to_forget(forget_listener, workers, opening)  # they may wait for one that is lost
        if moved is None or any(each is None for each in moved) or not self._check(workers, moved):
            return None
        if not rounds:
            return 0.0
        for number, (state, tape) in enumerate(pairs):
            chains.states[number], chains.tapes[number] = join_block(ensemble, block.bounds, moved, number, state, tape)
        for each in moved:
            for done in each.chains:
                if done.wrong is not None:
                    raise done.wrong
        return max(sum(done.seconds for done in each.owned) for each in moved)

    def _check(self, workers: list[str], moved: list[MovedBlock]) -> bool:
        """Compare checksums; drop a worker whose numbers do not match."""
        for worker, each in zip(workers, moved, strict=True):
            for done in (*each.owned, *each.chains):
                if checksum(done.arrays) != done.checksum:
                    self.say(f"Worker {worker} returned wrong numbers; it gets no more work.")
                    self.drop(worker)
                    return False
        return True
