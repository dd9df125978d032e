"""Functions of ``gibbsite.cli.wording`` on small inputs whose results are known."""

from __future__ import annotations

import click

from gibbsite._common.wording import Text, argument
from gibbsite.cli.wording import in_options


def test_in_options_returns_a_message_with_the_arguments_and_kernels_it_names_spelled() -> None:
    command = click.Command("try", params=[click.Option(["--chains"]), click.Option(["--resume"])])
    assert (
        in_options(Text(f"take {argument('chains', 4)}, or {argument('resume', True)}."), command)
    ) == "take --chains 4, or --resume."
