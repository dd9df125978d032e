"""The C loops of ``reference.c``: built on first use, called through ctypes."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Agreements, Spins, Tables

SOURCE = Path(__file__).with_name("reference.c")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


class NoCompilerError(RuntimeError):
    """There is no gcc, hence no unit to compare with."""


@functools.cache
def compiler() -> str:
    """Return the path of gcc."""
    found = shutil.which("gcc")
    if found is None:
        raise NoCompilerError(
            "The benchmark compares with loops in C and found no gcc on the PATH; install gcc, or leave "
            "the comparison out with --only memory or --only startup."
        )
    return found


@functools.cache
def compiler_version() -> str:
    """Return the first line gcc prints about itself."""
    done = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def _folders() -> list[Path]:
    """Where the library may be kept, best first."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(cache) / "gibbsite-benchmarks", Path(tempfile.gettempdir()) / "gibbsite-benchmarks"]


def processor() -> str:
    """Return the name of the processor: code for the native machine must not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


@functools.cache
def library() -> ctypes.CDLL:
    """Build the library unless it is there already, and load it."""
    identity = "\0".join((SOURCE.read_text(), compiler_version(), processor(), *FLAGS))
    name = f"reference-{hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()}.so"
    failure: OSError | None = None
    for folder in _folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / name).exists():
                with tempfile.TemporaryDirectory(dir=folder) as scratch:
                    built = Path(scratch) / name
                    subprocess.run([compiler(), *FLAGS, str(SOURCE), "-o", str(built), "-lm"], check=True)
                    os.replace(built, folder / name)  # at once: another run may build it too
            return ctypes.CDLL(str(folder / name))
        except OSError as reason:
            failure = reason
    raise RuntimeError(f"The C reference could not be built in any cache folder: {failure}")


def _pointer(array: NDArray[Any] | None) -> ctypes.c_void_p | None:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def _words(seed: int) -> NDArray[np.uint64]:
    return np.random.SeedSequence(seed).generate_state(4, np.uint64)


class SpinReference:
    """Heat bath on compressed rows; ``spin`` is the state, ``ups`` the counts."""

    def __init__(self, workload: Spins, seed: int = 1) -> None:
        self.start, self.neighbour, self.coupling = workload.rows()
        self.field = np.array(workload.fields, np.float64)
        rng = np.random.default_rng(seed)
        self.spin = (2 * rng.integers(0, 2, workload.n_sites) - 1).astype(np.int8)
        self.words = _words(seed)
        self.ups = np.zeros(workload.n_sites, np.uint32)

    def run(self, sweeps: int, count: bool = False) -> None:
        """Make sweeps; with ``count``, count the ends of all of them."""
        library().spin_sweeps(
            ctypes.c_int64(self.field.size),
            _pointer(self.start),
            _pointer(self.neighbour),
            _pointer(self.coupling),
            _pointer(self.field),
            _pointer(self.spin),
            ctypes.c_int64(sweeps),
            _pointer(self.words),
            _pointer(self.ups if count else None),
        )

    @property
    def codes(self) -> NDArray[np.int64]:
        """The state as codes."""
        return (self.spin.astype(np.int64) + 1) // 2

    def place(self, x: NDArray[Any]) -> None:
        """Stand at a state given as codes."""
        self.spin[:] = 2 * x - 1


class AgreementReference:
    """Heat bath on compressed rows; ``codes`` is the state, ``visits`` the counts by ``cell``."""

    def __init__(self, workload: Agreements, seed: int = 1) -> None:
        self.states = workload.states
        assert self.states <= 256, "see MOST_STATES in reference.c"
        self.start, self.neighbour, self.coupling = workload.rows()
        self.codes = np.zeros(workload.n_sites, np.int32)
        self.words = _words(seed)
        self.cell = self.states * np.arange(workload.n_sites + 1)
        self.visits = np.zeros(int(self.cell[-1]), np.uint32)

    def run(self, sweeps: int, count: bool = False) -> None:
        """Make sweeps; with ``count``, count the states drawn."""
        library().agreement_sweeps(
            ctypes.c_int64(self.codes.size),
            ctypes.c_int32(self.states),
            *map(_pointer, (self.start, self.neighbour, self.coupling, self.codes)),
            ctypes.c_int64(sweeps),
            _pointer(self.words),
            _pointer(self.visits if count else None),
        )

    def place(self, x: NDArray[Any]) -> None:
        """Stand at a state given as codes."""
        self.codes[:] = x


class TableReference:
    """Heat bath on tables of any arity; ``codes`` is the state, ``visits`` the counts by ``cell``."""

    def __init__(self, workload: Tables, seed: int = 1) -> None:
        self.states = np.array(workload.cards, np.int32)
        assert self.states.max(initial=0) <= 256, "see MOST_STATES in reference.c"
        widths, members, strides, bases, values = [], [], [], [], []
        size = 0
        for scopes, tables in workload.groups:
            m, arity = scopes.shape
            tables = np.ascontiguousarray(tables, np.float64)
            each = tables[0].size
            stride = np.array(tables[0].strides) // tables.itemsize
            widths.append(np.full(m, arity, np.int64))
            members.append(scopes.ravel())
            strides.append(np.tile(stride, m))
            bases.append(size + each * np.arange(m, dtype=np.int64))
            values.append(tables.ravel())
            size += m * each
        width = np.concatenate(widths)
        self.member = np.concatenate(members).astype(np.int32)
        self.stride = np.concatenate(strides).astype(np.int32)
        self.table, self.value = np.concatenate(bases), np.concatenate(values)
        self.scope = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
        by_site = np.argsort(self.member, kind="stable")
        self.touched = np.repeat(np.arange(width.size), width)[by_site].astype(np.int32)
        self.step = self.stride[by_site]
        times = np.bincount(self.member, minlength=self.states.size)
        self.first = np.concatenate([[0], np.cumsum(times)]).astype(np.int64)
        self.cell = np.concatenate([[0], np.cumsum(self.states)]).astype(np.int64)
        self.codes = np.zeros(self.states.size, np.int32)
        self.words = _words(seed)
        self.visits = np.zeros(int(self.cell[-1]), np.uint32)

    def run(self, sweeps: int, count: bool = False) -> None:
        """Make sweeps; with ``count``, count the states drawn."""
        library().table_sweeps(
            ctypes.c_int64(self.states.size),
            *map(_pointer, (self.states, self.first, self.touched, self.step, self.scope, self.member)),
            *map(_pointer, (self.stride, self.table, self.value, self.cell, self.codes)),
            ctypes.c_int64(sweeps),
            _pointer(self.words),
            _pointer(self.visits if count else None),
        )

    def place(self, x: NDArray[Any]) -> None:
        """Stand at a state given as codes."""
        self.codes[:] = x


class NormalReference:
    """Gibbs for a normal distribution on compressed rows; ``x`` is the state."""

    def __init__(self, arrays: Any, seed: int = 1) -> None:
        self.start = arrays.start.astype(np.int64)
        self.neighbour = arrays.neighbour.astype(np.int32)
        self.weight, self.center, self.sd = (
            np.ascontiguousarray(part, np.float64) for part in (arrays.weight, arrays.center, arrays.sd)
        )
        self.x = np.zeros(self.sd.size)
        self.words = _words(seed)

    def run(self, sweeps: int) -> None:
        """Make sweeps."""
        library().normal_sweeps(
            ctypes.c_int64(self.sd.size),
            _pointer(self.start),
            _pointer(self.neighbour),
            _pointer(self.weight),
            _pointer(self.center),
            _pointer(self.sd),
            _pointer(self.x),
            ctypes.c_int64(sweeps),
            _pointer(self.words),
        )


class MessageReference:
    """Sum-product messages on tables, laid out as those of gibbsite; in order, or all at once."""

    def __init__(self, graph: Any, order: NDArray[np.int64], at_once: bool = False) -> None:
        assert graph.card.max(initial=0) <= 256, "see MOST_STATES in reference.c"
        assert np.diff(graph.member_start).max(initial=0) <= 9, "see the room for members in reference.c"
        self.graph, self.order = graph, order
        self.message = np.ones(graph.n_numbers)
        self.next = self.message.copy() if at_once else None

    def run(self, sweeps: int) -> None:
        """Update all messages ``sweeps`` times."""
        g = self.graph
        library().message_sweeps(
            ctypes.c_int64(self.order.size),
            *map(_pointer, (self.order, g.site, g.factor, g.stride, g.place, g.start, g.member_start)),
            *map(_pointer, (g.member, g.table, g.value, g.card, g.offset, g.unary, self.message, self.next)),
            ctypes.c_int64(self.message.size),
            ctypes.c_int64(sweeps),
        )
