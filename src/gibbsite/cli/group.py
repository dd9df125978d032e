"""Commands with commands of their own, whose errors speak of the options of the one that runs."""

from __future__ import annotations

from typing import Any

import click


class SpellingGroup(click.Group):
    """A group that spells messages of the library as options of the command that runs."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; let errors of the library speak of its options."""
        from gibbsite.errors import ArgumentError, GibbsiteError

        try:
            return super().invoke(ctx)
        except GibbsiteError as error:
            from gibbsite.cli.wording import in_options

            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            assert command is not None
            message = in_options(error.text, command)
            if isinstance(error, ArgumentError) or getattr(error, "writing", False):
                inner = click.Context(command, parent=ctx, info_name=ctx.invoked_subcommand)
                raise click.UsageError(message, inner) from None
            error.args = (message,)
            raise
