"""The figures of one run, kept as a file: what the page is made from and the gate compares with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Section, Target, environment


class FiguresError(ValueError):
    """A file does not hold the figures of a benchmark."""


@dataclass(frozen=True)
class Table:
    """One table for people, and the name of the section it belongs to."""

    name: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Figures:
    """What one run found.

    Attributes
    ----------
    environment : dict
        Machine and versions.
    quick : bool
        Whether models were small and repetitions few.
    targets : list of Target
        All promises.
    tables : list of Table
        One for each section.
    data : dict
        Everything, by section.
    """

    environment: dict[str, Any]
    quick: bool
    targets: list[Target]
    tables: list[Table]
    data: dict[str, Any]

    @classmethod
    def of(cls, sections: Iterable[Section], *, quick: bool) -> Figures:
        """Collect the sections of a run on this machine."""
        found = list(sections)
        return cls(
            environment(),
            quick,
            [target for section in found for target in section.targets],
            [Table(section.name, section.head, section.rows) for section in found],
            {section.name: section.data for section in found},
        )

    @classmethod
    def merge(cls, parts: Sequence[Figures]) -> Figures:
        """Put figures of several runs together; of what is in two of them the later one counts."""
        targets = {(target.name, target.unit): target for part in parts for target in part.targets}
        tables = {table.name: table for part in parts for table in part.tables}
        data = {name: value for part in parts for name, value in part.data.items()}
        quick = any(part.quick for part in parts)
        return cls(parts[-1].environment, quick, list(targets.values()), list(tables.values()), data)

    def write(self, path: Path) -> None:
        """Save as JSON."""
        record = {
            "environment": self.environment,
            "quick": self.quick,
            "targets": [target.to_dict() for target in self.targets],
            "tables": [vars(table) for table in self.tables],
            "sections": self.data,
        }
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Figures:
        """Read what :meth:`write` wrote."""
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            targets = [Target(**{k: v for k, v in target.items() if k != "met"}) for target in record["targets"]]
            tables = [Table(**table) for table in record["tables"]]
            return cls(record["environment"], record["quick"], targets, tables, record["sections"])
        except OSError as reason:
            raise FiguresError(f"{path} cannot be read: {reason.strerror}.") from reason
        except (ValueError, KeyError, TypeError, AttributeError) as reason:
            raise FiguresError(f"{path} does not hold figures; make it with --json {path}.") from reason
