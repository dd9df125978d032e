"""Messages of the library spelled as command-line options: ``--chains 4`` for ``chains=4``."""

from __future__ import annotations

from typing import Any

import click

from gibbsite._common.wording import Mark, Text
from gibbsite.cli.parameters import SCAN_CLASSES
from gibbsite.errors import ArgumentError, GibbsiteError
from gibbsite.inference import KERNELS


class SpellingGroup(click.Group):
    """A group of commands whose error messages name the options of the command that runs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; spell errors of the library in its options."""
        try:
            return super().invoke(ctx)
        except GibbsiteError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            assert command is not None
            message = in_options(error.text, command)
            if isinstance(error, ArgumentError) or getattr(error, "writing", False):
                inner = click.Context(command, parent=ctx, info_name=ctx.invoked_subcommand)
                raise click.UsageError(message, inner) from None
            error.args = (message,)
            raise


def spelled(message: str) -> str:
    """Return a message of the library in the options of the command that runs."""
    context = click.get_current_context(silent=True)
    return message if context is None else in_options(message, context.command)


def in_options(message: str, command: click.Command) -> str:
    """Return a message whose arguments and kernels are spelled as options of a command, if it has them."""
    if not isinstance(message, Text):
        return message
    options = {param.name: param for param in command.params if isinstance(param, click.Option) and param.name}
    return message.spelled(lambda mark: _spell(mark, options))


def _spell(mark: Mark, options: dict[str, click.Option]) -> str:
    """Return an argument, a kernel or a scan as an option, or in Python if there is no such option."""
    if mark.kind == "python":
        return ""
    if mark.kind == "argument":
        value = mark.values[0] if mark.values else ""
        if value == "False" and f"no_{mark.name}" in options:
            return _flag(options[f"no_{mark.name}"])
        option = options.get(mark.name)
        if option is None:
            return mark.plain
        return _flag(option) if value in ("", "True") else f"{_flag(option)} {value}"
    scans = [name for name, scan in SCAN_CLASSES.items() if scan == mark.name]
    names = {"method": _methods(mark), "scan": scans}
    for name, found in names.items():
        if name in options:
            choices = getattr(options[name].type, "choices", found)
            for each in found:
                if each in choices:
                    return f"{_flag(options[name])} {each}"
    return mark.plain


def _flag(option: click.Option) -> str:
    return max(option.opts, key=len)


def _methods(mark: Mark) -> list[str]:
    """Return the methods that use a kernel with the named parameters."""
    return [
        method
        for method, (name, parameters) in KERNELS.items()
        if name == mark.name
        and all(value in [f"{key}={each}" for key, each in parameters.items()] for value in mark.values)
    ]
