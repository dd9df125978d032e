"""Pure tasks on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gibbsite.sampling.executors.remote import RemoteExecutor, Returned, Work


class RayExecutor(RemoteExecutor):
    """The workers of the Ray cluster that this process is connected to, or of a local one."""

    def __init__(self) -> None:
        super().__init__()
        import ray

        self.ray: Any = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self.sent: Any = None

    def send_recipe(self, recipe: Any) -> None:
        """Put the recipe where all workers find it."""
        self.sent = self.ray.put(recipe)

    def places(self) -> int:
        """Return the number of cores of the cluster."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def threads_each(self, bundles: int) -> int:
        """Return one: Ray gives a task one core."""
        return 1

    def hand_out(self, work: Work, tasks: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Returned]]:
        """Start a task each; Ray makes those again that are lost."""
        remote = self.ray.remote(work.function)
        waiting = {
            remote.options(name=f"{work.name} {number}", max_retries=-1).remote(self.run, self.sent, task): number
            for number, task in tasks
        }
        while waiting:
            finished, _ = self.ray.wait(list(waiting))
            for one in finished:
                yield waiting.pop(one), Returned(self.ray.get(one), "")

    def drop(self, worker: str) -> None:
        """Do nothing: Ray does not tell who has made what."""
