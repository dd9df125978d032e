"""Chains on workers that are killed at random moments: the bytes of an undisturbed run, no growing memory.

    python -m tests.campaigns.workers --minutes 15 --kills 10

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

import gibbsite as gs
from tests.scale.machines import Machines


def megabytes(process: int) -> float:
    """Return the memory of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return float(status.split("VmRSS:")[1].split()[0]) / 1024.0


def main() -> int:
    """Run both, print what was seen, and return 0 if they are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    model = gs.ising_grid((60, 60), coupling=0.4, field=0.02)
    how = {
        "scan": gs.Systematic(),
        "rng": options.seed,
        "progress": False,
        "second_look": False,
        "warmup": 100,
    }
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
            disturbed = gs.sample(model, seconds=60 * options.minutes, on=machines.client, **how)
        finally:
            over.set()
            watcher.join()
    quarter = max(1, len(seen) // 4)
    second, last = seen[quarter : 2 * quarter], seen[-quarter:]
    mean = [sum(each[1] for each in part) / max(len(part), 1) for part in (second, last)]
    print(
        f"{len(killed)} workers killed in {60 * options.minutes:.0f} s; chains of {disturbed.draws:,} draws"
    )
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
