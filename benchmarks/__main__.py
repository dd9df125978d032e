"""Run the benchmark: ``python -m benchmarks [--quick] [--only NAME] [--json FILE]``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import exact, forms, memory, speed, startup
from benchmarks.reference import NoCompilerError, library
from benchmarks.report import Section, environment, format_table

PARTS = ("speed", "forms", "memory", "startup", "exact")


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for and print it; return the exit status."""
    workloads = sorted({case.workload for case in speed.CASES})
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, few repetitions (about a minute)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        choices=[*PARTS, *workloads],
        help=f"a part ({', '.join(PARTS)}) or a workload ({', '.join(workloads)}); may be repeated",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    about = environment()
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    sections = []
    try:
        for section in measure(options.quick, options.only):
            print("\n" + format_table(section.head, section.rows), flush=True)
            sections.append(section)
    except NoCompilerError as reason:
        print(reason, file=sys.stderr)
        return 2
    targets = [target for section in sections for target in section.targets]
    print("\n" + format_table(["target", "promised", "seen", "range", ""], [t.row() for t in targets]))
    missed = sum(not target.met for target in targets)
    print(f"\n{len(targets) - missed} targets met, {missed} missed.")
    if options.json is not None:
        record = {
            "environment": about,
            "targets": [target.to_dict() for target in targets],
            "sections": {section.name: section.data for section in sections},
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def measure(quick: bool, only: list[str]) -> Iterator[Section]:
    """Yield the parts asked for, one after another."""
    workloads = [name for name in only if name not in PARTS]
    if not only or "startup" in only:
        yield startup.measure(quick=quick)
    if not only or "memory" in only:
        yield memory.measure(quick=quick)
    if not only or "forms" in only:
        library()
        yield forms.measure(quick=quick)
    if not only or "exact" in only:
        yield exact.measure(quick=quick)
    if not only or "speed" in only or workloads:
        library()  # says at once if there is no compiler
        yield from speed.measure(quick=quick, only=workloads)


if __name__ == "__main__":
    sys.exit(main())
