"""Does a damaged compile cache ever change anything? ``python -m tests.campaigns.damage``.

Fills a cache by a run, and then, again and again, copies it, flips single bits in its files and runs the same
in a new process. Every run must exit with 0, print the same numbers, and say nothing on stderr but that it
compiles. All kinds of files are hit: indices, compiled code and the key of the sources.

Options
    --runs N       processes (default 100)
    --bits N       flipped bits in each of them (default 5), so that 500 are flipped in all
    --seed N       of the first run (default 0); run k of a campaign has seed N + k
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import warnings
import gibbsite as gs

warnings.simplefilter("ignore", gs.ConvergenceWarning)
model = gs.ising_grid((3, 3), coupling=0.3, field=0.1)
result = gs.sample(model, sweeps=200, rng=1, record=["energy", "draws"])
print(result.energy.sum().hex(), result.draws.sum(), result.diagnostics.converged)
answer = gs.infer(gs.example("asia"), method="gibbs", sweeps=2000, rng=1)
print([p.hex() for table in answer.marginals.values() for p in table.values()], answer.converged)
"""


def run_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program with a cache."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "GIBBSITE_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def flip_bits(folder: Path, bits: int, seed: int) -> list[str]:
    """Flip bits in files of a folder: each in a file chosen at random, so that small ones are hit as well."""
    rng = random.Random(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hit = []
    for _ in range(bits):
        path = rng.choice(files)
        content = bytearray(path.read_bytes())
        bit = rng.randrange(8 * len(content))
        content[bit >> 3] ^= 1 << (bit & 7)
        path.write_bytes(content)
        hit.append(f"{path.name}:{bit}")
    return hit


def find_fault(found: subprocess.CompletedProcess[str], whole: subprocess.CompletedProcess[str]) -> str:
    """Return what is wrong with a run, nothing if it is as that with the whole cache."""
    if found.returncode:
        return f"exit code {found.returncode}: {found.stderr[-500:]}"
    if found.stdout != whole.stdout:
        return f"another answer: {found.stdout}"
    said = [line for line in found.stderr.splitlines() if not line.startswith("gibbsite: compiling ")]
    return f"it said {said}" if said else ""


def main() -> None:
    """Run the campaign and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in (("runs", 100), ("bits", 5), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    faults = 0
    with tempfile.TemporaryDirectory() as place:
        filled, hurt = Path(place) / "filled", Path(place) / "hurt"
        whole = run_in(filled)
        assert whole.returncode == 0, whole.stderr
        again = run_in(filled)
        assert (again.stdout, again.stderr) == (whole.stdout, ""), again
        for seed in range(asked.seed, asked.seed + asked.runs):
            shutil.copytree(filled, hurt)
            hit = flip_bits(hurt, asked.bits, seed)
            fault = find_fault(run_in(hurt), whole)
            if fault:
                faults += 1
                print(f"seed {seed}, {', '.join(hit)}: {fault}", flush=True)
            shutil.rmtree(hurt)
    print(f"{asked.runs} runs with {asked.runs * asked.bits} flipped bits: {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
