"""Run the benchmark: ``python -m benchmarks``; ``--help`` lists what can be left out, saved and compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import gate, speed
from benchmarks.figures import Figures, FiguresError
from benchmarks.page import TARGET_HEAD, page
from benchmarks.parts import PARTS
from benchmarks.reference import NoCompilerError
from benchmarks.report import Section, environment, format_table


def main(arguments: list[str] | None = None) -> int:
    """Measure, or take saved figures; print, write and judge them; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        committed = Figures.read(options.gate) if options.gate else None  # before minutes of measuring
        saved = [Figures.read(path) for path in options.saved]
        figures = Figures.merge(saved) if saved else _run(options.quick, options.only)
    except (NoCompilerError, FiguresError) as reason:
        print(reason, file=sys.stderr)
        return 2
    print("\n" + format_table(TARGET_HEAD, [target.row() for target in figures.targets]))
    missed = sum(not target.met for target in figures.targets)
    print(f"\n{len(figures.targets) - missed} targets met, {missed} missed.")
    if options.json is not None:
        figures.write(options.json)
    if options.page is not None:
        options.page.write_text(page(figures), encoding="utf-8")
    if committed is None:
        return 0
    passed, lines = gate.judge(figures, committed)
    print("\n" + "\n".join(lines))
    return 0 if passed else 1


def _parser() -> argparse.ArgumentParser:
    workloads = sorted({case.workload for case in speed.CASES})
    asked = [part.name for part in PARTS.values() if part.on_request]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, few repetitions (a few minutes)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        choices=[*PARTS, *workloads],
        help=f"a part ({', '.join(PARTS)}; {', '.join(asked)} only if named) or a workload "
        f"({', '.join(workloads)}); may be repeated",
    )
    parser.add_argument(
        "--from",
        dest="saved",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="saved figures, nothing measured; of several files, later ones count",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page in Markdown there")
    parser.add_argument(
        "--gate", type=Path, metavar="FILE", help="compare ratios with figures saved there; exit 1 if one fell"
    )
    return parser


def _run(quick: bool, only: list[str]) -> Figures:
    """Measure, printing each section as it comes."""
    print(", ".join(f"{key} {value}" for key, value in environment().items()))
    sections = []
    for section in measure(quick, only):
        print("\n" + format_table(section.head, section.rows), flush=True)
        sections.append(section)
    return Figures.of(sections, quick=quick)


def measure(quick: bool, only: list[str]) -> Iterator[Section]:
    """Yield the parts asked for, one after another; peers only if named."""
    workloads = [name for name in only if name not in PARTS]
    for part in PARTS.values():
        if part.name == "speed" and workloads:
            yield from part.measure(quick, only=workloads)
        elif part.name in only or (not only and not part.on_request):
            yield from part.measure(quick)


if __name__ == "__main__":
    sys.exit(main())
