"""Run the benchmark: ``python -m benchmarks``; ``--help`` lists what can be left out, saved and compared."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import (
    blocks,
    calls,
    denoise,
    densities,
    dogs,
    entities,
    exact,
    forms,
    gate,
    gaussian,
    growth,
    importance,
    layers,
    memory,
    mini_bucket,
    peers,
    poisson,
    speed,
    startup,
    strips,
)
from benchmarks.figures import Figures, FiguresError
from benchmarks.page import TARGET_HEAD, page
from benchmarks.reference import NoCompilerError, library
from benchmarks.report import Section, environment, format_table

PARTS = (
    "speed",
    "forms",
    "blocks",
    "layers",
    "memory",
    "growth",
    "startup",
    "calls",
    "exact",
    "denoise",
    "entities",
    "dogs",
    "poisson",
    "gaussian",
    "densities",
    "strips",
    "importance",
    "mini_bucket",
    "peers",
)


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
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small models, few repetitions (a few minutes)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        choices=[*PARTS, *workloads],
        help=f"a part ({', '.join(PARTS)}; peers runs only if named) or a workload ({', '.join(workloads)}); "
        "may be repeated",
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
        "--gate",
        type=Path,
        metavar="FILE",
        help="compare ratios with figures saved there; exit 1 if one fell",
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
    if not only or "startup" in only:
        yield startup.measure(quick=quick)
    if not only or "calls" in only:
        yield calls.measure(quick=quick)
    if not only or "memory" in only:
        yield memory.measure(quick=quick)
    if not only or "growth" in only:
        yield growth.measure(quick=quick)
    if not only or "forms" in only:
        library()
        yield forms.measure(quick=quick)
    if not only or "blocks" in only:
        yield blocks.measure(quick=quick)
    if not only or "layers" in only:
        yield layers.measure(quick=quick)
    if not only or "exact" in only:
        yield exact.measure(quick=quick)
    if not only or "denoise" in only:
        yield denoise.measure(quick=quick)
    if not only or "entities" in only:
        yield from entities.measure(quick=quick)
    if not only or "dogs" in only:
        yield dogs.measure(quick=quick)
    if not only or "poisson" in only:
        yield poisson.measure(quick=quick)
    if not only or "gaussian" in only:
        yield gaussian.measure(quick=quick)
    if not only or "densities" in only:
        yield densities.measure(quick=quick)
    if not only or "strips" in only:
        yield strips.measure(quick=quick)
    if not only or "importance" in only:
        yield importance.measure(quick=quick)
    if not only or "mini_bucket" in only:
        yield mini_bucket.measure(quick=quick)
    if "peers" in only:
        yield peers.measure(quick=quick)
    if not only or "speed" in only or workloads:
        library()  # says at once if there is no compiler
        yield from speed.measure(quick=quick, only=workloads)


if __name__ == "__main__":
    sys.exit(main())
