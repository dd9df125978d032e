"""Messages of the library in the spelling of the command line: ``--chains`` for ``chains=``."""

from __future__ import annotations

import re

import click


def in_options(message: str, command: click.Command) -> str:
    """Return a message with arguments of functions spelled as options of a command.

    Examples
    --------
    >>> command = click.Command("try", params=[click.Option(["--chains"]), click.Option(["--resume"])])
    >>> in_options("chains must be at least 1; take chains=4, or resume=True.", command)
    '--chains must be at least 1; take --chains 4, or --resume.'
    """
    options = {
        param.name: max(param.opts, key=len)
        for param in command.params
        if isinstance(param, click.Option) and param.name
    }
    names = "|".join(sorted(options, key=len, reverse=True))
    if not names:
        return message
    # chains=4, method='exact', resume=True, checkpoint=
    message = re.sub(
        rf"\b({names})=(?:(True\b)|'([^']*)'|([\w+-]+(?:\.\d+)?))?",
        lambda found: " ".join(filter(None, (options[found[1]], found[3] or found[4]))),
        message,
    )
    # chains must be ..., method 'gibbs' does not ..., flip is for ...; ... give sigma for ...
    message = re.sub(
        rf"^({names}) (?:(?=must |is for )|'([^']*)' )|(?<=\bgive )({names}) ",
        lambda found: " ".join(filter(None, (options[found[1] or found[3]], found[2]))) + " ",
        message,
    )
    return re.sub(r"use a sampler or raise \w+", "--method gibbs samples instead", message)
