"""Ising and Potts models in files that need not fit into memory: rows of neighbours, mapped as they are read.

A stored model is a folder: a manifest with sizes and checksums, and arrays in NumPy's own format. Sweeps in
the order of the sites read them from beginning to end.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.model.base import Model
from gibbsite.model.domain import Domains, SiteNames

MANIFEST = "manifest.json"
FORMAT = "gibbsite-pairs"
#: Version 2: couplings that are all equal are kept once; 3: few distinct ones are, too, and a byte for each
#: entry says which of them it has; 4: Potts models. A model is of the lowest version that can hold it.
READABLE = (1, 2, 3, 4)
#: Names of the arrays: rows of compressed neighbours, couplings, and a field for each site.
ARRAYS = ("start", "neighbour", "coupling", "field")
#: Of the array of version 3: which coupling an entry has.
WHICH = "which"
#: Of the array of Potts models: where the states of each site begin among those of all.
OFFSET = "offset"
_PIECE = 1 << 24  # bytes read at a time
_SITES = 1 << 18  # whose rows are read at a time


class StoredPairs(Model):
    """An Ising model in a folder, made by :func:`gibbsite.store_edges` and opened by :func:`open_model`.

    Sites are numbers, ``"0"``, ``"1"``, ..., with states -1 and 1. Nothing but the states of the chains and
    what is recorded of them is held in memory; batches of marginals are best left out
    (``gs.Marginals(batches=False)``).
    """

    _combine: Any = np.multiply  # what a coupling counts for, given the states of its sites

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest
        self.structure: dict[str, Any] = {}
        labels = tuple(manifest.get("states", (-1, 1)))
        self._domains = Domains(SiteNames(int(manifest["sites"])), (labels,), np.zeros(0, np.int32))

    @property
    def domains(self) -> Domains:
        """Names and states of the sites."""
        return self._domains

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
        """How couplings are kept: ``"equal"``, ``"5 distinct"``, or ``"a float for each"``."""
        kept = int(np.load(self.path / "coupling.npy", mmap_mode="r").size)
        if self.coded:
            return f"{kept} distinct"
        return "equal" if kept < int(self.manifest["entries"]) else "a float for each"

    @property
    def coded(self) -> bool:
        """Whether couplings are the distinct ones, and another array says which of them an entry has."""
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
        ...     model = gs.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3, field=1.0)
        ...     model.log_potential([1, 1, 0])
        1.0
        """
        codes = np.asarray(x)
        if codes.shape != (self.n_sites,) or not np.isin(codes, np.arange(self.n_states)).all():
            raise ModelError(f"a state of this model is {self.n_sites} codes from 0 to {self.n_states - 1}.")
        codes = codes.astype(np.int16, copy=False)
        # every pair stands in two rows
        return self.log_offset + self._sum_fields(codes) + 0.5 * self._sum_pairs(codes)

    def _sum_fields(self, codes: NDArray[Any]) -> float:
        """Sum what single sites contribute."""
        return float(codes @ self.array("field"))

    def _sum_pairs(self, codes: NDArray[Any]) -> float:
        """Sum couplings times what the states of their sites combine to, over the entries of all rows."""
        start, neighbour, coupling = (self.array(name) for name in ARRAYS[:3])
        which = self.array(WHICH) if self.coded else None
        total = 0.0
        for first in range(0, self.n_sites, _SITES):
            rows = start[first : min(first + _SITES, self.n_sites) + 1].astype(np.int64)
            here = np.repeat(codes[first : first + len(rows) - 1], np.diff(rows))
            part = slice(int(rows[0]), int(rows[-1]))
            weight = coupling[which[part]] if which is not None else coupling[part]
            total += float(self._combine(here, codes[neighbour[part]]) @ weight.astype(np.float64))
        return total

    def observe(self, evidence: Mapping[Any, Any]) -> Model:
        """Refuse: the arrays would have to be written anew."""
        raise IncompatibleError(
            "A stored model cannot fold evidence in; store it without the observed sites, and add what they "
            "contribute to the fields of their neighbours."
        )

    @property
    def lengths(self) -> dict[str, tuple[int, ...]]:
        """How long each array may be."""
        sites, entries = self.n_sites, int(self.manifest["entries"])
        couplings = tuple(range(1, 257)) if self.coded else (1, entries)
        which = {WHICH: (entries,)} if self.coded else {}
        return {
            "start": (sites + 1,),
            "neighbour": (entries,),
            "coupling": couplings,
            "field": (sites,),
            **which,
        }

    def check(self) -> None:
        """Refuse arrays that would let compiled code read beyond their ends.

        Where rows begin is read whole, the neighbours are not: that takes as long as a sweep
        (``open_model(verify=True)``).
        """
        for name, lengths in self.lengths.items():
            file = self.path / f"{name}.npy"
            try:
                good = np.load(file, mmap_mode="r").shape in [(length,) for length in lengths]
            except Exception:  # of a damaged header NumPy may raise anything
                good = False
            if not good:
                raise FormatError(f"{file} is damaged; store the model anew.")
        self._check_steps("start", int(self.manifest["entries"]))

    def _check_steps(self, name: str, last: int, step: int | None = None) -> None:
        """Refuse an array that does not ascend from 0 to ``last``, or not in equal steps."""
        numbers = self.array(name)
        good = bool(numbers[0] == 0 and int(numbers[-1]) == last)
        for first in range(0, self.n_sites, _SITES):
            part = numbers[first : first + _SITES + 1].astype(np.int64)
            steps = np.diff(part)
            good &= bool((steps >= 0).all() if step is None else (steps == step).all())
        if not good:
            raise FormatError(f"{self.path / name}.npy is damaged; store the model anew.")

    def array(self, name: str) -> NDArray[Any]:
        """Return an array, mapped as it is read; a coupling that is that of all pairs, repeated."""
        found = np.asarray(np.load(self.path / f"{name}.npy", mmap_mode="r"))
        entries = int(self.manifest["entries"])
        once = name == "coupling" and not self.coded and found.size < entries
        return np.broadcast_to(found, entries) if once else found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_sites:,} sites, {self.n_edges:,} pairs, {self.path})"


