"""Binary quadratic models in the binary files of dimod (``.bqm``), without dimod.

A file defines an energy, and the model is ``p(x) ~ exp(-beta * E(x))``, as in `bqm`. It contains the word
DIMODBQM, two bytes of version, four of header length, a JSON header, the offset, (first neighbour, bias) of each
variable, the (neighbour, bias) pairs of each variable, and the names.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Array, Floats, Ints, Ints32
from gibbsite.formats.objects.bqm import IsingTerms, energy_of, model_in
from gibbsite.formats.parsing.text import PathLike, Source, load, save
from gibbsite.formats.registry import register, states_are_bits_or_spins
from gibbsite.models.factorgraph import FactorGraph

MAGIC = b"DIMODBQM"
_BIASES = ("float64", "float32")
_INDICES = ("int64", "int32", "uint64", "uint32")


@checked
def read_bqm(path: PathLike, *, beta: float = 1.0) -> FactorGraph:
    """Read a file written by ``dimod.BinaryQuadraticModel.to_file``.

    Parameters
    ----------
    path : str or path
        The file, plain or gzip; ``"-"`` is standard input.
    beta : float
        Inverse temperature: ``p(x) ~ exp(-beta * E(x))``.

    Returns
    -------
    FactorGraph
        As from `gibbsite.formats.from_bqm`.

    Raises
    ------
    FormatError
        When the file is not such a file, or damaged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsite.models import ising
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "pair.bqm")
    ...     write_bqm(ising([[0, 0.5], [0.5, 0]]), path)
    ...     read_bqm(path).log_potential({"0": 1, "1": 1})
    0.5
    """
    return parse_bqm(load(path, magic=MAGIC), beta=beta)


def parse_bqm(source: Source, *, beta: float = 1.0) -> FactorGraph:
    """Return the model in the content of a file."""
    data = source.data
    if not data.startswith(MAGIC):
        raise source.error("this is not a file of a dimod binary quadratic model; expected DIMODBQM first.")
    if len(data) < 14:
        raise source.error("the file ends in its header.")
    major, minor, length = struct.unpack_from("<BBI", data, 8)
    if major not in (1, 2):
        raise source.error(f"the file has version {major}.{minor}; expected 1 or 2.")
    header = _json(source, data[14 : 14 + length])
    if not isinstance(header, dict):
        raise source.error("expected a JSON object as header.")
    shape: Any = header.get("shape")
    vartype = header.get("vartype")
    whole = isinstance(shape, list) and len(shape) == 2 and all(type(count) is int for count in shape)
    if not whole or min(shape) < 0:
        raise source.error("expected the numbers of variables and interactions as shape in the header.")
    if vartype not in ("SPIN", "BINARY"):
        raise source.error(f"the file has the vartype {vartype!r}; expected 'SPIN' or 'BINARY'.")
    n, m = shape
    bias = _dtype(source, header, "dtype", _BIASES)
    first = np.dtype([("start", _dtype(source, header, "ntype", _INDICES)), ("bias", bias)])
    other = np.dtype([("site", _dtype(source, header, "itype", _INDICES)), ("bias", bias)])
    at = 14 + length
    needed = bias.itemsize + n * first.itemsize + (2 * m * other.itemsize if n else 0)
    if len(data) - at < needed:
        raise source.error(f"the file ends too early; expected {needed:,} bytes of biases.")
    offset = float(np.frombuffer(data, bias, 1, at)[0])
    linear = np.frombuffer(data, first, n, at + bias.itemsize)
    neighbours = np.frombuffer(data, other, 2 * m if n else 0, at + bias.itemsize + linear.nbytes)
    variables = _variables(source, header.get("variables"), major, at + needed, n)
    pairs, biases = _lower_triangle(source, linear["start"].astype(np.int64), neighbours)
    terms = IsingTerms(linear["bias"].astype(np.float64), pairs, biases, offset)
    return model_in(source, variables, vartype, terms, beta)


def _lower_triangle(source: Source, starts: Ints, neighbours: Array) -> tuple[Ints32, Floats]:
    """Return each interaction once; the file has it with both variables."""
    degrees = np.diff(starts, append=len(neighbours))
    sites = neighbours["site"].astype(np.int64)
    if (degrees < 0).any() or (len(starts) and starts[0] != 0):
        raise source.error("the neighbourhoods of the variables overlap.")
    if len(sites) and not 0 <= sites.min() <= sites.max() < len(starts):
        raise source.error(f"an interaction names a variable outside of 0 to {len(starts) - 1}.")
    rows = np.repeat(np.arange(len(starts)), degrees)
    if (rows == sites).any():
        raise source.error("a variable interacts with itself.")
    below = sites < rows
    if 2 * np.count_nonzero(below) != len(sites):
        raise source.error("expected every interaction twice, once with each of its variables.")
    pairs = np.stack([rows[below], sites[below]], axis=1).astype(np.int32)
    return pairs, neighbours["bias"][below].astype(np.float64)


def _variables(source: Source, given: Any, major: int, at: int, n: int) -> list[Any]:
    names: Any = given
    if major == 2:
        if not given:
            return list(range(n))
        data = source.data
        if data[at : at + 4] != b"VARS" or len(data) < at + 8:
            raise source.error("expected the names of the variables after the biases.")
        (length,) = struct.unpack_from("<I", data, at + 4)
        names = _json(source, data[at + 8 : at + 8 + length])
    if not isinstance(names, list) or len(names) != n:
        raise source.error(f"expected a list of {n} names of variables.")
    return [_name(source, name) for name in names]


def _name(source: Source, name: Any, depth: int = 0) -> Any:
    """Return a name as dimod has it: lists stand for tuples."""
    if isinstance(name, list) and depth < 9:
        return tuple(_name(source, part, depth + 1) for part in name)
    if isinstance(name, (dict, list)):
        raise source.error("expected names of variables that are texts, numbers or lists of them.")
    return name


def _json(source: Source, data: bytes) -> Any:
    try:
        return json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        raise source.error("the header or the names in this file are damaged: this is not JSON.") from None


def _dtype(source: Source, header: dict[str, Any], key: str, known: tuple[str, ...]) -> np.dtype[Any]:
    name = header.get(key)
    if name not in known:
        raise source.error(f"the header has the {key} {name!r}; expected one of {', '.join(known)}.")
    dtype: np.dtype[Any] = np.dtype(name).newbyteorder("<")
    return dtype


@checked
def write_bqm(model: FactorGraph, path: PathLike, *, beta: float = 1.0) -> None:
    """Write a model of two-state sites and at most pairwise factors as dimod would.

    Parameters
    ----------
    model : FactorGraph
        Every site has two states, no factor more than two sites, no potential is zero.
    path : str or path
        The file, packed if it ends in ``.gz``.
    beta : float
        Inverse temperature: the energy is ``-log_potential / beta``.

    Raises
    ------
    IncompatibleError
        When the model is not of that kind.
    """
    save(path, format_bqm(model, beta=beta))


def format_bqm(model: FactorGraph, *, beta: float = 1.0) -> bytes:
    """Return a model as the content of a file."""
    vartype, terms = energy_of(model, beta)
    n, m = model.n_sites, len(terms.pairs)
    rows = np.concatenate([terms.pairs[:, 0], terms.pairs[:, 1]])
    sites = np.concatenate([terms.pairs[:, 1], terms.pairs[:, 0]])
    order = np.lexsort((sites, rows))
    starts = np.searchsorted(rows[order], np.arange(n))
    ntype = "int32" if 2 * m < 2**31 else "int64"
    linear = np.empty(n, [("start", np.dtype(ntype).newbyteorder("<")), ("bias", "<f8")])
    linear["start"], linear["bias"] = starts, terms.fields
    neighbours = np.empty(2 * m, [("site", "<i4"), ("bias", "<f8")])
    neighbours["site"], neighbours["bias"] = sites[order], np.tile(terms.couplings, 2)[order]
    names = list(model.sites)
    indexed = all(name == str(k) for k, name in enumerate(names))
    header = json.dumps(
        {
            "shape": [n, m],
            "dtype": "float64",
            "itype": "int32",
            "ntype": ntype,
            "vartype": vartype,
            "type": "BinaryQuadraticModel",
            "variables": not indexed,
        },
        sort_keys=True,
    )
    head = _padded(header.encode("ascii") + b"\n", 14)
    parts = [MAGIC, struct.pack("<BBI", 2, 0, len(head)), head, struct.pack("<d", terms.offset)]
    parts += [linear.tobytes(), neighbours.tobytes()]
    if not indexed:
        body = _padded(json.dumps(names).encode("ascii"), 8)
        parts += [b"VARS", struct.pack("<I", len(body)), body]
    return b"".join(parts)


def _padded(data: bytes, before: int) -> bytes:
    """Return data with blanks up to the next multiple of 64 bytes."""
    return data + b" " * (-(before + len(data)) % 64)


register(
    name="bqm",
    suffixes=(".bqm",),
    parse=parse_bqm,
    write=write_bqm,
    recognise=lambda data: data.startswith(MAGIC),
    magic=MAGIC,
    keeps_states=states_are_bits_or_spins,
)
