r"""Files of trained models: a line that says what it is, a version, a checksum, and packed data; no pickles.

gibbsite-KIND 1 <sha256 of the rest>\n
<zlib: length of the header (8 bytes), header (JSON), arrays one after the other>
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import PathLike, load, save

VERSION = 1


def pack(kind: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return header and arrays as the content of a file; the kind is the command that reads it.

    Examples
    --------
    >>> data = pack("ner", {"name": "x"}, {"numbers": np.arange(3)})
    >>> header, arrays = unpack("ner", data, "x.ner")
    >>> header["name"], arrays["numbers"].tolist()
    ('x', [0, 1, 2])
    """
    described, body = {}, b""
    for name, array in sorted(arrays.items()):
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        described[name] = {"dtype": little.dtype.str, "shape": list(little.shape)}
        body += little.tobytes()
    text = json.dumps({**header, "arrays": described}, ensure_ascii=False, sort_keys=True).encode()
    packed = zlib.compress(len(text).to_bytes(8, "little") + text + body, 9)
    return f"gibbsite-{kind} {VERSION} {hashlib.sha256(packed).hexdigest()}\n".encode() + packed


def unpack(kind: str, data: bytes, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays; refuse other files, other versions and damaged ones."""
    line, newline, packed = data.partition(b"\n")
    words = line.split(b" ")
    if not data.startswith(f"gibbsite-{kind} ".encode()) or not newline or len(words) != 3:
        raise FormatError(f"this is no model of gibbsite {kind}; make one with: gibbsite {kind} train.", name)
    if words[1] != str(VERSION).encode():
        said = words[1].decode("ascii", "replace")
        raise FormatError(
            f"the model has version {said:.20}, and this gibbsite reads version {VERSION}; train it again.",
            name,
        )
    if hashlib.sha256(packed).hexdigest().encode() != words[2]:
        raise FormatError("the model is damaged (its checksum is wrong); fetch or train it again.", name)
    try:
        plain = zlib.decompress(packed)
        size = int.from_bytes(plain[:8], "little")
        header: dict[str, Any] = json.loads(plain[8 : 8 + size])
        arrays, at = {}, 8 + size
        for key, how in header.pop("arrays").items():
            dtype = np.dtype(how["dtype"])
            many = int(np.prod(how["shape"], dtype=np.int64))
            arrays[key] = np.frombuffer(plain, dtype, many, at).reshape(how["shape"]).copy()
            at += many * dtype.itemsize
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the model is damaged ({error!r:.80}); fetch or train it again.", name) from None
    return header, arrays


def write_file(kind: str, path: PathLike, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a model."""
    save(path, pack(kind, header, arrays))


def read_file(kind: str, path: PathLike) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a model."""
    source = load(path, text=False)
    return unpack(kind, source.data, source.name)
