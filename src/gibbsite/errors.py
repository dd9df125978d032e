"""The exceptions of gibbsite, all of them a :class:`GibbsiteError`.

A message says what is wrong, where (file, line, site, factor), and what to do about it. It is a
:class:`gibbsite._common.wording.Text`: the arguments and kernels it names can be spelled as options of the command
line.
"""

from __future__ import annotations

from typing import Any, Self

from gibbsite._common.wording import Text, escaped

__all__ = [
    *("ArgumentError", "CheckpointError", "ConvergenceWarning", "FormatError", "GibbsiteError", "IncompatibleError"),
    *("ModelError", "SamplingError", "SupportError", "TooLargeError", "UnknownFormatError"),
]


class GibbsiteError(Exception):
    """Root of all errors raised on purpose by gibbsite."""

    def __init__(self, message: str = "") -> None:
        super().__init__(Text(escaped(getattr(message, "marked", message), keep="\n\t")))

    @property
    def text(self) -> Text:
        """The message, with marks around the arguments and kernels that it names."""
        return Text(self.args[0] if self.args else "")


class ModelError(GibbsiteError, ValueError):
    """A model or its evidence does not make sense."""


class ArgumentError(ModelError):
    """An argument of a function does not make sense: a number out of range, an unknown name, a wrong type.

    Mistakes in the parts of a model are a plain :class:`ModelError`. This class is derived from it, so programs that
    catch a `ModelError`, or a `ValueError`, catch both. On the command line they have the exit codes 2 and 3.

    Attributes
    ----------
    arguments : tuple of str
        Names of the arguments that the message is about.

    Examples
    --------
    >>> import gibbsite as gs
    >>> try:
    ...     gs.sample(gs.ising_grid((3, 3)), chains=0)
    ... except gs.errors.ArgumentError as error:
    ...     print(error.arguments, error)
    ('chains',) chains must be a whole number of at least 1, got 0.
    """

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that the message is about."""
        return self.text.arguments


class IncompatibleError(GibbsiteError, TypeError):
    """Two parts cannot be used together, for example a kernel and a graph kind that it does not support."""


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

    def __init__(self, message: str, path: str = "", line: int | None = None, column: int | None = None) -> None:
        self.path, self.line, self.column = path, line, column
        place = ":".join(str(part) for part in (path, line, column) if part not in ("", None))
        super().__init__(f"{place}: {message}" if place else message)


class UnknownFormatError(FormatError):
    """The format of a file was not given and cannot be recognised.

    Parameters
    ----------
    path : str
        The file.
    advice : str
        What to do; ``{}`` is replaced by ``way``.
    way : str
        How users give a format.
    writing : bool
        The file is to be written.
    """

    def __init__(self, path: str, advice: str, way: str = "format=", writing: bool = False) -> None:
        self.advice, self.way, self.writing = advice, way, writing
        super().__init__(f"the format is not known; {advice.format(way)}.", path)

    def __reduce__(self) -> tuple[Any, ...]:
        return UnknownFormatError, (self.path, self.advice, self.way, self.writing)

    def given_by(self, way: str) -> UnknownFormatError:
        """Return the same error for another interface."""
        return UnknownFormatError(self.path, self.advice, way, self.writing)


class TooLargeError(GibbsiteError, MemoryError):
    """An exact or dense method would need more than its limit; the message gives both sizes."""

    def __new__(cls, *args: Any) -> Self:
        """Make the error without its text, as libraries do that pickle errors; MemoryError refuses that."""
        return Exception.__new__(cls, *args)


class SamplingError(GibbsiteError, ArithmeticError):
    """A run stopped at a state that would make its numbers wrong.

    Attributes
    ----------
    recording : Recording or None
        The recorded data.
    result : Result or None
        Their result, if there was at least one draw.
    """

    recording: Any = None
    result: Any = None


class CheckpointError(GibbsiteError, OSError):
    """A checkpoint cannot be written, read, or continued by this run."""


class ConvergenceWarning(UserWarning):
    """The chains have not converged, so the numbers may be wrong."""
