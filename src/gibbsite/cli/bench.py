"""``gibbsite bench``: the benchmarks of the repository, where it is at hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from gibbsite.errors import GibbsiteError


@click.command("bench")
@click.option("--quick", is_flag=True, help="Small models, few repetitions.")
@click.option("--only", multiple=True, metavar="PART", help="One part or workload; may be repeated.")
@click.option("--json", "file", type=str, metavar="FILE", help="Write all figures there.")
def command(quick: bool, only: tuple[str, ...], file: str | None) -> int:
    """Measure speed and memory against loops in C; from the root of a source checkout."""
    if not (Path("benchmarks/__main__.py").is_file() and Path("src/gibbsite").is_dir()):
        raise GibbsiteError(
            "the benchmarks are part of the source repository and of the source distribution (.tar.gz), not "
            "of the installed package: start this from the root of a checkout, where benchmarks/ is."
        )
    words = ["--quick"] * quick + [word for part in only for word in ("--only", part)]
    words += [] if file is None else ["--json", file]
    return subprocess.run([sys.executable, "-m", "benchmarks", *words]).returncode
