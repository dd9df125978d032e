r"""The file of a recogniser: a line that says what it is, a version, a checksum, and packed data; no pickles.

gibbsite-ner 1 <sha256 of the rest>\n
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
_MAGIC = b"gibbsite-ner "


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return header and arrays as the content of a file.

    Examples
    --------
    >>> data = pack({"name": "x"}, {"numbers": np.arange(3)})
    >>> header, arrays = unpack(data, "x.ner")
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
    return _MAGIC + f"{VERSION} {hashlib.sha256(packed).hexdigest()}\n".encode() + packed


def unpack(data: bytes, name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return header and arrays; refuse other files, other versions and damaged ones."""
    line, newline, packed = data.partition(b"\n")
    words = line.split(b" ")
    if not data.startswith(_MAGIC) or not newline or len(words) != 3:
        raise FormatError("this is no model of gibbsite ner; make one with: gibbsite ner train.", name)
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
            kind = np.dtype(how["dtype"])
            many = int(np.prod(how["shape"], dtype=np.int64))
            arrays[key] = np.frombuffer(plain, kind, many, at).reshape(how["shape"]).copy()
            at += many * kind.itemsize
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the model is damaged ({error!r:.80}); fetch or train it again.", name) from None
    return header, arrays


def write_file(path: PathLike, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a recogniser."""
    save(path, pack(header, arrays))


def read_file(path: PathLike) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a recogniser."""
    source = load(path, text=False)
    return unpack(source.data, source.name)
