"""What the benchmark says: targets with the figures seen, tables, and a record of the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.measure import Spread


@dataclass(frozen=True)
class Target:
    """One promise and what came of it.

    Attributes
    ----------
    name : str
        What is promised.
    seen : float
        The figure.
    bound : float
        Where it must be.
    least : bool
        Whether the bound is the smallest figure allowed, or the largest.
    unit : str
        Unit of the figure.
    spread : str
        Its range, for people.
    """

    name: str
    seen: float
    bound: float
    least: bool
    unit: str = ""
    spread: str = ""

    @classmethod
    def of(cls, name: str, seen: Spread, bound: float, unit: str = "times", *, least: bool = True) -> Target:
        """Promise something about the median of a figure."""
        return cls(name, seen.median, bound, least, unit, f"{seen.low:.3g} .. {seen.high:.3g}")

    @property
    def met(self) -> bool:
        return self.seen >= self.bound if self.least else self.seen <= self.bound

    def row(self) -> list[str]:
        sign = ">=" if self.least else "<="
        return [
            self.name,
            f"{sign} {self.bound:g} {self.unit}".strip(),
            f"{self.seen:.2f}" if self.seen < 1000 else f"{self.seen:.0f}",
            self.spread,
            "ok" if self.met else "MISSED",
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True)
class Section:
    """Results of one part: its targets, a table for people, and everything as data."""

    name: str
    targets: list[Target]
    head: list[str]
    rows: list[list[str]]
    data: Any


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, columns aligned; all but the first to the right."""
    width = [max(len(row[c]) for row in (head, *rows)) for c in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [cell.rjust(w) for cell, w in zip(cells, width, strict=True)]
        padded[0] = cells[0].ljust(width[0])
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 2) for w in width) + "|"
    return "\n".join([line(head), rule, *(line(row) for row in rows)])


def environment() -> dict[str, Any]:
    """Return what the figures depend on: processor and versions."""
    from importlib.metadata import version

    from benchmarks import reference

    try:
        compiler = reference.compiler_version()
    except reference.NoCompilerError:
        compiler = "none"
    packages = ("gibbsite", "numpy", "numba", "scipy", "llvmlite")
    return {
        "processor": reference.processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "compiler": compiler,
        "flags": " ".join(reference.FLAGS),
        **{package: version(package) for package in packages},
    }
