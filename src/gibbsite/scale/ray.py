"""Segments of chains on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gibbsite.run.recipe import Recipe
from gibbsite.scale.crew import RemoteCrew, Returned
from gibbsite.scale.segment import Done, Segment, move_segment


class RayCrew(RemoteCrew):
    """The workers of the Ray cluster that this process is connected to, or of a local one."""

    def __init__(self) -> None:
        super().__init__()
        import ray

        self.ray: Any = ray
        if not ray.is_initialized():
            ray.init(log_to_driver=False)
        self.task: Any = ray.remote(move_segment)
        self.sent: Any = None

    def send_recipe(self, recipe: Recipe) -> None:
        """Put the recipe where all workers find it."""
        self.sent = self.ray.put(recipe)

    def places(self) -> int:
        """Return the number of cores of the cluster."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def threads_each(self, bundles: int) -> int:
        """Return one: Ray gives a task one core."""
        return 1

    def hand_out(self, segments: Sequence[tuple[int, Segment]]) -> list[Returned]:
        """Start a task for each segment."""
        started = [
            self.task.options(name=f"gibbs-segment {number}", max_retries=-1).remote(
                self.run, self.sent, segment
            )
            for number, segment in segments
        ]
        done: list[Done] = self.ray.get(started)
        return [Returned(one, "") for one in done]

    def drop(self, worker: str) -> None:
        """Do nothing: Ray does not tell who has made what."""
