"""What arguments and options take: refused with exit code 2 where it makes no sense, completed in a shell."""

from __future__ import annotations

import glob
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from gibbsite._common.loading import read_declarations
from gibbsite._common.wording import unknown

if TYPE_CHECKING:
    from gibbsite.scans.base import Scan

#: Names of scans, read without loading them.
#: Classes of scans by their names here.
SCAN_CLASSES = {one["name"]: one["class"] for one in read_declarations("scans") if one.get("name")}
SCANS = tuple(sorted(SCAN_CLASSES))


class Choice(click.Choice):  # type: ignore[type-arg]  # generic in newer versions of Click only
    """One of some names; another is answered with the nearest of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(unknown("the name", value, self.choices), param, ctx)


class Real(click.FloatRange):
    """A finite number in a range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


POSITIVE = Real(0, min_open=True)
NOT_NEGATIVE = Real(0)
BELOW_ONE = Real(0, 1, min_open=True, max_open=True)
UP_TO_ONE = Real(0, 1, min_open=True)
COUNT = click.IntRange(1)
SEED = click.IntRange(0)


class Output(click.Path):
    """A place to write to, proved writable before any work is done; what is there stays until the end.

    Parameters
    ----------
    stream : bool
        "-" is stdout; otherwise it is refused.
    folders : tuple of str
        How names end of folders that are made; whoever makes them refuses those that there are.
    """

    name = "file"

    def __init__(self, stream: bool = True, folders: tuple[str, ...] = ()) -> None:
        super().__init__(readable=False, allow_dash=True)
        self.stream, self.folders = stream, folders

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the place."""
        place = super().convert(value, param, ctx)
        if ctx is not None and ctx.resilient_parsing:
            return place
        if place == "-" and not self.stream:
            self.fail("this does not go to stdout; give the name of a file.", param, ctx)
        from gibbsite.formats.parsing.text import check_writable

        if not self.folders or not str(place).endswith(self.folders):
            check_writable(str(place))
        return place


OUTPUT, FILE_OUTPUT = Output(), Output(stream=False)
INPUT = click.Path(readable=False, allow_dash=True)


class Folder(click.Path):
    """A folder, which may have to be made."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="dir")]


FOLDER = Folder(readable=False)


class Picture(Output):
    """A place for a plot, of a format that can be drawn."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the place."""
        place = super().convert(value, param, ctx)
        if ctx is None or not ctx.resilient_parsing:
            from gibbsite.results.plots._canvas import check_picture

            check_picture(place)
        return place


PICTURE = Picture(stream=False)


class Named(click.Path):
    """One of some names, or a file.

    Parameters
    ----------
    names : function
        Returns the names.
    """

    name = "name or file"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        super().__init__(readable=False, allow_dash=True)
        self.names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the names that begin so; leave files to the shell where there are any."""
        names = [name for name in self.names() if name.startswith(incomplete)]
        if incomplete and names and not glob.glob(f"{glob.escape(incomplete)}*"):
            return [CompletionItem(name) for name in names]
        return [CompletionItem(incomplete, type="file")]


def _examples() -> tuple[str, ...]:
    from gibbsite.formats import EXAMPLES

    return EXAMPLES


MODEL, SCAN = Named(_examples), Named(lambda: SCANS)


class Format(click.types.StringParamType):
    """The name of a file format."""

    name = "format"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        from gibbsite.formats import FORMATS

        if value.lower() not in FORMATS:
            self.fail(unknown("format", value, FORMATS), param, ctx)
        return value.lower()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the names that begin so."""
        from gibbsite.formats import FORMATS

        return [CompletionItem(name) for name in FORMATS if name.startswith(incomplete)]


FORMAT = Format()


class Experiment(click.types.StringParamType):
    """The name of an experiment, or "all"."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        from gibbsite.errors import ModelError
        from gibbsite.lab import find

        if value != "all":
            try:
                find(value)
            except ModelError as error:
                self.fail(str(error), param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the names that begin so."""
        from gibbsite.lab import NAMES

        return [CompletionItem(name) for name in ("all", *NAMES) if name.startswith(incomplete)]


def read_scan(name: str | None) -> Scan | None:
    """Return a scan by its name, or one that was saved; None is left to be chosen."""
    import gibbsite as gs
    from gibbsite.scans.registry import make_scan

    if name is None:
        return None
    if name in SCANS:
        return make_scan(name)
    if not name.endswith(".npz"):
        raise click.UsageError(unknown("--scan", name, SCANS, ", or give a .npz file"))
    scan = gs.load(name)
    if not isinstance(scan, gs.influence.DogsScan):
        raise gs.errors.FormatError("this file holds an answer, not a scan.", name)
    return scan


def is_given(name: str) -> bool:
    """Tell whether an option of the command that runs was given, and is not just at its default.

    Examples
    --------
    >>> command = click.Command("try", params=[click.Option(["--chains"], default=4)])
    >>> for words in ([], ["--chains", "4"]):
    ...     with command.make_context("try", words):
    ...         is_given("chains")
    False
    True
    """
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def option_of(name: str) -> str:
    """Return how an option of the command that runs is spelled."""
    params = click.get_current_context().command.params
    return next(max(param.opts, key=len) for param in params if param.name == name)


def refuse(names: Iterable[str], why: str) -> None:
    """Refuse options that were given though they have no effect."""
    for name in names:
        if is_given(name):
            raise click.UsageError(f"{option_of(name)} has no effect {why}; leave it out.")
