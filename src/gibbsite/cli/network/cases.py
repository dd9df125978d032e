"""``gibbsite infer MODEL --cases FILE``: a row of answers for each row of a file."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gibbsite.cli.outputs import echo, tell
from gibbsite.cli.parameters import refuse
from gibbsite.cli.wording import spelled
from gibbsite.errors import FormatError
from gibbsite.models import FactorGraph

_MOST_SHOWN = 10  # rows with problems that are named
_UNUSED = ("best", "maximise", "folder", "checkpoint", "checkpoint_every", "layout", "show_all", "as_json")


def answer_cases(given: Mapping[str, Any], model: FactorGraph, sites: Sequence[str] | None, how: dict[str, Any]) -> int:
    """Answer all cases of a file as CSV; return the exit code.

    Finished rows are kept in a file beside the output, so that an interrupted run continues with ``--resume``.
    """
    from gibbsite.applications.cases.answers import answer_blocks, csv_rows, header, read_targets
    from gibbsite.applications.cases.reading import read_case_table
    from gibbsite.inference.questions.cases import CaseSolver

    refuse(_UNUSED, "with --cases")
    if given["task"] not in ("MAR", "MAP"):
        raise click.UsageError(f"--cases answers MAR and MAP, not {given['task']}.")
    if given["resume"] and given["out"] in (None, "-"):
        raise click.UsageError("--resume continues a file; name it with -o.")
    if given["cases"] == "-":
        raise click.UsageError("--cases needs a file; standard input cannot be read again with --resume.")
    suffix = Path(given["out"] or "-").suffix.lower()
    if suffix not in ("", ".csv", ".txt"):
        raise click.UsageError(f"the answers to --cases are CSV, not {suffix}; name a .csv file with -o.")
    table = read_case_table(model, given["cases"])
    names, labels = read_targets(model, table, sites)
    own = {name: how[name] for name in ("method", "exact", "seconds") if name in how}
    rest = {
        name: value
        for name, value in how.items()
        if name not in (*own, "criteria", "threads", "progress") and value is not None
    }
    solver = CaseSolver(model, **own, run=rest)
    columns = header(names, labels, given["task"] == "MAR", not solver.is_exact)
    mark = hashlib.blake2b(
        "\n".join([model.digest, given["task"], *columns]).encode() + table.codes.tobytes(), digest_size=16
    ).hexdigest()
    parts = _Parts(given["out"], mark, columns)
    first = parts.open(given["resume"])
    unsure = 0
    shown = 0
    try:
        for block in answer_blocks(solver, table, names, given["task"], first=first, threads=given["threads"]):
            size = len(block.log_evidence)
            parts.write(csv_rows(names, labels, block, size))
            for text in block.problems.values():
                unsure += 1
                if shown < _MOST_SHOWN and not given["quiet"]:
                    shown += 1
                    tell(spelled(text))
        parts.finish()
    except KeyboardInterrupt:
        parts.close()
        where = "" if parts.path is None else f"; --resume continues after {parts.rows:,} of {len(table):,} cases"
        tell(f"interrupted{where}")
        return 130
    if not given["quiet"]:
        if unsure > shown:
            echo(f"... and {unsure - shown:,} more rows with problems, named in the column problem", err=True)
        method = f"{solver.chosen[0]} ({solver.chosen[1]})"
        left = f"; columns that are no sites: {', '.join(table.ignored[:5])}" if table.ignored else ""
        echo(f"{len(table):,} cases by {method}{left}", err=True)
    return 4 if given["strict"] and unsure else 0


class _Parts:
    """The finished rows: on stdout, or in a file with the ending .part that becomes the output at the end."""

    def __init__(self, out: str | None, mark: str, columns: list[str]) -> None:
        self.path = None if out in (None, "-") else Path(str(out))
        self.mark, self.columns, self.rows = f"gibbsite cases {mark}", columns, 0
        self._file: Any = None

    @property
    def _part(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f".{self.path.name}.part")

    def open(self, resume: bool) -> int:
        """Begin, or continue what is there; return the number of rows that are done."""
        if self.path is None:
            self._print([self.columns])
            return 0
        if resume and self._part.exists():
            self.rows = self._keep_whole_rows()
        else:
            self._part.write_text(self.mark + "\n", encoding="utf-8")
        self._file = self._part.open("a", encoding="utf-8", newline="")
        return self.rows

    def _keep_whole_rows(self) -> int:
        """Cut a file after its last whole row, and return the number of rows."""
        text = self._part.read_text(encoding="utf-8", errors="replace")
        first, _, rest = text.partition("\n")
        if first != self.mark:
            raise FormatError(
                "what was kept belongs to other cases, another model or other targets; leave --resume out",
                str(self._part),
            )
        whole = rest[: rest.rfind("\n") + 1]
        self._part.write_text(f"{first}\n{whole}", encoding="utf-8", newline="")
        return sum(1 for _ in csv.reader(whole.splitlines(keepends=True)))

    def write(self, rows: Any) -> None:
        """Write some rows."""
        found = list(rows)
        if self._file is None:
            self._print(found)
        else:
            csv.writer(self._file, lineterminator="\n").writerows(_safe(row) for row in found)
            self._file.flush()
        self.rows += len(found)

    def _print(self, rows: Any) -> None:
        import io

        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(_safe(row) for row in rows)
        echo(text.getvalue().rstrip("\n"))

    def finish(self) -> None:
        """Put the rows where they were asked for."""
        if self.path is None:
            return
        self.close()
        new = self.path.with_name(f".{self.path.name}.new")
        with (
            self._part.open(encoding="utf-8", newline="") as source,
            new.open("w", encoding="utf-8", newline="") as target,
        ):
            source.readline()
            csv.writer(target, lineterminator="\n").writerow(_safe(self.columns))
            while piece := source.read(1 << 20):
                target.write(piece)
        os.replace(new, self.path)
        self._part.unlink()

    def close(self) -> None:
        """Close the file; what was written stays."""
        if self._file is not None:
            self._file.close()


def _safe(row: Sequence[Any]) -> list[Any]:
    from gibbsite.cli.answers import text_cell

    return [text_cell(cell) for cell in row]
