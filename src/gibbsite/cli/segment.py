"""``gibbsite segment``: label every pixel of an image."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from gibbsite.applications.methods import PATCH_LABELS, PATCHES, SCRIBBLES
from gibbsite.cli import parameters
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, note_on_compiling, tell, warnings_on_stderr
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


class _Coupling(click.types.StringParamType):
    """A number of at least 0, "learn" or "held-back"."""

    name = "number, learn or held-back"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word."""
        if value in ("learn", "held-back"):
            return value
        try:
            number = float(value)
        except ValueError:
            self.fail(f'{value!r} is neither a number nor "learn" or "held-back".', param, ctx)
        if not 0.0 <= number < float("inf"):
            self.fail(f"{value!r} is not a number of at least 0.", param, ctx)
        return number


class _Region(click.types.StringParamType):
    """Four whole numbers x0,y0,x1,y1."""

    name = "x0,y0,x1,y1"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the four numbers."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(int(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != 4:
            self.fail(f"{value!r} is not x0,y0,x1,y1: four whole numbers of pixels.", param, ctx)
        return numbers


_LABELLING = (
    click.option(
        "--method",
        type=parameters.Choice(PATCHES),
        default="systematic",
        show_default=True,
        help="plsa: without coupling.",
    ),
    click.option("--region", type=_Region(), help="Pixels that dogs is aimed at. [default: the middle]"),
    click.option(
        "--rounds", type=parameters.COUNT, default=50, show_default=True, help="Number of sweeps, or of passes of dogs."
    ),
    click.option(
        "--label",
        type=parameters.Choice(PATCH_LABELS),
        default="marginal",
        show_default=True,
        help="Take the most probable label, or the most frequent one.",
    ),
    parameters.rng_option,
)


