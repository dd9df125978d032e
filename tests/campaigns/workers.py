"""Chains on workers that are killed at random moments: the bytes of an undisturbed run, no growing memory.

    python -m tests.campaigns.workers --minutes 15 --kills 10
    python -m tests.campaigns.workers --minutes 5 --kills 10 --workers 3 --partitions 7

With ``--partitions``, each chain is shared out to all workers, and blocks that were made again are counted.

The disturbed run is limited by time; the undisturbed one makes as many sweeps on threads, and takes as long.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import gibbsite as gs
from gibbsite.scale.partitions.crew import PartitionedCrew
from tests.scale.machines import Machines


def megabytes(process: int) -> float:
    """Return the memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return float(status.split("VmRSS:")[1].split()[0]) / 1024.0


def count_repeated() -> list[int]:
    """Return a list to which partitioned runs add how many blocks are to be made again, whenever some are."""
    found: list[int] = []
    go_back = PartitionedCrew._go_back

    def counting(crew: PartitionedCrew, chains: Any) -> None:
        found.append(len(crew.steps))
        go_back(crew, chains)

    PartitionedCrew._go_back = counting  # type: ignore[method-assign]
    return found


def main() -> int:
    """Run both, print what was seen, and return 0 if they are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    how: dict[str, Any] = {"rng": options.seed, "progress": False, "second_look": False, "warmup": 100}
    if options.partitions is None:
        model, how["scan"], where = gs.ising_grid((60, 60), coupling=0.4, field=0.02), gs.Systematic(), {}
    else:
        model, how["chains"] = gs.ising_grid((300, 300), coupling=0.4, field=0.02), 2
        where = {"partitions": options.partitions}
    repeated = count_repeated()
    rng, over = random.Random(options.seed), threading.Event()
    seen: list[tuple[float, float, int]] = []
    killed: list[float] = []
    begun = time.monotonic()
    with Machines(options.workers) as machines:
        moments = sorted(rng.uniform(0.05, 0.95) * 60 * options.minutes for _ in range(options.kills))

        def watch() -> None:
            while not over.wait(1.0):
                now = time.monotonic() - begun
                known = machines.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
                seen.append((now, megabytes(machines.scheduler.pid), known))
                if moments and now >= moments[0]:
                    moments.pop(0)
                    machines.replace_worker(rng.randrange(options.workers))
                    killed.append(now)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            disturbed = gs.sample(model, seconds=60 * options.minutes, on=machines.client, **where, **how)
        finally:
            over.set()
            watcher.join()
    quarter = max(1, len(seen) // 4)
    second, last = seen[quarter : 2 * quarter], seen[-quarter:]
    mean = [sum(each[1] for each in part) / max(len(part), 1) for part in (second, last)]
    print(
        f"{len(killed)} workers killed in {60 * options.minutes:.0f} s; chains of {disturbed.draws:,} draws"
    )
    if options.partitions is not None:
        print(f"{sum(repeated)} blocks were made again, at most {max(repeated, default=0)} of them at a time")
    print(f"memory of the scheduler, second quarter {mean[0]:.1f} MB, last quarter {mean[1]:.1f} MB")
    print(f"tasks that the scheduler knew: at most {max(each[2] for each in seen)}")
    undisturbed = gs.sample(model, sweeps=disturbed.draws, **how)
    same = undisturbed.marginals.cells.tobytes() == disturbed.marginals.cells.tobytes()
    print(
        "the same bytes as an undisturbed run on threads" if same else "OTHER BYTES than an undisturbed run"
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