class StoredPotts(StoredPairs):
    """A Potts model in a folder: pairs ask whether their states agree, and states may have fields.

    Otherwise as :class:`StoredPairs`.

    Examples
    --------
    >>> import tempfile
    >>> import gibbsite as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = gs.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3, states=4)
    ...     model.log_potential([3, 3, 0])
    0.5
    """

    _combine: Any = np.equal

    @property
    def lengths(self) -> dict[str, tuple[int, ...]]:
        """How long each array may be."""
        fields = (self.n_states, self.n_sites * self.n_states)
        return {**super().lengths, "field": fields, OFFSET: (self.n_sites + 1,)}

    def check(self) -> None:
        """Refuse arrays that would let compiled code read beyond their ends."""
        super().check()
        self._check_steps(OFFSET, self.n_sites * self.n_states, self.n_states)

    def _sum_fields(self, codes: NDArray[Any]) -> float:
        field = self.array("field")
        if field.size == self.n_states:  # those of all sites
            return float(np.bincount(codes, minlength=self.n_states) @ field)
        fields = 0.0
        for first in range(0, self.n_sites, _SITES):
            part = codes[first : first + _SITES]
            fields += float(field[self.n_states * np.arange(first, first + part.size) + part].sum())
        return fields


def open_model(path: str | Path, verify: bool = False) -> StoredPairs:
    """Open a stored model.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool
        Read everything once and compare checksums; otherwise only sizes are compared.

    Raises
    ------
    FormatError
        If there is no such model, or a damaged one.

    Examples
    --------
    >>> import tempfile
    >>> import gibbsite as gs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = gs.store_edges([([0, 1], [1, 2], 0.5)], folder + "/path", sites=3)
    ...     model = open_model(folder + "/path", verify=True)
    ...     model.n_sites, model.n_edges
    (3, 2)
    """
    if not isinstance(path, str | os.PathLike):
        raise FormatError(f"a folder is named by a text or a path, got {path!r}.")
    folder = Path(path)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        kind = manifest["format"], manifest["version"]
        names = (*ARRAYS, *(name for name in (WHICH, OFFSET) if name in manifest["files"]))
        files = {name: manifest["files"][name] for name in names}
    except (OSError, ValueError, KeyError, TypeError) as reason:
        why = (
            reason.strerror if isinstance(reason, OSError) and reason.strerror else "its manifest is damaged"
        )
        raise FormatError(f"{folder} holds no stored model: {why}; make one with gs.store_edges.") from None
    if kind[0] != FORMAT or kind[1] not in READABLE:
        raise FormatError(
            f"{folder} is of another format or version than this gibbsite reads; store the model anew."
        )
    for name, about in files.items():
        file = folder / f"{name}.npy"
        if not file.exists() or file.stat().st_size != about["bytes"]:
            raise FormatError(f"{file} is missing or has another size than its manifest says; store it anew.")
        if verify and hash_file(file) != about["blake2b"]:
            raise FormatError(f"{file} has changed since it was written; store the model anew.")
    model = (StoredPotts if "states" in manifest else StoredPairs)(folder, manifest)
    model.check()
    return model


def hash_file(path: Path) -> str:
    """Return the checksum of a file."""
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()
