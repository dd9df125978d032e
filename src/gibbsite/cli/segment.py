"""``gibbsite segment``: which label every pixel of an image has."""

from __future__ import annotations

import click

_HELP = """Label every pixel of an image.

\b
gibbsite segment scribbles IMAGE SCRIBBLES.png -o OUT.png
    the labels whose colours you scribbled on it
"""


@click.group("segment", help=_HELP)
def command() -> None:
    """Label every pixel of an image."""
