"""Image files in all formats of Pillow, such as PNG, JPEG and TIFF, and conversion of pixels to numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import Any, TypeVar

import numpy as np

from gibbsite._common.arguments import checked, describe, is_numeric
from gibbsite._common.arrays import Array, Bytes, Floats, Ints16
from gibbsite._common.wording import missing
from gibbsite.errors import FormatError, IncompatibleError, ModelError, UnknownFormatError
from gibbsite.formats.parsing.text import PathLike, save

T = TypeVar("T")


def need_pillow() -> Any:
    """Return Pillow; raise an error that says how to install it if it is missing."""
    try:
        from PIL import Image
    except ImportError:
        raise IncompatibleError(missing("Image files need", "Pillow", "images")) from None
    return Image


@checked
def read_image(path: PathLike) -> Array:
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
        If the file does not exist or is not an image.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "dots.png")
    ...     write_image(np.array([[0, 255], [128, 7]], np.uint8), path)
    ...     read_image(path).tolist()
    [[0, 255], [128, 7]]
    """
    pixels = _load(path, _grey)
    if pixels.dtype.kind == "i":
        if pixels.min(initial=0) < 0 or pixels.max(initial=0) > 65535:
            raise FormatError("the image has more than 16 bits per pixel; save it with fewer.", _name(path))
        pixels = pixels.astype(np.uint16)
    return pixels.astype(pixels.dtype.newbyteorder("="))


def read_photograph(path: PathLike) -> Bytes:
    """Read an image file as upright 8-bit colours.

    Grey becomes three equal channels, and a palette its colours; transparency is ignored. Grey values of more than 8
    bits are rescaled to the range from their minimum to their maximum. The EXIF orientation is applied.

    ``path``: the file; ``"-"`` is standard input. The result has the shape (height, width, 3).

    Raises
    ------
    FormatError
        If the file does not exist or is not an image.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "dots.png")
    ...     write_image(np.array([[0, 255]], np.uint8), path)
    ...     read_photograph(path).tolist()
    [[[0, 0, 0], [255, 255, 255]]]
    """
    pixels = _load(path, _coloured)
    return as_photograph(pixels) if pixels.ndim == 2 else pixels


def as_photograph(pixels: Array) -> Bytes:
    """Return an array of any kind of pixels as colours of 8 bits.

    ``pixels`` (height, width, channels): bool, whole numbers or floats; one channel is grey, two are grey and
    transparency, three are red, green and blue, and four also have transparency, which is ignored. Values of other
    types than 8 bits are rescaled to the range from minimum to maximum, except floats between 0 and 1 (1 is white).
    """
    if not is_numeric(pixels):
        raise ModelError(f"the image must be an array of bool, whole numbers or floats, got {describe(pixels)}.")
    pixels = np.asarray(pixels)
    if pixels.ndim not in (2, 3) or not pixels.size or (pixels.ndim == 3 and pixels.shape[2] > 4):
        raise ModelError(f"the image must have a height, a width and up to 4 channels, got shape {pixels.shape}.")
    if pixels.ndim == 3:
        pixels = pixels[..., 0] if pixels.shape[2] < 3 else pixels[..., :3]
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        if not np.isfinite([low, high]).all():
            raise ModelError("the image has pixels that are not finite; replace them first.")
        if pixels.dtype.kind == "f" and low >= 0.0 and high <= 1.0:
            low, high = 0.0, 1.0
        elif pixels.dtype.kind in "iu" and low >= 0.0 and high <= 255.0:
            low, high = 0.0, 255.0
        scale = 255.0 / (high - low) if high > low else 0.0
        pixels = np.floor((pixels.astype(np.float64) - low) * scale + 0.5).astype(np.uint8)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    return np.ascontiguousarray(pixels)


def read_strokes(path: PathLike) -> tuple[Bytes, tuple[int, int, int] | None]:
    """Read an image file as colours with transparency, and the colour that value 0 of its palette has.

    Returns
    -------
    uint8 array (height, width, 4)
        Red, green, blue and opacity.
    tuple of int or None
        The first colour of the palette, None if there is no palette.
    """
    return _load(path, _strokes)


def _grey(image: Any) -> Array:
    # Pillow reads some 16-bit files as 32-bit integers
    plain = image.mode in ("1", "L", "F", "I", "I;16", "I;16B")
    return np.asarray(image if plain else image.convert("L"))


def _coloured(image: Any) -> Array:
    from PIL import ImageOps

    image = ImageOps.exif_transpose(image)
    return np.asarray(image if image.mode in ("F", "I", "I;16", "I;16B") else image.convert("RGB"))


