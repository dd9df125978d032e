r"""Files of trained models: a line that says what it is, a version, a checksum, and packed data; no pickles.

gibbsite-KIND 1 <sha256 of the rest>\n <zlib: length of the header (8 bytes), header (JSON), arrays one after the other>
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from gibbsite._common import boundary
from gibbsite._common.arrays import Array
from gibbsite.errors import FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike, load, save, shortened

VERSION = 1
#: Says which arrays belong to a header.
Expect: TypeAlias = Callable[[dict[str, Any]], Mapping[str, boundary.Wanted]]


def pack(kind: str, header: dict[str, Any], arrays: dict[str, Array]) -> bytes:
    """Return header and arrays as the content of a file; the kind is the command that reads it."""
    described, body = {}, b""
    for name, array in sorted(arrays.items()):
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        described[name] = {"dtype": little.dtype.str, "shape": list(little.shape)}
        body += little.tobytes()
    text = json.dumps({**header, "arrays": described}, ensure_ascii=False, sort_keys=True).encode()
    packed = zlib.compress(len(text).to_bytes(8, "little") + text + body, 9)
    return f"gibbsite-{kind} {VERSION} {hashlib.sha256(packed).hexdigest()}\n".encode() + packed


def unpack(
    kind: str, data: bytes, name: str, pattern: Mapping[str, Any], expect: Expect
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays; refuse other files, other versions, damaged ones, and what is not expected.

    ``pattern`` is what the header must be (see :func:`gibbsite._common.boundary.fits`); ``expect`` says, given
    a header of that form, which arrays there are. Nothing is unpacked before its size is known.
    """
    line, newline, packed = data.partition(b"\n")
    words = line.split(b" ")
    if not data.startswith(f"gibbsite-{kind} ".encode()) or not newline or len(words) != 3:
        raise FormatError(f"this is no model of gibbsite {kind}; make one with: gibbsite {kind} train.", name)
    if words[1] != str(VERSION).encode():
        said = words[1].decode("ascii", "replace")
        raise FormatError(
            f"the model has version {said:.20}, and this gibbsite reads version {VERSION}; train it again.", name
        )
    if hashlib.sha256(packed).hexdigest().encode() != words[2]:
        raise FormatError("the model is damaged (its checksum is wrong); fetch or train it again.", name)

    def fail(reason: str) -> FormatError:
        return FormatError(f"the model is damaged: {shortened(reason)}; fetch or train it again.", name)

    body = _Unpacking(packed, fail)
    size = int.from_bytes(body.take(8), "little")
    boundary.check_text_growth(size, len(packed), fail)
    header = boundary.read_json(body.take(size), fail)
    boundary.check_header(
        header, {"arrays": {str: {"dtype": str, "shape": [boundary.between(0, 1 << 48)]}}, **pattern}, fail
    )
    described = header.pop("arrays")
    try:
        wanted = expect(header)
    except ModelError as error:  # what the header says makes no sense
        raise fail(str(error).rstrip(".")) from None
    arrays, sizes = {}, dict[str, int]()
    total = 8 + size
    for key, how in described.items():
        if key not in wanted:
            raise fail(f"it has an array {key!r}, which no such model has")
        types = {one.newbyteorder("<").str: one for one in wanted[key].dtypes}
        if how["dtype"] not in types:
            raise fail(f"its array {key} has numbers of type {how['dtype']!r:.20}")
        dtype, shape = types[how["dtype"]], tuple(how["shape"])
        boundary.check_description(key, dtype, shape, wanted[key], sizes, fail)
        total += math.prod(shape) * dtype.itemsize
        boundary.check_growth(total, len(packed), fail)
    for key, how in described.items():
        shape = tuple(how["shape"])
        little = np.dtype(how["dtype"])
        content = body.take(math.prod(shape) * little.itemsize)
        found = np.frombuffer(content, little).reshape(shape)
        arrays[key] = np.array(found, little.newbyteorder("="))
    body.finish()
    return header, boundary.admit(arrays, wanted, fail)


class _Unpacking:
    """Packed data, unpacked as far as they are asked for."""

    def __init__(self, packed: bytes, fail: boundary.Fail) -> None:
        self.machine, self.left, self.fail = zlib.decompressobj(), packed, fail

    def take(self, size: int) -> bytes:
        """Return the next bytes; refuse where there are fewer."""
        parts = []
        while size and (part := self._next(size)):
            parts.append(part)
            size -= len(part)
        if size:
            raise self.fail("its data end too early")
        return b"".join(parts)

    def finish(self) -> None:
        """Refuse what stands behind the end."""
        if self._next(1) or not self.machine.eof or self.machine.unused_data:
            raise self.fail("it holds more data than its header says")

    def _next(self, most: int) -> bytes:
        try:
            part = self.machine.decompress(self.left, most)
        except zlib.error:
            raise self.fail("its data cannot be unpacked") from None
        self.left = self.machine.unconsumed_tail
        return part


def write_file(kind: str, path: PathLike, header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a model."""
    save(path, pack(kind, header, arrays))


def read_file(
    kind: str, path: PathLike, pattern: Mapping[str, Any], expect: Expect
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a model; see :func:`unpack`."""
    source = load(path, magic=f"gibbsite-{kind} ".encode())
    return unpack(kind, source.data, source.name, pattern, expect)