def _labels_images(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of labelling."""
    for option in reversed(_LABELLING):
        command = option(command)
    return command


def _labelling_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of how images are labelled; refuse those without effect."""
    method = given["method"]
    if method != "dogs":
        parameters.refuse(["region"], f"with --method {method}")
    if method == "plsa":
        parameters.refuse(["rounds", "label", "rng"], "with --method plsa")
    return {name: given[name] for name in ("method", "region", "rounds", "label", "rng")}


@command.command(
    "train",
    cls=Command,
    short_help="Learn classes from photographs.",
    examples=(
        "gibbsite segment train photographs -o model.npz",
        "gibbsite segment train photographs -o model.npz --classes grass,cow,sky",
    ),
)
@click.argument("folder", metavar="DIR", type=parameters.FOLDER)
@click.option("-o", "--output", "out", type=parameters.OUTPUT, required=True, help="File for the model.")
@click.option("--classes", metavar="NAMES", help="Classes to learn, separated by commas. [default: all]")
@click.option(
    "--texture", type=parameters.COUNT, default=1000, show_default=True, help="Number of visual words of texture."
)
@click.option(
    "--colour", type=parameters.COUNT, default=100, show_default=True, help="Number of visual words of colour."
)
@click.option(
    "--coupling",
    type=_Coupling(),
    default=2.0,
    show_default=True,
    help='How strongly neighbouring patches prefer equal labels; "learn" estimates it from the label maps, "held-back" '
    "chooses it by the wrong pixels of training photographs that are held back.",
)
@click.option(
    "--unlabelled",
    type=parameters.Choice(("drop", "keep")),
    default="drop",
    show_default=True,
    help="Whether to learn from patches without a class in the label map.",
)
@click.option("--neighbours", type=parameters.Choice(("4", "8")), default="4", show_default=True)
@click.option(
    "--starts",
    type=parameters.COUNT,
    default=1,
    show_default=True,
    help="Number of starts of EM, of which the best is kept.",
)
@click.option("--rng", type=parameters.SEED, default=0, show_default=True, help="Seed.")
@parameters.quiet_option
def train(**given: Any) -> None:
    """Learn classes from the photographs NAME.png in DIR and their label maps NAME_GT.png.

    Of each label map, only the set of classes is used and which patches have none of them, unless --coupling learn or
    held-back is given. The file classes.json with the names of the classes is in DIR or in the folder above it.
    """
    from gibbsite.applications.segmentation import Segmenter, read_labelled

    begun = time.monotonic()
    names = None if given["classes"] is None else [part.strip() for part in given["classes"].split(",")]
    images = read_labelled(given["folder"], names)
    segmenter = Segmenter(
        given["texture"],
        given["colour"],
        coupling=given["coupling"],
        unlabelled=given["unlabelled"],
        neighbours=int(given["neighbours"]),
        starts=given["starts"],
        rng=given["rng"],
    )
    with note_on_compiling(given["quiet"]):
        segmenter.fit(images)
    deliver(given["out"], segmenter.save)
    left = f" ({segmenter.skipped} without a class left out)" if segmenter.skipped else ""
    tell(
        f"{', '.join(segmenter.classes)} from {len(images.examples)} photographs{left}; "
        f"coupling {segmenter.coupling:.3g}, {segmenter.aspects.n_iter_} iterations, "
        f"{time.monotonic() - begun:.0f} s",
        given["quiet"],
    )


@command.command(
    "score",
    cls=Command,
    short_help="Count wrong pixels.",
    examples=(
        "gibbsite segment score model.npz photographs",
        "gibbsite segment score model.npz photographs --method plsa",
    ),
)
@click.argument("model", type=parameters.INPUT)
@click.argument("folder", metavar="DIR", type=parameters.FOLDER)
@_labels_images
@parameters.json_option
@parameters.quiet_option
def score(**given: Any) -> None:
    """Label the photographs in DIR with MODEL, and count pixels whose label differs from the label map.

    The Hamming error is the share of wrong pixels among those that have a class.
    """
    from gibbsite.applications.segmentation import Segmenter, read_labelled
    from gibbsite.formats.parsing.plain_json import write_json

    how = _labelling_options(given)
    segmenter, images = Segmenter.load(given["model"]), read_labelled(given["folder"])
    begun = time.monotonic()
    with note_on_compiling(given["quiet"]):
        found = segmenter.score(images, **how)
    seconds = time.monotonic() - begun
    totals = found.confusion.sum(axis=1).tolist()
    if given["as_json"]:
        facts = {
            "hamming": found.hamming,
            "classes": found.by_class(),
            "pixels": dict(zip(found.classes, totals, strict=True)),
            "confusion": found.confusion.tolist(),
            "images": len(images.examples),
            "method": given["method"],
            "coupling": segmenter.coupling,
            "seconds": seconds,
        }
        echo(write_json(facts))
        return
    width = max(map(len, found.classes))
    echo(f"{'class'.ljust(width)}  hamming     pixels")
    for (name, error), total in zip(found.by_class().items(), totals, strict=True):
        echo(f"{name.ljust(width)}  {'-' if error is None else f'{error:.4f}':>7}  {total:>9,}")
    echo(f"{'all'.ljust(width)}  {found.hamming:7.4f}  {sum(totals):>9,}")


@command.command(
    "apply",
    cls=Command,
    short_help="Find these classes in a photograph.",
    examples=("gibbsite segment apply photograph.png model.npz -o labels.png",),
)
@click.argument("image", type=parameters.INPUT)
@click.argument("model", type=parameters.INPUT)
@click.option("-o", "--output", "out", required=True, metavar="OUT.png", help="File for the label image.")
@_labels_images
@parameters.json_option
@parameters.quiet_option
def apply(**given: Any) -> None:
    """Label the photograph IMAGE with the classes of MODEL.

    Writes OUT.png, whose pixel values are labels; OUT-legend.json with their names and colours;
    OUT-certainty.png; and OUT-overlay.jpg, the photograph tinted in the colours of its labels.
    """
    from gibbsite.applications.images import read_photograph
    from gibbsite.applications.segmentation import Segmenter, write_segmentation
    from gibbsite.applications.segmentation.rendering import check_outputs
    from gibbsite.formats.parsing.plain_json import write_json

    how = _labelling_options(given)
    check_outputs(given["out"])
    segmenter, image = Segmenter.load(given["model"]), read_photograph(given["image"])
    with note_on_compiling(given["quiet"]):
        found = segmenter.segment(image, **how)
    places = deliver(
        given["out"],
        lambda out: write_segmentation(out, found.labels, segmenter.legend(), certainty=found.certainty, image=image),
    )
    height, width = found.labels.shape
    if given["as_json"]:
        facts = {
            "width": width,
            "height": height,
            "method": given["method"],
            "shares": found.shares(),
            "files": list(places),
            "sampling_seconds": found.patches.seconds,
            "seconds": found.seconds,
        }
        echo(write_json(facts))
    shares = ", ".join(f"{name} {share:.0%}" for name, share in found.shares().items() if share >= 0.005)
    tell(
        f"{width} x {height} pixels, {given['method']}: {shares}; {found.seconds:.2g} s "
        f"({1e3 * found.patches.seconds:.2g} ms of sampling); {', '.join(places)}",
        given["quiet"],
    )


@command.command(
    "scribbles",
    cls=Command,
    short_help="Extend scribbled labels to all pixels.",
    examples=(
        "gibbsite segment scribbles photograph.png drawing.png -o labels.png",
        "gibbsite segment scribbles large.jpg drawing.png -o labels.png --superpixels 2000",
    ),
    common={
        "Labels": ("out", "background", "colour", "proximity"),
        "Method": ("method", "sweeps", "superpixels", "rng"),
        "Messages": ("as_json", "quiet"),
    },
    rare={"More of the method": ("coupling", "plain", "neighbours", "average_states", "largest")},
)
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
@click.option("--superpixels", type=parameters.Integer(2), help="Label about this many regions instead of pixels.")
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
