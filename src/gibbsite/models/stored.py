"""Ising and Potts models in files that need not fit into memory: rows of neighbours that are mapped into memory.

A stored model is a folder with a manifest, which has sizes and checksums, and arrays in the format of NumPy. Sweeps in
the order of the sites read the arrays from beginning to end.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.archive import map_array
from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Wanted, between, check_header, check_values, fits, one_of, read_json
from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Domains, SiteNames, read_labels

MANIFEST = "manifest.json"
FORMAT = "gibbsite-pairs"
#: Version 2: a coupling of all pairs is stored once; 3: few distinct couplings are stored once, and a byte for each
#: entry; 4: Potts models. A model is stored in the lowest version that can represent it.
READABLE = (1, 2, 3, 4)
CHECKSUM = "checksum"  # the entry of a manifest with the checksum of the others
#: Names of the arrays: compressed rows of neighbours, couplings, and a field for each site.
ARRAYS = ("start", "neighbour", "coupling", "field")
WHICH = "which"  # the array of version 3 with the number of the coupling of each entry
OFFSET = "offset"  # the array of Potts models with the start of the states of each site
_PIECE = 1 << 24  # bytes read at a time
_SITES = 1 << 18  # number of sites whose rows are read at a time


class StoredPairs(Model):
    """An Ising model in a folder, made by :func:`gibbsite.formats.store_edges` and opened by :func:`open_model`.

    Sites are numbers, ``"0"``, ``"1"``, ..., with states -1 and 1. Only the states of the chains and the recorded data
    are held in memory; ``gs.Marginals(batches=False)`` keeps the latter small.
    """

    _combine: Any = np.multiply  # the factor of a coupling, given the states of its sites

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest
        labels = tuple(manifest.get("states", (-1, 1)))
        super().__init__(Domains(SiteNames(int(manifest["sites"])), (labels,), np.zeros(0, np.int32)))

    @property
    def n_states(self) -> int:
        """Number of states of every site."""
        return len(self._domains.labels(0))

    @property
    def digest(self) -> str:
        """Hash of the checksums of all arrays."""
        return str(self.manifest["digest"])

    @property
    def n_edges(self) -> int:
        """Number of pairs."""
        return int(self.manifest["entries"]) // 2

    @property
    def couplings(self) -> str:
        """How couplings are stored: ``"equal"``, ``"5 distinct"``, or ``"a float for each"``."""
        kept = self._map("coupling").size
        if self.coded:
            return f"{kept} distinct"
        return "equal" if kept < int(self.manifest["entries"]) else "a float for each"

    @property
    def coded(self) -> bool:
        """Whether the distinct couplings are stored, and another array has the number of that of each entry."""
        return WHICH in self.manifest["files"]

    @property
    def log_offset(self) -> float:
        """The constant part of the log-potential of the arrays."""
        return float(self.manifest["log_offset"])

    def log_potential(self, x: Any) -> float:
        """Return the log-potential of a state given by codes from 0 on, reading all pairs once.

        Codes of spins are 0 for -1 and 1 for 1.

        Examples
        --------
        >>> import tempfile
        >>> import gibbsite as gs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model = gs.formats.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3, field=1.0)
        ...     model.log_potential([1, 1, 0])
        1.0
        """
        codes = np.asarray(x)
        if codes.shape != (self.n_sites,) or not np.isin(codes, np.arange(self.n_states)).all():
            raise ModelError(f"a state of this model is {self.n_sites} codes from 0 to {self.n_states - 1}.")
        codes = codes.astype(np.int16, copy=False)
        # every pair is in two rows
        return self.log_offset + self._sum_fields(codes) + 0.5 * self._sum_pairs(codes)

    def _sum_fields(self, codes: Array) -> float:
        """Return the sum of the fields."""
        return float(codes @ self.array("field"))

    def _sum_pairs(self, codes: Array) -> float:
        """Return the sum of the couplings of all entries, each times its factor given the states."""
        start, neighbour = self.array("start"), self.array("neighbour")
        total = 0.0
        for first in range(0, self.n_sites, _SITES):
            rows = start[first : min(first + _SITES, self.n_sites) + 1].astype(np.int64)
            here = np.repeat(codes[first : first + len(rows) - 1], np.diff(rows))
            part = slice(int(rows[0]), int(rows[-1]))
            weight = self._entries(part)
            total += float(self._combine(here, codes[neighbour[part]]) @ weight.astype(np.float64))
        return total

    def observe(self, evidence: Mapping[Any, Any]) -> Model:
        """Refuse evidence, for which the arrays would have to be written again."""
        raise IncompatibleError(
            "A stored model cannot fold evidence in; store it without the observed sites, and add their "
            "couplings to the fields of their neighbours."
        )

    @property
    def wanted(self) -> dict[str, Wanted]:
        """The type and shape of each array; :attr:`lengths` has the possible numbers of couplings and fields."""
        sites, entries = self.n_sites, int(self.manifest["entries"])
        which = {WHICH: Wanted(np.uint8, (entries,))} if self.coded else {}
        return {
            "start": Wanted((np.uint32, np.uint64), (sites + 1,)),
            "neighbour": Wanted(np.uint32, (entries,), high=sites - 1),
            "coupling": Wanted(np.float32, ("couplings",)),
            "field": Wanted(np.float64, ("fields",)),
            **which,
        }

    @property
    def lengths(self) -> dict[str, Any]:
        """The possible numbers of couplings and fields."""
        couplings = range(1, 257) if self.coded else (1, int(self.manifest["entries"]))
        return {"coupling": couplings, "field": (self.n_sites,)}

    def check(self, verify: bool = False) -> None:
        """Refuse damaged arrays, which compiled code must not read; read them once, from beginning to end.

        Sizes, types and ranges are compared with the manifest, numbers must be finite, and every pair must
        be in the rows of both of its sites with the same coupling. The checksums of short files are compared,
        and of all files on demand.
        """
        files = self.manifest["files"]
        for name in self.wanted:
            file = self.path / f"{name}.npy"
            if not file.is_file() or file.stat().st_size != files[name]["bytes"]:
                raise FormatError(
                    f"{file} is missing or does not have the size that its manifest states; store it again."
                )
        entries = int(self.manifest["entries"])
        for name in self.wanted:
            found = self._map(name)
            short = name == "field" or (name == "coupling" and found.size < entries)
            if (verify or short) and hash_file(self.path / f"{name}.npy") != files[name]["blake2b"]:
                raise FormatError(f"{self.path / name}.npy has changed since it was written; store the model again.")
            if name in self.lengths and found.size not in self.lengths[name]:
                raise self._damaged(name)
        self._check_steps("start", entries)
        for name in ("coupling", "field"):
            check_values(name, self._map(name), self.wanted[name], partial(self._damaged, name))
        self._check_offset(self._check_rows())

    def _check_rows(self) -> float:
        """Refuse rows that do not consist of pairs; return the sum of the couplings of all entries."""
        from gibbsite.models.stored_rows import FAULTS, check_rows

        start, neighbour, coupling = (self._map(name) for name in ARRAYS[:3])
        listed, mark = 0, coupling.view(np.uint32)
        if self.coded:
            listed, mark = coupling.size, self._map(WHICH)
        elif coupling.size < neighbour.size:
            mark = mark[:0]
        balance, total = np.zeros(1, np.uint64), np.zeros(1)
        fault = check_rows(start, neighbour, mark, coupling, listed, balance, total)
        if fault:
            raise self._damaged("neighbour" if fault < 3 else WHICH if listed else "coupling", FAULTS[fault])
        if balance[0]:
            raise FormatError(
                f"{self.path} is damaged: a pair is not in the rows of both of its sites with one coupling; "
                "store the model again."
            )
        return float(total[0] if mark.size else neighbour.size * coupling.sum(dtype=np.float64))

    def _check_offset(self, couplings: float) -> None:
        """Refuse a constant other than the log-potential of the state in which all spins are -1."""
        field, coupling = self._map("field"), self._map("coupling")
        size = [
            count * max(-float(each.min(initial=0)), float(each.max(initial=0)))
            for count, each in ((field.size, field), (int(self.manifest["entries"]), coupling))
        ]
        # log-odds are 2 h - 2 sum of J, and couplings 4 J, in both rows of a pair
        self._compare_offset(-0.125 * couplings - 0.5 * float(field.sum()), sum(size))

    def _compare_offset(self, right: float, size: float) -> None:
        if not math.isclose(self.log_offset, right, rel_tol=1e-9, abs_tol=1e-9 * size):
            raise FormatError(
                f"{self.path / MANIFEST} is damaged: its log_offset is not that of the arrays; store the model again."
            )

    def _check_steps(self, name: str, last: int, step: int | None = None) -> None:
        """Refuse an array that does not ascend from 0 to ``last``, in equal steps if ``step`` is given."""
        numbers = self._map(name)
        good = bool(numbers[0] == 0 and int(numbers[-1]) == last)
        for first in range(0, self.n_sites, _SITES):
            part = numbers[first : first + _SITES + 1].astype(np.int64)
            steps = np.diff(part)
            good &= bool((steps >= 0).all() if step is None else (steps == step).all())
        if not good:
            raise self._damaged(name)

    def _damaged(self, name: str, reason: str = "") -> FormatError:
        why = f": {reason}" if reason else ""
        return FormatError(f"{self.path / name}.npy is damaged{why}; store the model again.")

    def _map(self, name: str) -> Array:
        """Return an array as it is stored, mapped into memory."""
        file = self.path / f"{name}.npy"
        return map_array(file, name, self.wanted[name], {}, partial(self._damaged, name))

    def _entries(self, part: slice) -> Array:
        """Return the couplings of some entries."""
        coupling = self.array("coupling")
        return coupling[self._map(WHICH)[part]] if self.coded else coupling[part]

    def array(self, name: str) -> Array:
        """Return an array, mapped into memory; a coupling of all pairs is repeated for each entry."""
        found = self._map(name)
        entries = int(self.manifest["entries"])
        once = name == "coupling" and not self.coded and found.size < entries
        return np.broadcast_to(found, entries) if once else found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_sites:,} sites, {self.n_edges:,} pairs, {self.path})"


class StoredPotts(StoredPairs):
    """A Potts model in a folder, in other respects like :class:`StoredPairs`.

    Couplings count if the states of a pair agree, and states may have fields.

    Examples
    --------
    >>> import tempfile
    >>> import gibbsite as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = gs.formats.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3, states=4)
    ...     model.log_potential([3, 3, 0])
    0.5
    """

    _combine: Any = np.equal

    @property
    def wanted(self) -> dict[str, Wanted]:
        """The type and shape of each array."""
        return {**super().wanted, OFFSET: Wanted(np.int64, (self.n_sites + 1,))}

    @property
    def lengths(self) -> dict[str, Any]:
        """The possible numbers of couplings and fields."""
        return {**super().lengths, "field": (self.n_states, self.n_sites * self.n_states)}

    def check(self, verify: bool = False) -> None:
        """Refuse damaged arrays."""
        super().check(verify)
        self._check_steps(OFFSET, self.n_sites * self.n_states, self.n_states)

    def _check_offset(self, couplings: float) -> None:
        self._compare_offset(0.0, 0.0)

    def _sum_fields(self, codes: Array) -> float:
        field = self.array("field")
        if field.size == self.n_states:  # all sites have the same fields
            return float(np.bincount(codes, minlength=self.n_states) @ field)
        fields = 0.0
        for first in range(0, self.n_sites, _SITES):
            part = codes[first : first + _SITES]
            fields += float(field[self.n_states * np.arange(first, first + part.size) + part].sum())
        return fields


@checked
def open_model(path: str | Path, verify: bool = False) -> StoredPairs:
    """Open a stored model.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool
        Compare the checksums of all files. Otherwise all files are read once, too, but only checked for
        impossible content: wrong sizes, unknown neighbours, pairs that are in one row only, numbers that are
        not finite.

    Raises
    ------
    FormatError
        If there is no such model, or if it is damaged.

    Examples
    --------
    >>> import tempfile
    >>> import gibbsite as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gs.formats.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3)
    ...     model = open_model(folder + "/path", verify=True)
    ...     model.n_sites, model.n_edges
    (3, 2)
    """
    folder = Path(path)

    def fail(reason: str) -> FormatError:
        return FormatError(
            f"{folder} holds no stored model: its manifest is damaged ({reason}); make one with gs.formats.store_edges."
        )

    manifest = read_json(_read_manifest(folder, fail), fail)
    if manifest.get("format") != FORMAT or not fits(manifest.get("version"), one_of(*READABLE)):
        raise FormatError(f"{folder} is of another format or version than this gibbsite reads; store the model again.")
    check_header(manifest, _MANIFEST | (_POTTS if "states" in manifest else {}), fail)
    names = {*ARRAYS, *((OFFSET,) if "states" in manifest else ())}
    if set(manifest["files"]) - {WHICH} != names:
        raise fail("it lists other files than it should")
    if manifest["digest"] != identify(manifest):
        raise fail("its own checksum is wrong")
    if manifest.get(CHECKSUM, sum_up(manifest)) != sum_up(manifest):  # earlier versions wrote none
        raise fail("its own checksum is wrong")
    model = (StoredPotts if "states" in manifest else StoredPairs)(folder, manifest)
    model.check(bool(verify))
    return model


_LONGEST_MANIFEST = 1 << 24
# The pattern of a manifest; see gibbsite._common.boundary.fits.
_MANIFEST = {
    "sites": between(1, 2**31 - 1),
    "entries": lambda entries: fits(entries, between(0, 2**62)) and entries % 2 == 0,
    "log_offset": float,
    "files": {str: {"bytes": int, "blake2b": str}},
    "digest": str,
}


def _are_labels(states: Any) -> bool:
    try:
        return isinstance(states, list) and len(read_labels(states, "states")) > 0
    except ModelError:
        return False


_POTTS = {"states": _are_labels}


def _read_manifest(folder: Path, fail: Any) -> bytes:
    file = folder / MANIFEST
    try:
        if not file.is_file() and file.exists():
            raise fail("it is not a regular file")
        with open(file, "rb") as text:
            found = text.read(_LONGEST_MANIFEST + 1)
    except (OSError, ValueError) as reason:
        if isinstance(reason, FormatError):
            raise
        why = getattr(reason, "strerror", None) or "there is no such folder"
        raise FormatError(f"{folder} holds no stored model: {why}; make one with gs.formats.store_edges.") from None
    if len(found) > _LONGEST_MANIFEST:
        raise fail("it is too long")
    return found


def identify(manifest: Mapping[str, Any]) -> str:
    """Return the hash of the checksums of all arrays, and of the states of a Potts model."""
    states = [manifest["states"]] if "states" in manifest else []
    identity = [FORMAT, manifest["version"], manifest["files"], *states]
    return hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=16).hexdigest()


def sum_up(manifest: Mapping[str, Any]) -> str:
    """Return the checksum of all entries of a manifest but the checksum itself."""
    entries = {name: one for name, one in manifest.items() if name != CHECKSUM}
    return hashlib.blake2b(json.dumps(entries, sort_keys=True).encode(), digest_size=16).hexdigest()


def hash_file(path: Path) -> str:
    """Return the checksum of a file."""
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
