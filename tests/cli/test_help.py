"""The help of every command fits on a screen, groups all options, and shows examples that are accepted."""

from __future__ import annotations

import shlex

import click
import pytest
from click.testing import CliRunner

from gibbsite.cli import group
from gibbsite.cli.help import Command, commands

_LINES = 40  # of a screen
_WIDTH = 80


COMMANDS = {" ".join(words): command for words, command in commands(group)}


def help_of(words: str, option: str) -> list[str]:
    done = CliRunner().invoke(group, [*words.split(), option], prog_name="gibbsite", terminal_width=_WIDTH)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


@pytest.mark.parametrize("words", COMMANDS)
def test_help_fits_on_a_screen(words: str) -> None:
    lines = help_of(words, "--help")
    assert len(lines) <= _LINES
    long = [line for line in lines if len(line) > _WIDTH and "|" not in line]  # choices are not divided
    assert not [line for line in long if not line.startswith("  gibbsite ")]


@pytest.mark.parametrize("words", [words for words, each in COMMANDS.items() if getattr(each, "common", None)])
def test_all_options_are_in_a_group_and_shown_by_help_all(words: str) -> None:
    command = COMMANDS[words]
    assert isinstance(command, Command)
    grouped = [name for names in (*command.common.values(), *command.rare.values()) for name in names]
    options = [param for param in command.params if isinstance(param, click.Option) and param.name != "help_all"]
    assert sorted(grouped) == sorted(str(option.name) for option in options)
    common = {name for names in command.common.values() for name in names}
    few, every = "\n".join(help_of(words, "--help")), "\n".join(help_of(words, "--help-all"))
    for option in options:
        flag = f"{max(option.opts, key=len)} "
        assert flag in every
        assert (flag in few) == (option.name in common), flag


def test_examples_are_accepted() -> None:
    """Every command of an example exists and takes the options and the number of words; files are not opened."""
    shown = [example for each in COMMANDS.values() for example in getattr(each, "examples", ())]
    assert len(shown) > 20
    for example in shown:
        line = example.partition("#")[0].removeprefix("source <(").rstrip(" )").partition("|")[0]
        line = line.partition(">")[0].partition("<")[0]
        program, *words = shlex.split(line)
        assert program == "gibbsite"
        if "--help" in words:
            continue
        context = group.make_context("gibbsite", list(words))
        with context:
            _, command, rest = group.resolve_command(context, words)
            while isinstance(command, click.Group):
                _, command, rest = command.resolve_command(context, rest)
            assert command is not None
            parsed, left, _ = command.make_parser(click.Context(command)).parse_args(rest)
            assert not left, example
            for param in command.params:
                if param.required:
                    assert parsed.get(str(param.name)), example
                choices = getattr(param.type, "choices", None)
                if choices and parsed.get(str(param.name)) is not None:
                    assert str(parsed[str(param.name)]).lower() in [each.lower() for each in choices], example
