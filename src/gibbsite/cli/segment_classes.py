"""``gibbsite segment train | score | apply``: classes learnt from whole images."""

from __future__ import annotations

import time
from typing import Any

import click

from gibbsite.cli.inputs import note_on_compiling
from gibbsite.cli.outputs import deliver, echo
from gibbsite.cli.parameters import COUNT, FOLDER, INPUT, OUTPUT, SEED, Choice, refuse

_METHODS = ("plsa", "systematic", "dogs", "chromatic", "herded", "blocks", "mean-field")


class _Coupling(click.types.StringParamType):
    """A number of at least 0, or "learn"."""

    name = "number or learn"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the word."""
        if value == "learn":
            return value
        try:
            number = float(value)
        except ValueError:
            self.fail(f'{value!r} is neither a number nor "learn".', param, ctx)
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


method_option = click.option(
    "--method", type=Choice(_METHODS), default="systematic", show_default=True, help="plsa: no coupling."
)
region_option = click.option("--region", type=_Region(), help="What dogs is aimed at, in pixels. [default: the middle]")
rounds_option = click.option(
    "--rounds", type=COUNT, default=50, show_default=True, help="Sweeps, or passes through the aimed scan."
)
label_option = click.option(
    "--label",
    type=Choice(("marginal", "majority")),
    default="marginal",
    show_default=True,
    help="The most probable label, or the one seen most often.",
)
rng_option = click.option("--rng", type=SEED, default=1, show_default=True, help="Seed.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr.")


def _check(given: dict[str, Any]) -> None:
    """Refuse options that have no effect."""
    method = given["method"]
    if method != "dogs":
        refuse(["region"], f"with --method {method}")
    if method == "plsa":
        refuse(["rounds", "label", "rng"], "with --method plsa")


@click.command("train")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-o", "--output", "out", type=OUTPUT, required=True, help="Write the model there.")
@click.option("--classes", metavar="NAMES", help="Classes to learn, separated by commas. [default: all]")
@click.option("--texture", type=COUNT, default=1000, show_default=True, help="Visual words of texture.")
@click.option("--colour", type=COUNT, default=100, show_default=True, help="Visual words of colour.")
@click.option(
    "--coupling",
    type=_Coupling(),
    default=0.48,
    show_default=True,
    help='How much neighbouring patches prefer equal labels; "learn" uses the label maps.',
)
@click.option("--neighbours", type=Choice(("4", "8")), default="4", show_default=True)
@click.option("--starts", type=COUNT, default=1, show_default=True, help="Starts of EM; the best is kept.")
@click.option("--rng", type=SEED, default=0, show_default=True, help="Seed.")
@quiet_option
def train(**given: Any) -> None:
    """Learn classes from the photographs NAME.png of DIR and their label maps NAME_GT.png.

    Of a label map only the set of its classes is used, unless --coupling learn is given. Names of classes
    are in classes.json, in DIR or above it.
    """
    from gibbsite.applications.segmentation import Segmenter, read_labelled

    begun = time.monotonic()
    names = None if given["classes"] is None else [part.strip() for part in given["classes"].split(",")]
    images = read_labelled(given["folder"], names)
    segmenter = Segmenter(
        given["texture"],
        given["colour"],
        coupling=given["coupling"],
        neighbours=int(given["neighbours"]),
        starts=given["starts"],
        rng=given["rng"],
    )
    with note_on_compiling(given["quiet"]):
        segmenter.fit(images)
    deliver(given["out"], segmenter.save)
    if not given["quiet"]:
        left = f" ({segmenter.skipped} without a class left out)" if segmenter.skipped else ""
        echo(
            f"gibbsite: {', '.join(segmenter.classes)} from {len(images.examples)} photographs{left}; "
            f"coupling {segmenter.coupling:.3g}, {segmenter.aspects.n_iter_} iterations, "
            f"{time.monotonic() - begun:.0f} s",
            err=True,
        )


@click.command("score")
@click.argument("model", type=INPUT)
@click.argument("folder", metavar="DIR", type=FOLDER)
@method_option
@region_option
@rounds_option
@label_option
@rng_option
@click.option("--json", "as_json", is_flag=True, help="Print hamming, classes and more as JSON.")
@quiet_option
def score(**given: Any) -> None:
    """Label the photographs of DIR with MODEL, and count pixels whose label is not that of the label map.

    The Hamming error is the share of wrong pixels among those that have a class.
    """
    from gibbsite.applications.segmentation import Segmenter, read_labelled
    from gibbsite.formats.parsing.plain_json import write_json

    _check(given)
    segmenter, images = Segmenter.load(given["model"]), read_labelled(given["folder"])
    begun = time.monotonic()
    with note_on_compiling(given["quiet"]):
        found = segmenter.score(
            images,
            given["method"],
            region=given["region"],
            rounds=given["rounds"],
            label=given["label"],
            rng=given["rng"],
        )
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


@click.command("apply")
@click.argument("image", type=INPUT)
@click.argument("model", type=INPUT)
@click.option("-o", "--output", "out", required=True, metavar="OUT.png", help="Write the label image there.")
@method_option
@region_option
@rounds_option
@label_option
@rng_option
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@quiet_option
def apply(**given: Any) -> None:
    """Label the photograph IMAGE with the classes of MODEL.

    Writes OUT.png, whose pixel values are labels; OUT-legend.json, their names and colours;
    OUT-certainty.png; and OUT-overlay.jpg, the photograph in the colours of its labels.
    """
    from gibbsite.applications.images import read_photograph
    from gibbsite.applications.segmentation import Segmenter, write_segmentation
    from gibbsite.applications.segmentation.rendering import check_outputs
    from gibbsite.formats.parsing.plain_json import write_json

    _check(given)
    check_outputs(given["out"])
    segmenter, image = Segmenter.load(given["model"]), read_photograph(given["image"])
    with note_on_compiling(given["quiet"]):
        found = segmenter.segment(
            image,
            given["method"],
            region=given["region"],
            rounds=given["rounds"],
            label=given["label"],
            rng=given["rng"],
        )
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
    if not given["quiet"]:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in found.shares().items() if share >= 0.005)
        echo(
            f"gibbsite: {width} x {height} pixels, {given['method']}: {shares}; {found.seconds:.2g} s "
            f"({1e3 * found.patches.seconds:.2g} ms of sampling); {', '.join(places)}",
            err=True,
        )
