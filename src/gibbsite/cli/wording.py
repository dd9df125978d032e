"""Messages of the library in the spelling of the command line: ``--chains 4`` for ``chains=4``."""

from __future__ import annotations

import click

from gibbsite._common.wording import Mark, Text
from gibbsite.cli.parameters import SCAN_CLASSES
from gibbsite.inference import KERNELS


def in_options(message: str, command: click.Command) -> str:
    """Return a message with the arguments and kernels it names spelled as options of a command.

    What a command has no option for stays as it is written in Python.
    """
    if not isinstance(message, Text):
        return message
    options = {param.name: param for param in command.params if isinstance(param, click.Option) and param.name}
    return message.spelled(lambda mark: _spell(mark, options))


def _spell(mark: Mark, options: dict[str, click.Option]) -> str:
    """Return how an argument, a kernel or a scan is spelled with the options that there are."""
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
    """Return the methods that use a kernel with the parameters that are named."""
    return [
        method
        for method, (name, parameters) in KERNELS.items()
        if name == mark.name
        and all(value in [f"{key}={each}" for key, each in parameters.items()] for value in mark.values)
    ]
