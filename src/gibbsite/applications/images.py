"""Grey images as files: PNG, JPEG, TIFF and what else Pillow knows."""

from __future__ import annotations

import os
import sys
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gibbsite.errors import FormatError, IncompatibleError, UnknownFormatError
from gibbsite.formats.parsing.text import PathLike, save


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise IncompatibleError(
            "Image files need Pillow, which is not installed; run: pip install gibbsite[images]"
        ) from None
    return Image


def read_image(path: PathLike) -> NDArray[Any]:
    """Read an image file as an array (height, width); colours become grey, transparency is ignored.

    Parameters
    ----------
    path : str or path
        The file; ``"-"`` is standard input.

    Returns
    -------
    array
        bool for 1-bit, uint8 for 8-bit, uint16 for 16-bit and float32 for floating-point images.

    Raises
    ------
    FormatError
        When there is no such file or it is not an image.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "dots.png")
    ...     write_image(np.array([[0, 255], [128, 7]], np.uint8), path)
    ...     read_image(path).tolist()
    [[0, 255], [128, 7]]
    """
    pillow, name = _pillow(), os.fspath(path)
    file: Any = path
    if path == "-":
        name, file = "<stdin>", BytesIO(sys.stdin.buffer.read())
    try:
        with pillow.open(file) as image:
            image.load()
            # 32-bit integers: how Pillow reads some 16-bit files
            if image.mode not in ("1", "L", "F", "I", "I;16", "I;16B"):
                image = image.convert("L")
            pixels = np.asarray(image)
    except FileNotFoundError:
        raise FormatError("there is no such file.", name) from None
    except IsADirectoryError:
        raise FormatError("this is a directory; expected an image file.", name) from None
    except pillow.UnidentifiedImageError:
        raise FormatError("this is not an image, or of an unknown format.", name) from None
    except pillow.DecompressionBombError:
        raise FormatError("the image is too large.", name) from None
    # what is broken inside a file: Pillow's plugins let many kinds of errors out
    except (OSError, SyntaxError, ValueError, EOFError) as reason:
        raise FormatError(
            f"the image cannot be read: {str(reason) or type(reason).__name__}.", name
        ) from None
    if pixels.dtype.kind == "i":
        if pixels.min(initial=0) < 0 or pixels.max(initial=0) > 65535:
            raise FormatError("the image has more than 16 bits per pixel; save it with fewer.", name)
        pixels = pixels.astype(np.uint16)
    return pixels.astype(pixels.dtype.newbyteorder("="))


def write_image(image: NDArray[Any], path: PathLike) -> None:
    """Write an array (height, width) as an image file; the suffix is the format.

    Parameters
    ----------
    image : array
        bool (1 bit; 8 bits, 0 and 255, in a JPEG file), uint8, uint16 (PNG and TIFF) or float32 (TIFF).
    path : str or path
        The file, replaced only when all of the image has been written; ``"-"`` is standard output, which gets
        a PNG file.

    Raises
    ------
    FormatError
        When the format is unknown, cannot hold the image, or the file cannot be written.
    """
    save(path, encode_image(image, path))


def encode_image(image: NDArray[Any], path: PathLike) -> bytes:
    """Return the bytes of the file :func:`write_image` writes.

    Examples
    --------
    >>> encode_image(np.zeros((2, 2), np.uint8), "dots.png")[1:4]
    b'PNG'
    """
    pillow, name = _pillow(), os.fspath(path)
    suffix = ".png" if path == "-" else os.path.splitext(name)[1].lower()
    kind = pillow.registered_extensions().get(suffix)
    if kind is None:
        advice = "end the name in .png, .jpg, .tif or another that Pillow knows"
        raise UnknownFormatError(name, advice, writing=True)
    if kind == "JPEG" and image.dtype == bool:
        image = image.astype(np.uint8) * np.uint8(255)
    if image.dtype == np.float64:
        image = image.astype(np.float32)
    file = BytesIO()
    try:
        pillow.fromarray(np.ascontiguousarray(image)).save(file, kind)
    except (OSError, KeyError, ValueError) as reason:
        said = getattr(reason, "strerror", None) or str(reason)
        raise FormatError(f"the image cannot be written: {said}.", name) from None
    return file.getvalue()
