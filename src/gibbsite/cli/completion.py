"""``gibbsite completion``: the script that completes commands in a shell."""

from __future__ import annotations

import re

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

from gibbsite.cli.help import Command

_BREAKS = ("=", ":")  # characters at which bash divides a word
_HOW = {
    "bash": "source <(gibbsite completion bash)    # in ~/.bashrc",
    "zsh": "source <(gibbsite completion zsh)     # in ~/.zshrc, after compinit",
    "fish": "gibbsite completion fish | source     # in ~/.config/fish/config.fish",
}


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, which takes ``CO=LOW`` for three words and replaces the last one."""

    _divided = ""  # what comes before the last of these words

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one."""
        before, last = super().get_completion_args()
        words: list[str] = []
        for word in (*before, last):
            if words and (word in _BREAKS or words[-1].endswith(_BREAKS)):
                words[-1] += word
            else:
                words.append(word)
        self._divided = words[-1] if last in _BREAKS else words[-1].removesuffix(last)
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return what replaces the last word, with spaces and the like escaped."""
        if item.type != "plain":
            return super().format_completion(item)
        value = item.value
        starts = (self._divided[k:] for k in range(len(self._divided)))
        start = next((each for each in starts if value.startswith(each)), "")
        value = re.sub(r"([^\w@%+=:,./~-])", r"\\\\\1", value.removeprefix(start))  # the script reads \\ as \
        return f"plain,{value}"


class _WholeWords(ShellComplete):
    """Completion in shells that take ``--method=gibbs`` for one word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return values together with the option that they are given to."""
        items = super().get_completions(args, incomplete)
        option, equals, _ = incomplete.partition("=")
        if equals and option.startswith("--"):
            for item in items:
                if item.type == "plain":
                    item.value = f"{option}={item.value}"
        return items


@add_completion_class
class Zsh(_WholeWords, ZshComplete):
    """Completion in zsh."""


@add_completion_class
class Fish(_WholeWords, FishComplete):
    """Completion in fish, also of values with commas."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


@click.command("completion", cls=Command, examples=tuple(_HOW.values()))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL, which its configuration file can read at every start.

    It completes commands, options, methods and files, and after MODEL the names of sites and states.
    """
    from gibbsite.cli import group

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(group, {}, "gibbsite", "_GIBBSITE_COMPLETE").source())
