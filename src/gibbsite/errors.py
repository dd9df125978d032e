"""What can go wrong, as types: every error of gibbsite is a :class:`GibbsiteError`.

A message says what is wrong, where (file, line, site, factor), and what to do about it.
"""

from __future__ import annotations

from typing import Any


class GibbsiteError(Exception):
    """Root of all errors raised on purpose by gibbsite."""


class ModelError(GibbsiteError, ValueError):
    """A model, its evidence or an argument about it does not make sense."""


class IncompatibleError(GibbsiteError, TypeError):
    """Two parts that do not go together, for example a kernel and a graph kind it cannot run on."""


class SupportError(ModelError):
    """No state of positive probability was found, so no chain can start."""


class FormatError(GibbsiteError, ValueError):
    """A file does not follow its format.

    Parameters
    ----------
    message : str
        What was found and what was expected.
    path : str
        The file.
    line, column : int, optional
        Where, counted from 1.
    """

    def __init__(
        self, message: str, path: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        self.path, self.line, self.column = path, line, column
        place = ":".join(str(part) for part in (path, line, column) if part not in ("", None))
        super().__init__(f"{place}: {message}" if place else message)


class UnknownFormatError(FormatError):
    """Nothing tells the format of a file, and it has not been given.

    Parameters
    ----------
    path : str
        The file.
    advice : str
        What to do; ``{}`` stands for the way to give a format.
    way : str
        The way to give a format.
    """

    def __init__(self, path: str, advice: str, way: str = "format=") -> None:
        self.advice = advice
        super().__init__(f"the format cannot be told; {advice.format(way)}.", path)

    def given_by(self, way: str) -> UnknownFormatError:
        """Return the same error for users who give a format in another way."""
        return UnknownFormatError(self.path, self.advice, way)


class TooLargeError(GibbsiteError, MemoryError):
    """An exact or dense method would need more than its limit; the message gives both sizes."""


class SamplingError(GibbsiteError, ArithmeticError):
    """A run met something that makes its numbers wrong, and stopped there.

    Attributes
    ----------
    recording : Recording or None
        What had been recorded before.
    result : Result or None
        The same as a result, if there was at least one draw.
    """

    recording: Any = None
    result: Any = None


class CheckpointError(GibbsiteError, OSError):
    """A checkpoint cannot be written, read, or continued by this run."""


class ConvergenceWarning(UserWarning):
    """The chains have not converged: treat the numbers as a lead, not an answer."""
