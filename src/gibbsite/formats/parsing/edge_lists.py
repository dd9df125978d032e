"""Lists of edges between numbered sites, read piece by piece from texts and Parquet files."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.errors import ArgumentError, FormatError

_TEXT_BYTES = 1 << 24  # of a text read at a time
_ROWS = 1 << 20  # of a table read at a time


def read_edges(path: Path, sites: int | None) -> Iterator[tuple[Array, Array, Any]]:
    """Yield the edges of a file piece by piece, as (a, b, weight); ``sites`` is their number if it is known."""
    read = _read_table if path.suffix in (".parquet", ".pq") else _read_text
    try:
        yield from read(path, sites)
    except (OSError, EOFError, zlib.error) as reason:
        said = getattr(reason, "strerror", None) or str(reason)
        raise FormatError(f"Cannot read {path}: {said.rstrip('.')}.") from None


def _read_table(path: Path, sites: int | None) -> Iterator[tuple[Array, Array, Any]]:
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ArgumentError("Parquet files need pyarrow, which is not installed; run: pip install pyarrow") from None
    row = 0
    try:
        with parquet.ParquetFile(path) as table:
            kinds = [column.type for column in table.schema_arrow][:3]
            whole = [arrow.types.is_integer(kind) for kind in kinds]
            number = [is_whole or arrow.types.is_floating(kind) for is_whole, kind in zip(whole, kinds, strict=True)]
            if len(kinds) < 2 or not all(whole[:2]) or not all(number):
                raise FormatError(
                    f"{path} must have two columns of whole numbers, the sites, and perhaps couplings; "
                    f"it has {', '.join(map(str, kinds)) or 'none'}."
                )
            for batch in table.iter_batches(batch_size=_ROWS, columns=table.schema_arrow.names[:3]):
                for column in batch.columns:
                    if column.null_count:
                        missing = row + int(np.argmin(np.asarray(column.is_valid()))) + 1
                        raise FormatError(f"{path}, row {missing}: a number is missing.")
                columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
                a, b, weight = *columns[:2], columns[2] if len(columns) > 2 else np.ones(1)
                fault = find_fault(a, b, weight, sites)
                if fault is not None:
                    raise FormatError(f"{path}, row {row + fault[0] + 1}: this {fault[1]}.")
                if len(a):
                    yield a, b, weight
                row += len(a)
    except arrow.ArrowException as reason:
        raise FormatError(f"{path} is no Parquet file, or a damaged one: {str(reason).rstrip('.')}.") from None


def _read_text(path: Path, sites: int | None) -> Iterator[tuple[Array, Array, Any]]:
    """Yield the edges of a text, some lines at a time."""
    columns, line = 0, 0
    with gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb") as file:
        while lines := file.readlines(_TEXT_BYTES):
            kept = [text for each in lines if (text := each.partition(b"#")[0].strip())]
            if kept:
                columns = columns or len(kept[0].split())
                numbers = _numbers(kept, columns)
                if numbers is None:
                    raise _fault(path, lines, columns, line)
                values = numbers.reshape(-1, columns)
                with np.errstate(invalid="ignore"):
                    ends = values[:, :2].astype(np.int64)
                if not (ends == values[:, :2]).all():
                    raise _fault(path, lines, columns, line)
                weight = values[:, 2] if columns == 3 else np.ones(1)
                fault = find_fault(ends[:, 0], ends[:, 1], weight, sites)
                if fault is not None:
                    filled = [k for k, each in enumerate(lines, line + 1) if each.partition(b"#")[0].strip()]
                    raise FormatError(f"{path}, line {filled[fault[0]]}: this {fault[1]}.")
                yield ends[:, 0], ends[:, 1], weight
            line += len(lines)


def _numbers(lines: list[bytes], columns: int) -> Floats | None:
    """Return all numbers of some lines; None if a line has a wrong number of them."""
    if columns not in (2, 3):
        return None
    try:
        found = np.array(b" ".join(lines).split(), np.float64)
    except ValueError:
        return None
    return found if found.size == columns * len(lines) else None


def _fault(path: Path, lines: list[bytes], columns: int, before: int) -> FormatError:
    """Return the error of the first line that is no edge."""
    for number, each in enumerate(lines, before + 1):
        words = each.partition(b"#")[0].split()
        with contextlib.suppress(ValueError):
            if not words or (
                len(words) == columns
                and columns in (2, 3)
                and all(abs(int(word)) < 2**53 for word in words[:2])  # larger ones are not exact as floats
                and len([float(word) for word in words]) == columns
            ):
                continue
        return FormatError(
            f"{path}, line {number}: expected two site numbers and perhaps a coupling, with the same number of "
            f"words on every line, got {each.strip()[:60].decode(errors='replace')!r}."
        )
    return FormatError(f"{path}: lines have different numbers of words.")


def find_fault(a: Array, b: Array, weight: Array, sites: int | None) -> tuple[int, str] | None:
    """Return the number of the first impossible edge, and what is wrong with it."""
    most = 2**31 - 1 if sites is None else sites
    for ends in (a, b):
        bad = np.flatnonzero((ends < 0) | (ends >= most))
        if bad.size:
            return int(bad[0]), f"names site {int(ends[bad[0]])}; sites are 0 to {most - 1}"
    own = np.flatnonzero(a == b)
    if own.size:
        return int(own[0]), f"joins site {int(a[own[0]])} with itself"
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(~np.isfinite(4.0 * weight.astype(np.float32)))  # as it will be stored
    return (int(wrong[0]), "has a coupling that is not finite, or beyond 8e37") if wrong.size else None
