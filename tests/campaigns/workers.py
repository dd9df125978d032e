"""Chains on workers to which things happen at random moments: the bytes of an undisturbed run.

    python -m tests.campaigns.workers --minutes 15 --kills 10
    python -m tests.campaigns.workers --minutes 10 --kills 3 --stops 3 --restarts 2
    python -m tests.campaigns.workers --minutes 5 --kills 10 --workers 3 --partitions 7

Workers are killed; stopped for longer than a run waits to hear of them; the scheduler is killed with all
workers and started again at the same address. The memory of the scheduler must not grow. With
``--partitions``, each chain is shared out to all workers, and blocks that were made again are counted.

The disturbed run is limited by time; the undisturbed one makes as many sweeps on threads, and takes as long.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import gibbsite as gs
from gibbsite.sampling.executors import dask as dask_module
from gibbsite.sampling.executors.partitions.site_executor import PartitionExecutor
from tests.sampling.executors.machines import Machines


def megabytes(process: int) -> float:
    """Return the memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return float(status.split("VmRSS:")[1].split()[0]) / 1024.0


def report_memory(seen: list[tuple[float, float, int]]) -> None:
    """Print the memory of the scheduler in each quarter of the run, and how many tasks it knew."""
    quarters = [seen[k * len(seen) // 4 : (k + 1) * len(seen) // 4] for k in range(4)]
    means = [f"{sum(each[1] for each in part) / max(len(part), 1):.1f}" for part in quarters]
    print(f"memory of the scheduler by quarters of the run: {', '.join(means)} MB")
    print(f"tasks that the scheduler knew: at most {max(each[2] for each in seen)}")


def count_repeated() -> list[int]:
    """Return a list to which partitioned runs add how many blocks are to be made again, whenever some are."""
    found: list[int] = []
    go_back = PartitionExecutor._go_back

    def counting(executor: PartitionExecutor, chains: Any) -> None:
        found.append(len(executor.steps))
        go_back(executor, chains)

    PartitionExecutor._go_back = counting  # type: ignore[method-assign]
    return found


def main() -> int:
    """Run both, print what was seen, and return 0 if they are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    how: dict[str, Any] = {
        "rng": options.seed,
        "progress": False,
        "criteria": gs.Criteria(dispersed_starts=False),
        "warmup": 100,
    }
    if options.partitions is None:
        model, how["scan"], where = gs.ising_grid((60, 60), coupling=0.4, field=0.02), gs.Systematic(), None
    else:
        model, how["chains"] = gs.ising_grid((300, 300), coupling=0.4, field=0.02), 2
        where = options.partitions
    repeated = count_repeated()
    rng, over = random.Random(options.seed), threading.Event()
    seen: list[tuple[float, float, int]] = []
    happened: list[str] = []
    begun = time.monotonic()
    with Machines(options.workers) as machines:
        deeds = ["kill"] * options.kills + ["stop"] * options.stops + ["restart"] * options.restarts
        rng.shuffle(deeds)
        moments = sorted(rng.uniform(0.05, 0.95) * 60 * options.minutes for _ in deeds)

        def act(deed: str) -> None:
            number = rng.randrange(options.workers)
            if deed == "kill":
                machines.replace_worker(number)
            elif deed == "restart":
                machines.replace_scheduler(after=2.0)
            else:
                stopped = machines.workers[number].pid
                os.kill(stopped, signal.SIGSTOP)
                over.wait(1.5 * dask_module.SILENCE)
                os.kill(stopped, signal.SIGCONT)
            happened.append(deed)

        def watch() -> None:
            while not over.wait(1.0):
                now = time.monotonic() - begun
                if not options.restarts:  # those of a scheduler that is new say nothing
                    known = machines.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
                    seen.append((now, megabytes(machines.scheduler.pid), known))
                if moments and now >= moments[0]:
                    moments.pop(0)
                    act(deeds.pop())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            disturbed = gs.sample(model, seconds=60 * options.minutes, on=gs.Cluster(machines.client, where), **how)
        finally:
            over.set()
            watcher.join()
    print(f"{options.minutes:g} minutes; chains of {disturbed.n_draws:,} draws; {', '.join(happened)}")
    if options.partitions is not None:
        print(f"{sum(repeated)} blocks were made again, at most {max(repeated, default=0)} of them at a time")
    if seen:
        report_memory(seen)
    undisturbed = gs.sample(model, sweeps=disturbed.n_draws, **how)
    same = undisturbed.marginals.cells.tobytes() == disturbed.marginals.cells.tobytes()
    print("the same bytes as an undisturbed run on threads" if same else "OTHER BYTES than an undisturbed run")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
