"""``gibbsite segment``: which label every pixel of an image has."""

from __future__ import annotations

import click

from gibbsite.cli.segment_classes import apply, score, train

_HELP = """Label every pixel of an image.

\b
gibbsite segment scribbles IMAGE SCRIBBLES.png -o OUT.png
    the labels whose colours you scribbled on it
gibbsite segment train DIR -o MODEL
    learn classes from photographs of which the classes are known
gibbsite segment apply IMAGE MODEL -o OUT.png
    find them in others
gibbsite segment score MODEL DIR
    and count wrong pixels
"""


@click.group("segment", help=_HELP)
def command() -> None:
    """Label every pixel of an image."""


for _each in (train, apply, score):
    command.add_command(_each)
