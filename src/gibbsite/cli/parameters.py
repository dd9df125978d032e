"""Types of arguments and options: they refuse bad values with exit code 2 and complete words in a shell."""

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

#: Classes of scans by name, read without importing them.
SCAN_CLASSES = {one["name"]: one["class"] for one in read_declarations("scans") if one.get("name")}
SCANS = tuple(sorted(SCAN_CLASSES))


class Choice(click.Choice):  # type: ignore[type-arg]  # generic in newer versions of Click only
    """One of some names; the error on any other name suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(unknown("the name", value, self.choices), param, ctx)


class Integer(click.IntRange):
    """An integer in a range."""

    name = "integer"


class Real(click.FloatRange):
    """A finite number in a range."""

    name = "number"

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
COUNT, SEED = Integer(1), Integer(0)


class Output(click.Path):
    """A file to write, found to be writable before any work is done; an existing one is replaced at the end.

    With ``stream``, "-" is stdout. Names with the endings ``folders`` are folders, which are checked when made.
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
            self.fail("this cannot be written to stdout; give the name of a file.", param, ctx)
        from gibbsite.formats.parsing.text import check_writable

        if not self.folders or not str(place).endswith(self.folders):
            check_writable(str(place))
        return place


OUTPUT, FILE_OUTPUT = Output(), Output(stream=False)
INPUT = click.Path(readable=False, allow_dash=True)


class Folder(click.Path):
    """A folder, which need not exist yet."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        return [CompletionItem(incomplete, type="dir")]


FOLDER = Folder(readable=False)


class Picture(Output):
    """A file for a plot, in a format that can be drawn."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the place."""
        place = super().convert(value, param, ctx)
        if ctx is None or not ctx.resilient_parsing:
            from gibbsite.results.plots._canvas import check_picture

            check_picture(place)
        return place


PICTURE = Picture(stream=False)


class Named(click.Path):
    """A file, or one of the names that a function returns."""

    name = "name or file"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        super().__init__(readable=False, allow_dash=True)
        self.names = names

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the names with this beginning, unless a file has it."""
        names = [name for name in self.names() if name.startswith(incomplete)]
        if incomplete and names and not glob.glob(f"{glob.escape(incomplete)}*"):
            return [CompletionItem(name) for name in names]
        return [CompletionItem(incomplete, type="file")]


def _examples() -> tuple[str, ...]:
    from gibbsite.formats import EXAMPLES

    return EXAMPLES


MODEL, SCAN = Named(_examples), Named(lambda: SCANS)


class Registered(click.types.StringParamType):
    """A name from a list that is only read when it is needed."""

    def __init__(self, what: str, names: Callable[[], Iterable[str]]) -> None:
        self.name, self.names = what, names

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name."""
        names = tuple(self.names())
        if value.lower() not in names:
            self.fail(unknown(self.name, value, names), param, ctx)
        return value.lower()

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer the names with this beginning."""
        return [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]


def _formats() -> Iterable[str]:
    from gibbsite.formats import FORMATS

    return FORMATS


def _experiments() -> Iterable[str]:
    from gibbsite.lab import NAMES

    return ("all", *NAMES)


FORMAT, EXPERIMENT = Registered("format", _formats), Registered("experiment", _experiments)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing on stderr.")
rng_option = click.option("--rng", type=SEED, default=1, show_default=True, help="Seed.")


def read_scan(name: str | None) -> Scan | None:
    """Return a scan by its name, or read a saved one; None stays None."""
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
    """Tell whether an option of the command that runs was given on the command line.

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
    """Return the spelling of an option of the command that runs."""
    params = click.get_current_context().command.params
    return next(max(param.opts, key=len) for param in params if param.name == name)


def refuse(names: Iterable[str], why: str) -> None:
    """Refuse options that were given though they have no effect."""
    for name in names:
        if is_given(name):
            raise click.UsageError(f"{option_of(name)} has no effect {why}; leave it out.")
