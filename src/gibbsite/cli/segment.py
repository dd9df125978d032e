"""``gibbsite segment``: label every pixel of an image."""

from __future__ import annotations

from typing import Any

import click

from gibbsite.applications.methods import SCRIBBLES
from gibbsite.cli import parameters
from gibbsite.cli.outputs import deliver, echo, warnings_on_stderr
from gibbsite.cli.segment_classes import apply, score, train
from gibbsite.cli.wording import SpellingGroup


@click.group("segment", cls=SpellingGroup)
def command() -> None:
    """Label every pixel of an image.

    \b
    gibbsite segment scribbles IMAGE SCRIBBLES.png -o OUT.png
        extend labels that you have scribbled on the image
    gibbsite segment train DIR -o MODEL
        learn classes from photographs whose classes are known
    gibbsite segment apply IMAGE MODEL -o OUT.png
        find these classes in another photograph
    gibbsite segment score MODEL DIR
        count wrong pixels
    """  # noqa: D301 (a backspace, by which click keeps lines)


for _each in (train, apply, score):
    command.add_command(_each)


@command.command("scribbles")
@click.argument("image", type=parameters.INPUT)
@click.argument("scribbles", type=parameters.INPUT)
@click.option(
    "-o",
    "--output",
    "out",
    type=parameters.FILE_OUTPUT,
    required=True,
    help="File for the label image (PNG); legend, certainty and overlay are written beside it.",
)
@click.option(
    "--coupling", type=parameters.NOT_NEGATIVE, help="How strongly neighbours prefer equal labels. [default: estimated]"
)
@click.option("--plain", is_flag=True, help="Do not weaken the coupling where colours change.")
@click.option("--neighbours", type=parameters.Choice(["4", "8"]), default="8", show_default=True)
@click.option("--colour", type=parameters.NOT_NEGATIVE, default=0.2, show_default=True, help="Weight of colours.")
@click.option(
    "--proximity",
    type=parameters.NOT_NEGATIVE,
    default=3.0,
    show_default=True,
    help="Weight of the distance from scribbles.",
)
@click.option("--superpixels", type=click.IntRange(2), help="Label about this many regions instead of pixels.")
@click.option("--method", type=parameters.Choice(SCRIBBLES), default="gibbs", show_default=True)
@click.option("--sweeps", type=parameters.COUNT, default=40, show_default=True)
@click.option("--majority", "average_states", is_flag=True, help="Take the label that occurs in most sweeps.")
@click.option("--background", metavar="#RRGGBB", help="Colour of SCRIBBLES that is no label.")
@click.option(
    "--largest",
    type=parameters.COUNT,
    default=300_000,
    show_default=True,
    help="Number of pixels up to which an image is solved at full resolution.",
)
@click.option("--rng", type=parameters.SEED, help="Seed, to repeat a run exactly.")
@parameters.json_option
@parameters.quiet_option
def scribbles(**given: Any) -> int:
    """Label the pixels of IMAGE by SCRIBBLES, a drawing of the same size in which each colour is a label.

    The background, which is no label, is the first of these that applies: the colour given by --background;
    transparent pixels; value 0 of a palette; unchanged pixels, if SCRIBBLES is a copy of IMAGE that was
    painted on; black or white, whichever covers more. Draw with a hard brush and save the drawing as PNG.
    """
    from gibbsite.applications.images import read_photograph, read_strokes
    from gibbsite.applications.segmentation.rendering import check_outputs
    from gibbsite.applications.segmentation.scribbles import segment_scribbles
    from gibbsite.applications.segmentation.strokes import read_scribbles
    from gibbsite.formats.parsing.plain_json import write_json

    if given["image"] == given["scribbles"] == "-":
        raise click.UsageError("IMAGE and SCRIBBLES cannot both be read from stdin.")
    if given["method"] == "icm":
        parameters.refuse(["sweeps", "rng"], "with --method icm")
    if given["method"] in ("icm", "annealed", "mean-field"):
        parameters.refuse(["average_states"], f"with --method {given['method']}")
    if given["superpixels"] is not None:
        parameters.refuse(["largest"], "with --superpixels")
    check_outputs(given["out"])
    image = read_photograph(given["image"])
    with warnings_on_stderr(given["quiet"]):
        drawing, first = read_strokes(given["scribbles"])
        strokes = read_scribbles(drawing, image, given["background"], first)
    names = ("coupling", "colour", "proximity", "superpixels", "method", "sweeps", "average_states", "largest")
    done = segment_scribbles(
        image,
        strokes,
        contrast=not given["plain"],
        neighbours=int(given["neighbours"]),
        rng=given["rng"],
        progress=False if given["quiet"] else None,
        **{name: given[name] for name in names},
    )
    if done.interrupted:
        raise KeyboardInterrupt  # an incomplete segmentation is not written
    files = deliver(given["out"], done.save)
    if given["as_json"]:
        echo(write_json({**done.facts(), "files": [*files]}))
    if not given["quiet"]:
        echo(done.line(), err=True)
    return 0
