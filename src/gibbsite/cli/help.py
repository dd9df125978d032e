"""Help that fits on a screen: examples, the common options in groups, and the others with ``--help-all``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

_ALL = "gibbsite.cli.help_all"  # the key of a context by which all options are shown
_REST = "Other options"

Groups = Mapping[str, Sequence[str]]  # names of options by the title of their group


class Command(click.Command):
    """A command whose help has examples, and groups of options.

    Parameters
    ----------
    examples
        Commands to show.
    common
        The options that ``--help`` shows, in groups. Without them it shows all options.
    rare
        The options that ``--help-all`` shows, too, in groups; what is in no group comes last.
    details
        Text that ``--help-all`` shows after the description.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        common: Groups | None = None,
        rare: Groups | None = None,
        details: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples, self.common, self.rare, self.details = examples, common or {}, rare or {}, details
        if self.common:
            self.params.append(_help_all)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and the examples."""
        super().format_help_text(ctx, formatter)
        if self.details and _ALL in ctx.meta:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(self.details)
        write_examples(self.examples, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in groups if there are any."""
        if not self.common:
            super().format_options(ctx, formatter)
            return
        rows = {
            param.name: row
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx))
        }
        own = self.get_help_option(ctx)
        last = [rows.pop(param.name) for param in (_help_all, own) if param is not None]
        everything = _ALL in ctx.meta
        groups = {**self.common, **(self.rare if everything else {})}
        for title, names in groups.items():
            _write_rows(title, [rows.pop(name) for name in names], formatter)
        if everything:
            _write_rows(_REST, rows.values(), formatter)
        _write_rows("Help", last, formatter)


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and those below it, with the words that call them."""
    yield words, command
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from commands(found, (*words, name))


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write commands to try, one in a line."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def _write_rows(title: str, rows: Iterable[tuple[str, str]], formatter: click.HelpFormatter) -> None:
    if listed := list(rows):
        with formatter.section(title):
            formatter.write_dl(listed, col_max=24)


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


_help_all = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options and exit.",
)
