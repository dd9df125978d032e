"""``gibbsite completion``: the script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, add_completion_class, get_completion_class


@add_completion_class
class Bash(BashComplete):
    """Completion in bash, which takes ``--method=gibbs`` for three words."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one."""
        before, last = super().get_completion_args()
        words: list[str] = []
        for word in (*before, last):
            if words and (word == "=" or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of SHELL; for bash: source <(gibbsite completion bash)."""
    from gibbsite.cli import group

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(group, {}, "gibbsite", "_GIBBSITE_COMPLETE").source())
