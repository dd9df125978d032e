"""Write stored models from lists of edges of any length, sorted outside of memory.

Edges come in pieces. Each edge is written, in both directions, to the bucket of its first site; then bucket after
bucket is read, sorted by site, and appended to the arrays. Memory is needed for one piece and one bucket.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from gibbsite._common.arguments import checked, describe, is_path
from gibbsite._common.arrays import Array, Bytes, Floats, Floats32, Ints, Words32
from gibbsite._common.lock import hold
from gibbsite._common.wording import argument
from gibbsite._numba.jit import Integer, compiled, inlined
from gibbsite.errors import ArgumentError, FormatError, ModelError
from gibbsite.formats.parsing.edge_lists import find_fault, read_edges
from gibbsite.formats.parsing.text import path_text
from gibbsite.models.domain import Label, read_labels
from gibbsite.models.stored import CHECKSUM, FORMAT, MANIFEST, OFFSET, WHICH, StoredPairs, identify, open_model, sum_up

_BUCKETS = 256
_MOST_VALUES = 256  # couplings that a byte can tell apart
_ENTRY = np.dtype([("here", np.uint32), ("there", np.uint32), ("weight", np.float32)])


@checked
def store_edges(
    edges: Any,
    path: str | Path,
    *,
    sites: int | None = None,
    field: Any = 0.0,
    states: int | Sequence[Label] | None = None,
) -> StoredPairs:
    """Write a model of any size into a folder, from which it is sampled without being loaded.

    The model is ``p(s) ~ exp(sum of J s_a s_b + sum of h s_a)``, as that of :func:`gibbsite.ising`, or with ``states``
    the Potts model ``p(x) ~ exp(sum of J [x_a = x_b] + sum of h_a(x_a))``, as that of :func:`gibbsite.potts`.

    Couplings are stored as 32-bit floats; those of a pair that is listed twice add up. If all pairs have the same
    coupling, it is stored once, which halves the space; up to 256 distinct couplings take a byte for each pair and
    direction.

    Parameters
    ----------
    edges : iterable or path
        Pieces ``(a, b, J)`` of a list of edges: two arrays of site numbers from 0 on, and an array of
        couplings or one for all; or a text of lines ``a b J`` or ``a b`` (J = 1), in which # begins comments
        (also with .gz); or a Parquet file whose first columns are a, b and perhaps J (needs pyarrow).
    path : str or path
        The folder; it must not exist.
    sites : int, optional
        Number of sites; by default a file is read twice to determine it.
    field : float or array
        h, one for all sites or for each; of a Potts model one for each state, ``(K,)`` or ``(sites, K)``.
    states : int or sequence of labels, optional
        Of a Potts model: the number of states K, labelled 0 .. K-1, or the labels, text or numbers.

    Returns
    -------
    StoredPairs

    Raises
    ------
    FormatError
        If a file cannot be read; it names the line.
    ModelError
        If a site is joined with itself, or a number is out of range or not finite.

    Examples
    --------
    >>> import tempfile
    >>> import gibbsite as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ring = np.arange(1000)
    ...     model = store_edges([(ring, (ring + 1) % 1000, 0.3)], folder + "/ring", sites=1000)
    ...     how = {"sweeps": 200, "rng": 1, "progress": False, "record": gs.Marginals(batches=False)}
    ...     0.4 < gs.sample(model, **how).marginals["7"][1] < 0.6
    True
    """
    folder = Path(path_text(path))
    if folder.exists():
        raise ArgumentError(f"{folder} exists already; give the name of a new folder.")
    if isinstance(edges, str) and not is_path(edges):
        raise ArgumentError(f"{argument('edges')} must be the path of a file, got {describe(edges)}.")
    file = Path(edges) if isinstance(edges, str | Path) else None
    if sites is None:
        if file is None:
            raise ArgumentError(f"{argument('sites')} is needed where edges do not come from a file.")
        sites = 1 + max((int(max(a.max(), b.max())) for a, b, _ in read_edges(file, None)), default=-1)
        if not sites:
            raise FormatError(f"{file} has no edges; a model without any needs {argument('sites')}.")
    if isinstance(sites, bool) or not isinstance(sites, int | np.integer):
        raise ArgumentError(f"{argument('sites')} must be a whole number, got {sites!r}.")
    if not 0 < sites < 2**31:
        raise ModelError(f"A stored model has from 1 to 2^31 - 1 sites, not {sites}.")
    if file is None and not isinstance(edges, Iterable):
        raise ArgumentError(
            f"{argument('edges')} must be a file, or pieces (a, b, J) of a list of edges, got {edges!r}."
        )
    form = _Spins(int(sites), field) if states is None else _Potts(int(sites), field, states)
    pieces = edges if file is None else read_edges(file, sites)

    def fail(reason: str) -> FormatError:
        return FormatError(f"Cannot write {folder}: {reason}.")

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise fail(f"{reason.strerror or reason}; check the folder, rights and free space") from None
    with hold(folder, fail):
        spare = folder.with_name(f".{folder.name}.storing.part")
        shutil.rmtree(spare, ignore_errors=True)  # left by a process that was killed
        try:
            spare.mkdir()
            listed = _distribute(pieces, spare, sites)
            _assemble(spare, listed, form)
            os.replace(spare, folder)
        except OSError as reason:
            raise fail(f"{reason.strerror or reason}; check the folder, rights and free space") from None
        finally:
            shutil.rmtree(spare, ignore_errors=True)
    return open_model(folder)


class _Spins:
    """The arrays of an Ising model: the log-odds of state 1, with x = 0 and 1 for s = 2 x - 1."""

    scale = 4.0  # of couplings
    version = 2

    def __init__(self, sites: int, field: Any) -> None:
        self.sites, self.fields = sites, _read_fields(field)
        if self.fields.shape not in ((), (sites,)):
            raise ModelError(f"{argument('field')} must be one finite number, or one for each of {sites} sites.")

    @property
    def files(self) -> dict[str, tuple[Any, int]]:
        """Types and lengths of the other arrays than rows and couplings."""
        return {"field": (np.float64, self.sites)}

    def rows(self, low: int, high: int, sums: Floats) -> dict[str, Array]:
        """Return the entries of these arrays for some sites, given the sums of their couplings."""
        # log-odds are 2 h - 2 sum of J, and 4 J for each neighbour in state 1
        fields = np.broadcast_to(self.fields, (self.sites,))[low:high]
        return {"field": 2.0 * fields - 2.0 * sums}

    def about(self, total: float) -> dict[str, Any]:
        """Return the entries of the manifest about the model, given the sum of all couplings."""
        return {"log_offset": total - float(np.broadcast_to(self.fields, (self.sites,)).sum())}


class _Potts:
    """The arrays of a Potts model: its couplings, and the fields of states, for each site or for all."""

    scale = 1.0
    version = 4

    def __init__(self, sites: int, field: Any, states: Any) -> None:
        self.labels = read_labels(states, argument("states"))
        self.sites, count = sites, len(self.labels)
        given = _read_fields(field)
        self.fields = np.full(count, given) if given.ndim == 0 else given
        if self.fields.shape not in ((count,), (sites, count)):
            raise ModelError(
                f"{argument('field')} must be {count} finite numbers, one for each state, or as many for "
                f"each of {sites} sites."
            )

    @property
    def files(self) -> dict[str, tuple[Any, int]]:
        """Types and lengths of arrays besides rows and couplings."""
        return {"field": (np.float64, self.fields.size), OFFSET: (np.int64, self.sites + 1)}

    def rows(self, low: int, high: int, sums: Floats) -> dict[str, Array]:
        """Return the entries of these arrays for some sites; common fields of all sites come with the first site."""
        own = self.fields.ndim == 2
        fields = self.fields[low:high] if own else self.fields if low == 0 else np.zeros(0)
        last = high + (high == self.sites)
        return {"field": fields, OFFSET: len(self.labels) * np.arange(low, last)}

    def about(self, total: float) -> dict[str, Any]:
        """Return the entries of the manifest about the model."""
        return {"log_offset": 0.0, "states": list(self.labels)}


def _read_fields(field: Any) -> Floats:
    try:
        fields = np.asarray(field, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{argument('field')} must be numbers, got {field!r}.") from None
    if not np.isfinite(fields).all():
        raise ModelError(f"{argument('field')} must be finite numbers.")
    return fields


@dataclass
class _Listed:
    """The number of entries, the sum of their couplings, and the bits of the distinct ones in ascending order.

    ``distinct`` is the number of distinct couplings, or one more than ``bits`` can hold.
    """

    entries: int = 0
    total: float = 0.0
    distinct: int = 0
    bits: Words32 = dataclasses.field(default_factory=lambda: np.zeros(_MOST_VALUES, np.uint32))

    def note(self, weight: Floats32) -> None:
        """Add couplings to the distinct ones, until these are too many."""
        if self.distinct <= self.bits.size:
            self.distinct = _note(np.ascontiguousarray(weight).view(np.uint32), self.bits, self.distinct)

    @property
    def few(self) -> bool:
        """Whether distinct couplings and a byte for each entry take less space than all couplings."""
        return self.distinct <= self.bits.size and 4 * self.distinct + self.entries < 4 * self.entries


@inlined
def _rank(bits: Words32, distinct: Integer, key: Integer) -> Integer:
    """Return how many of the first distinct numbers, which ascend, are below another."""
    low, high = 0, distinct
    while low < high:
        middle = (low + high) // 2
        if bits[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _note(keys: Words32, bits: Words32, distinct: int) -> int:
    """Put numbers that are new into a list that ascends; return how many it has, one more if it overflows."""
    for key in keys:
        place = _rank(bits, distinct, key)
        if place == distinct or bits[place] != key:
            if distinct == bits.size:
                return distinct + 1
            for k in range(distinct, place, -1):
                bits[k] = bits[k - 1]
            bits[place] = key
            distinct += 1
    return distinct


@compiled
def _code(keys: Words32, bits: Words32, distinct: int, which: Bytes) -> None:
    """Write the place of each number in a list that ascends."""
    for e in range(keys.size):
        which[e] = _rank(bits, distinct, keys[e])


def _distribute(pieces: Iterable[Any], folder: Path, sites: int) -> _Listed:
    """Write edges, in both directions, to the buckets of their first sites."""
    width = -(-sites // _BUCKETS)
    listed = _Listed()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(folder / f"bucket-{k}", "wb")) for k in range(-(-sites // width))]
        for number, piece in enumerate(pieces):
            if not isinstance(piece, Sequence) or len(piece) != 3:
                raise ModelError(f"piece {number} of the edges must be (a, b, J): sites, sites, couplings.")
            first, second, coupling = piece
            a, b = np.atleast_1d(np.asarray(first)), np.atleast_1d(np.asarray(second))
            given = np.asarray(coupling)
            if given.dtype.kind not in "iuf":
                raise ModelError(f"piece {number} of the edges must have numbers as couplings.")
            given = given.astype(np.float32)
            weight = np.broadcast_to(given, a.shape)
            _check(a, b, weight, sites, number)
            both = np.empty(2 * a.size, _ENTRY)
            # edge by edge, so that rows do not depend on where pieces end
            both["here"][0::2], both["here"][1::2] = a, b
            both["there"][0::2], both["there"][1::2] = b, a
            both["weight"][0::2] = both["weight"][1::2] = weight
            bucket = (both["here"] // width).astype(np.uint8)
            both = both[np.argsort(bucket, kind="stable")]  # of bytes: a radix sort
            ends = np.cumsum(np.bincount(bucket, minlength=len(files)))
            for k, (begin, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
                if end > begin:
                    files[k].write(both[begin:end].tobytes())  # tofile does not notice all of a full disk
            listed.entries += both.size
            listed.total += float(weight.sum(dtype=np.float64))
            if a.size:
                listed.note(given.ravel())
    return listed


def _check(a: Array, b: Array, weight: Floats32, sites: int, number: int) -> None:
    where = f"piece {number} of the edges"
    if a.shape != b.shape or a.ndim != 1 or a.dtype.kind not in "iu" or b.dtype.kind not in "iu":
        raise ModelError(f"{where} must have two arrays of equally many whole numbers.")
    fault = find_fault(a, b, weight, sites)
    if fault is not None:
        raise ModelError(f"{where} {fault[1]}.")


@compiled
def _sort_bucket(
    here: Words32,
    there: Words32,
    weight: Floats32,
    kept: Array,
    low: int,
    start: Ints,
    neighbour: Words32,
    coupling: Array,
    total: Floats,
) -> None:
    """Sort entries by site, in the order in which they came; sum the couplings of each site.

    ``kept`` is what is kept of the coupling of each entry: a number, or which one it is.
    """
    for e in range(here.size):
        start[here[e] - low + 1] += 1
    for i in range(start.size - 1):
        start[i + 1] += start[i]
    free = start[:-1].copy()
    for e in range(here.size):
        i = here[e] - low
        k = free[i]
        free[i] = k + 1
        neighbour[k] = there[e]
        coupling[k] = kept[e]
        total[i] += weight[e]


class _Growing:
    """An array in NumPy's format that is written piece by piece."""

    def __init__(self, path: Path, dtype: Any, length: int) -> None:
        self.file, self.hash = open(path, "wb"), hashlib.blake2b(digest_size=16)  # noqa: SIM115
        self.dtype, header = np.dtype(dtype), io.BytesIO()
        about = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (length,)}
        npy.write_array_header_1_0(header, about)
        self._write_bytes(header.getvalue())

    def __enter__(self) -> _Growing:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file if that has not been done; what could not be written is not tried again."""
        self.file.raw.close()

    def write(self, values: Array) -> None:
        self._write_bytes(np.ascontiguousarray(values, self.dtype).tobytes())

    def _write_bytes(self, data: bytes) -> None:
        self.hash.update(data)
        self.file.write(data)

    def close(self) -> dict[str, Any]:
        self.file.flush()
        os.fsync(self.file.fileno())
        size = self.file.tell()
        self.file.close()
        return {"bytes": size, "blake2b": self.hash.hexdigest()}


def _assemble(folder: Path, listed: _Listed, form: _Spins | _Potts) -> None:
    """Read bucket after bucket, sort it, and append it to the arrays; then write the manifest."""
    sites, entries = form.sites, listed.entries
    width = -(-sites // _BUCKETS)
    equal = listed.distinct == 1  # half of what a sweep reads need not be there
    few = listed.few and not equal
    values = form.scale * listed.bits[: listed.distinct].view(np.float32) if equal or few else np.zeros(0)
    files = {
        "start": (np.uint32 if entries < 2**32 else np.uint64, sites + 1),
        "neighbour": (np.uint32, entries),
        "coupling": (np.float32, values.size if equal or few else entries),
        **form.files,
        **({WHICH: (np.uint8, entries)} if few else {}),
    }
    with contextlib.ExitStack() as stack:
        arrays = {name: stack.enter_context(_Growing(folder / f"{name}.npy", *about)) for name, about in files.items()}
        arrays["start"].write(np.zeros(1))
        done = 0
        for k, low in enumerate(range(0, sites, width)):
            high = min(low + width, sites)
            file = folder / f"bucket-{k}"
            data = np.fromfile(file, _ENTRY)
            file.unlink()
            rows, sums = np.zeros(high - low + 1, np.int64), np.zeros(high - low)
            ends, others, weights = (np.ascontiguousarray(data[name]) for name in ("here", "there", "weight"))
            kept: Array = np.empty(data.size, np.uint8) if few else form.scale * weights
            if few:
                _code(weights.view(np.uint32), listed.bits, listed.distinct, kept)
            there, sorted_ = np.empty(data.size, np.uint32), np.empty_like(kept)
            _sort_bucket(ends, others, weights, kept, low, rows, there, sorted_, sums)
            arrays["start"].write(rows[1:] + done)
            arrays["neighbour"].write(there)
            if not equal:
                arrays[WHICH if few else "coupling"].write(sorted_)
            for name, values_of_sites in form.rows(low, high, sums).items():
                arrays[name].write(values_of_sites)
            done += data.size
        if equal or few:
            arrays["coupling"].write(values)
        written = {name: array.close() for name, array in arrays.items()}
    version = max(form.version, 3 if few else 2)  # the lowest that can hold it
    told = form.about(listed.total)
    manifest = {"format": FORMAT, "version": version, "sites": sites, "entries": entries, **told, "files": written}
    manifest["digest"] = identify(manifest)
    manifest[CHECKSUM] = sum_up(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
