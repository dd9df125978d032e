"""``gibbsite denoise``: remove noise from an image file."""

from __future__ import annotations

from typing import Any

import click

from gibbsite.applications.methods import DENOISING, PRIORS
from gibbsite.cli import parameters
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo


@click.command(
    "denoise",
    cls=Command,
    examples=(
        "gibbsite denoise noisy.png -o clean.png",
        "gibbsite denoise scan.png -o clean.png --flip 0.1 --method annealed",
        "gibbsite denoise grey.png -o clean.png --levels 32 --sigma 20",
    ),
    common={
        "Image": ("out", "levels"),
        "Noise": ("sigma", "flip", "means"),
        "Method": ("method", "sweeps", "coupling", "rng"),
        "Messages": ("as_json", "quiet"),
    },
    rare={"More files": ("reference", "probability"), "More of the method": ("prior", "truncation", "damping")},
)
@click.argument("noisy", type=parameters.INPUT)
@click.option("-o", "--output", "out", type=parameters.OUTPUT, required=True, help="File for the denoised image.")
@click.option(
    "--sigma", type=parameters.POSITIVE, help="Standard deviation of the noise, in grey values. [default: estimated]"
)
@click.option(
    "--flip",
    type=parameters.Real(0, 0.5, min_open=True, max_open=True),
    help="Probability that a black or white pixel was flipped.",
)
@click.option("--means", type=(float, float), metavar="DARK BRIGHT", help="Grey values without noise.")
@click.option(
    "--coupling",
    type=parameters.NOT_NEGATIVE,
    default=1.0,
    show_default=True,
    help="How strongly neighbours prefer equal values.",
)
@click.option("--levels", type=parameters.Integer(2), help="Number of grey levels. [default: 2]")
@click.option("--prior", type=parameters.Choice(PRIORS), default="potts", show_default=True)
@click.option(
    "--truncation",
    type=parameters.COUNT,
    help="Difference of levels from which the truncated-linear cost is constant. [default: a quarter]",
)
@click.option("--method", type=parameters.Choice(DENOISING), help="[default: herded-shared; herded-site with levels]")
@click.option("--damping", type=parameters.UP_TO_ONE, default=0.5, show_default=True, help="Step size of mean field.")
@click.option("--sweeps", type=parameters.COUNT, default=30, show_default=True)
@click.option("--rng", type=parameters.SEED, help="Seed, to repeat a run exactly.")
@click.option("--reference", type=parameters.INPUT, metavar="FILE", help="Clean image to compare with.")
@click.option(
    "--probability",
    type=parameters.OUTPUT,
    metavar="FILE",
    help="File for the probability of bright, or the expected grey value.",
)
@parameters.json_option
@parameters.quiet_option
def command(**given: Any) -> int:
    """Remove noise from the image NOISY: two levels, or grey with --levels.

    Files are PNG, JPEG, TIFF or another format of Pillow; "-" is stdin, or a PNG file on stdout. Colours are
    converted to grey. The noise of an image with two values is assumed to be flipped pixels, that of any
    other image to be Gaussian around two levels; parameters that are not given are estimated.
    """
    from gibbsite.applications import denoise, read_image, write_image
    from gibbsite.applications.images import encode_image
    from gibbsite.formats.parsing.plain_json import write_json

    _check_options(given)
    noisy = read_image(given["noisy"])
    reference = None if given["reference"] is None else read_image(given["reference"])
    # fail before the work if the format cannot hold the answer
    encode_image(noisy[:1, :1], given["out"])
    if given["probability"] is not None:
        encode_image(noisy[:1, :1] if (given["levels"] or 2) > 2 else noisy[:1, :1] > 0, given["probability"])
    names = ("sigma", "flip", "means", "coupling", "levels", "prior", "truncation", "method", "damping", "sweeps")
    done = denoise(
        noisy,
        reference=reference,
        rng=given["rng"],
        progress=False if given["quiet"] else None,
        **{name: given[name] for name in names},
    )
    if getattr(done.result, "interrupted", False):
        raise KeyboardInterrupt  # an incomplete image is not written
    deliver(given["out"], lambda out: write_image(done.image, out))
    if given["probability"] is not None:
        deliver(given["probability"], lambda out: write_image(_as_picture(done, noisy.dtype), out))
    if given["as_json"]:
        echo(write_json(_facts(done, given["sweeps"])))
    if not given["quiet"]:
        echo(done.line(), err=True)
    return 0


def _check_options(given: dict[str, Any]) -> None:
    """Refuse options that contradict each other or have no effect."""
    if given["sigma"] is not None and given["flip"] is not None:
        raise click.UsageError("--sigma is for Gaussian noise and --flip for flipped pixels; give one of them.")
    method = given["method"]
    if method is not None and not method.startswith("mean-field"):
        parameters.refuse(["damping"], f"with --method {method}")
    elif method is None:
        parameters.refuse(["damping"], "without --method mean-field")
    if (given["levels"] or 2) == 2:
        parameters.refuse(["prior", "truncation"], "on two levels")
    else:
        parameters.refuse(["flip"], "with --levels")
    if given["prior"] == "potts":
        parameters.refuse(["truncation"], "without --prior truncated-linear")
    if given["flip"] is not None:
        parameters.refuse(["means"], "with --flip")
    if [given["noisy"], given["reference"]].count("-") > 1:
        raise click.UsageError("NOISY and --reference cannot both be read from stdin.")
    if [given["out"], given["probability"], "-" if given["as_json"] else None].count("-") > 1:
        raise click.UsageError("only one of --output, --probability and --json can go to stdout.")


def _as_picture(done: Any, kind: Any) -> Any:
    """Return the posterior as pixels: 8 bits from black to white, or expected values in the type of the image."""
    import numpy as np

    if int(done.model.domains.cards[0]) == 2:
        return np.rint(255.0 * done.probability).astype(np.uint8)
    return done.probability.astype(kind) if kind.kind == "f" else np.rint(done.probability).astype(kind)


def _facts(done: Any, sweeps: int) -> dict[str, Any]:
    """Return a summary as plain data."""
    height, width = done.image.shape
    return {
        "width": width,
        "height": height,
        "method": done.method,
        "sweeps": sweeps,
        "sigma": done.sigma,
        "flip": done.flip,
        "means": list(done.means),
        "error": done.error,
        "seconds": done.seconds,
    }
