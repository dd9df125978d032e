"""Files of trained models, in the archive format of answers and checkpoints: arrays and a JSON header."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from gibbsite._common.archive import open_archive, pack_archive
from gibbsite._common.arrays import Array
from gibbsite._common.boundary import Wanted, check_header
from gibbsite.errors import FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike, load, save, shortened

MAGIC = b"PK\x03\x04"  # the first bytes of every archive
_VERSION = 1
#: Returns the arrays that belong to a header.
Expect: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Wanted]]


def pack(kind: str, header: dict[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return header and arrays as the content of a file; ``kind`` is the command that reads it."""
    return pack_archive({"kind": f"gibbsite {kind}", "format": _VERSION, **header}, arrays)


def unpack(
    kind: str, data: bytes, name: str, pattern: Mapping[str, Any], expect: Expect
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and arrays; refuse files of another kind or version, damaged ones, and unexpected content.

    ``pattern`` is compared with the header (see :func:`gibbsite._common.boundary.fits`); ``expect`` returns the arrays
    that belong to a header of that form.
    """

    def fail(reason: str) -> FormatError:
        return FormatError(f"the model is damaged: {shortened(reason)}; fetch or train it again.", name)

    other = FormatError(f"this is not a model of gibbsite {kind}; make one with: gibbsite {kind} train.", name)
    if not data.startswith(MAGIC):
        raise other
    with open_archive(data, fail) as archive:
        header = archive.header()
        if header.get("kind") != f"gibbsite {kind}":
            raise other
        if (version := header.get("format")) != _VERSION:
            raise FormatError(
                f"the model has version {version!r:.20}, and this gibbsite reads version {_VERSION}; train it again.",
                name,
            )
        check_header(header, pattern, fail)
        try:
            wanted = expect(header)
        except ModelError as error:  # the header is well-formed but contradicts itself
            raise fail(str(error).rstrip(".")) from None
        for unexpected in set(archive.names) - set(wanted):
            raise fail(f"it has an unexpected array {unexpected!r:.80}")
        return header, archive.admit(wanted)


def write_file(kind: str, path: PathLike, header: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write a model."""
    save(path, pack(kind, header, arrays))


def read_file(
    kind: str, path: PathLike, pattern: Mapping[str, Any], expect: Expect
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read a model; see :func:`unpack`."""
    source = load(path, magic=MAGIC)
    return unpack(kind, source.data, source.name, pattern, expect)