def _strokes(image: Any) -> tuple[Bytes, tuple[int, int, int] | None]:
    from PIL import ImageOps

    palette = image.getpalette() if image.mode == "P" else None
    first = (palette[0], palette[1], palette[2]) if palette else None
    return np.asarray(ImageOps.exif_transpose(image).convert("RGBA")), first


def _name(path: PathLike) -> str:
    return "<stdin>" if path == "-" else os.fspath(path)


def _load(path: PathLike, convert: Callable[[Any], T]) -> T:
    """Open an image file and convert it by a function."""
    pillow, name = need_pillow(), _name(path)
    file: Any = BytesIO(sys.stdin.buffer.read()) if path == "-" else path
    try:
        with pillow.open(file) as image:
            image.load()
            return convert(image)
    except FileNotFoundError:
        raise FormatError("there is no such file.", name) from None
    except IsADirectoryError:
        raise FormatError("this is a directory; expected an image file.", name) from None
    except pillow.UnidentifiedImageError:
        raise FormatError("this is not an image, or its format is unknown.", name) from None
    except pillow.DecompressionBombError:
        raise FormatError("the image is too large.", name) from None
    # Pillow's plugins raise many kinds of errors for damaged files
    except (OSError, SyntaxError, ValueError, EOFError) as reason:
        raise FormatError(f"the image cannot be read: {str(reason) or type(reason).__name__}.", name) from None


@checked
def write_image(image: Array, path: PathLike) -> None:
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
        If the format is unknown or cannot hold the image, or the file cannot be written.
    """
    save(path, encode_image(np.asarray(image), path))


def encode_image(image: Array, path: PathLike) -> bytes:
    """Return the content of the file that :func:`write_image` writes."""
    pillow, name = need_pillow(), os.fspath(path)
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
    except (OSError, KeyError, ValueError, TypeError) as reason:
        said = getattr(reason, "strerror", None) or str(reason)
        raise FormatError(f"the image cannot be written: {said}.", name) from None
    return file.getvalue()


@dataclass(frozen=True, eq=False)
class Pixels:
    """An image as numbers."""

    values: Floats  # (height, width): the pixels, in the units of the image
    kind: np.dtype[Any]  # type of the pixels of the image
    low: float  # smallest and largest pixel
    high: float

    @cached_property
    def top(self) -> float:
        """The value of white: the largest 8- or 16-bit number if pixels are such numbers, in any type; otherwise 1."""
        if self.kind in (np.uint8, np.uint16):
            return float(np.iinfo(self.kind).max)
        for white in (255.0, 65535.0):
            if self.low >= 0.0 and 0.5 * white < self.high <= white:
                return white if (self.values == np.rint(self.values)).all() else 1.0
        return 1.0

    @property
    def counted(self) -> bool:
        """Whether pixels are 8- or 16-bit numbers, which are clipped at black and white."""
        return self.top > 1.0

    @property
    def two_valued(self) -> bool:
        """Whether there are at most two values."""
        v = self.values
        return bool(((v == self.low) | (v == self.high)).all())

    @property
    def pair(self) -> tuple[float, float]:
        """The two values of a two-valued image; if there is only one, that value and a second level."""
        if self.low < self.high:
            return self.low, self.high
        return (0.0, self.top) if self.low in (0.0, self.top) else (self.low - 1.0, self.low)

    def like(self, values: Floats) -> Array:
        """Return numbers as pixels in the type of the image."""
        if self.kind == np.bool_:
            return values > 0.5
        if self.kind.kind in "iu":
            limits = np.iinfo(self.kind)
            return np.clip(np.rint(values), limits.min, limits.max).astype(self.kind)
        return values.astype(self.kind)


def read_pixels(image: Any, name: str = "the image") -> Pixels:
    """Check an array and return it as numbers."""
    try:
        array = np.asarray(image)
    except ValueError:
        raise ModelError(f"{name} has rows of unequal length.") from None
    if array.dtype.kind not in "biuf":
        raise ModelError(f"{name} must be an array of bool, whole numbers or floats, got {array.dtype}.")
    if array.ndim == 3:
        raise ModelError(f"{name} is coloured, its shape is {array.shape}; convert it to grey first.")
    if array.ndim != 2 or not array.size:
        raise ModelError(f"{name} must have a height and a width, got shape {array.shape}.")
    values = array.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    if not np.isfinite([low, high]).all():
        raise ModelError(f"{name} has pixels that are not finite; replace them first.")
    return Pixels(values, array.dtype, low, high)


def nearest_level(values: Floats, levels: Floats) -> Ints16:
    """Return which of the equidistant levels is nearest to each pixel."""
    step = levels[1] - levels[0]
    codes: Ints16 = np.clip(np.rint((values - levels[0]) / step), 0, levels.size - 1).astype(np.int16)
    return codes
