"""``gibbsite segment``: which label every pixel of an image has."""

from __future__ import annotations

import warnings
from typing import Any

import click

from gibbsite.cli.group import SpellingGroup
from gibbsite.cli.outputs import deliver, echo
from gibbsite.cli.parameters import COUNT, FILE_OUTPUT, INPUT, NOT_NEGATIVE, SEED, Choice, refuse
from gibbsite.cli.segment_classes import apply, score, train

_METHODS = ("gibbs", "herded", "blocks", "mean-field", "annealed", "icm")


@click.group("segment", cls=SpellingGroup)
def command() -> None:
    """Label every pixel of an image.

    \b
    gibbsite segment scribbles IMAGE SCRIBBLES.png -o OUT.png
        the labels whose colours you scribbled on it
    gibbsite segment train DIR -o MODEL
        learn classes from photographs of which the classes are known
    gibbsite segment apply IMAGE MODEL -o OUT.png
        find them in others
    gibbsite segment score MODEL DIR
        and count wrong pixels
    """  # noqa: D301 (a backspace, by which click keeps lines)


for _each in (train, apply, score):
    command.add_command(_each)


@command.command("scribbles")
@click.argument("image", type=INPUT)
@click.argument("scribbles", type=INPUT)
@click.option(
    "-o",
    "--output",
    "out",
    type=FILE_OUTPUT,
    required=True,
    help="Write the label image there (PNG), and legend, certainty and overlay beside it.",
)
@click.option("--coupling", type=NOT_NEGATIVE, help="Preference of equal neighbours. [default: found]")
@click.option("--plain", is_flag=True, help="The same coupling where colours change.")
@click.option("--neighbours", type=Choice(["4", "8"]), default="8", show_default=True)
@click.option("--colour", type=NOT_NEGATIVE, default=0.2, show_default=True, help="How much colours count.")
@click.option("--proximity", type=NOT_NEGATIVE, default=3.0, show_default=True, help="How much near scribbles count.")
@click.option("--superpixels", type=click.IntRange(2), help="Label about so many regions instead of pixels.")
@click.option("--method", type=Choice(_METHODS), default="gibbs", show_default=True)
@click.option("--sweeps", type=COUNT, default=40, show_default=True)
@click.option("--majority", "average_states", is_flag=True, help="The label that most sweeps gave.")
@click.option("--background", metavar="#RRGGBB", help="Colour of SCRIBBLES that is no label.")
@click.option("--largest", type=COUNT, default=300_000, show_default=True, help="Pixels solved at once.")
@click.option("--rng", type=SEED, help="Seed; repeats a run exactly.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary on stderr.")
def scribbles(**given: Any) -> int:
    """Label the pixels of IMAGE by SCRIBBLES, a drawing of the same size: each colour is a label.

    No label are, in this order: what --background says; transparent pixels; value 0 of a palette; pixels as
    in IMAGE, if SCRIBBLES is a copy of it that was painted on; black or white, whichever covers more. Save
    the drawing as PNG, drawn with a hard brush.
    """
    from gibbsite.applications.images import read_photograph, read_strokes
    from gibbsite.applications.segmentation.rendering import check_outputs
    from gibbsite.applications.segmentation.scribbles import segment_scribbles
    from gibbsite.applications.segmentation.strokes import read_scribbles
    from gibbsite.formats.parsing.plain_json import write_json

    if given["image"] == given["scribbles"] == "-":
        raise click.UsageError("IMAGE and SCRIBBLES cannot both be read from stdin.")
    if given["method"] == "icm":
        refuse(["sweeps", "rng"], "with --method icm")
    if given["method"] in ("icm", "annealed", "mean-field"):
        refuse(["average_states"], f"with --method {given['method']}")
    if given["superpixels"] is not None:
        refuse(["largest"], "with --superpixels")
    check_outputs(given["out"])
    image = read_photograph(given["image"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        drawing, first = read_strokes(given["scribbles"])
        strokes = read_scribbles(drawing, image, given["background"], first)
    if not given["quiet"]:
        for warning in caught:
            echo(f"gibbsite: {warning.message}", err=True)
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
        raise KeyboardInterrupt  # no part of a segmentation is written as if it were the whole
    files = deliver(given["out"], done.save)
    if given["as_json"]:
        echo(write_json({**done.facts(), "files": [*files]}))
    if not given["quiet"]:
        echo(done.line(), err=True)
    return 0
