"""``gibbsite denoise``: an image file in, a cleaner one out."""

from __future__ import annotations

from typing import Any

import click

_METHODS = (
    "herded-shared",
    "herded",
    "herded-site",
    "gibbs",
    "mean-field",
    "mean-field-parallel",
    "icm",
    "annealed",
)


@click.command("denoise")
@click.argument("noisy", type=str)
@click.option("-o", "--output", "out", required=True, help="Write the denoised image there.")
@click.option(
    "--sigma", type=float, help="Standard deviation of the noise, in grey values. [default: estimated]"
)
@click.option("--flip", type=float, help="Probability that a black or white pixel was flipped.")
@click.option("--means", type=(float, float), metavar="DARK BRIGHT", help="Grey values without noise.")
@click.option(
    "--coupling", type=float, default=1.0, show_default=True, help="Preference of equal neighbours."
)
@click.option("--levels", type=int, help="Number of grey levels. [default: 2]")
@click.option("--prior", type=click.Choice(["potts", "truncated-linear"]), default="potts", show_default=True)
@click.option(
    "--truncation", type=int, help="Levels at which a truncated-linear cost ends. [default: a quarter]"
)
@click.option(
    "--method", type=click.Choice(_METHODS), help="[default: herded-shared; herded-site with levels]"
)
@click.option("--damping", type=float, default=0.5, show_default=True, help="Step of mean field.")
@click.option("--sweeps", type=int, default=30, show_default=True)
@click.option("--rng", type=int, help="Seed; repeats a run exactly.")
@click.option("--reference", metavar="FILE", help="Clean image to report errors against.")
@click.option(
    "--probability", metavar="FILE", help="Write the posterior map (of bright, or expected grey) there."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary on stderr.")
def command(**given: Any) -> int:
    """Remove noise from the image NOISY: two levels, or grey with --levels.

    Files are PNG, JPEG, TIFF and what else Pillow reads; colours become grey. An image with two values is
    taken as flipped pixels, any other as two levels in Gaussian noise; what is not given is estimated.
    """
    from gibbsite.applications import denoise, read_image, write_image

    noisy = read_image(given["noisy"])
    reference = None if given["reference"] is None else read_image(given["reference"])
    names = (
        "sigma",
        "flip",
        "means",
        "coupling",
        "levels",
        "prior",
        "truncation",
        "method",
        "damping",
        "sweeps",
    )
    done = denoise(
        noisy,
        reference=reference,
        rng=given["rng"],
        progress=False if given["quiet"] else None,
        **{name: given[name] for name in names},
    )
    write_image(done.image, given["out"])
    if given["probability"] is not None:
        write_image(_as_picture(done, noisy.dtype), given["probability"])
    if given["as_json"]:
        click.echo(_json(done, given["sweeps"]), nl=True)
    if not given["quiet"]:
        click.echo(done.line(), err=True)
    return 130 if getattr(done.result, "interrupted", False) else 0


def _as_picture(done: Any, kind: Any) -> Any:
    """Return the posterior map as pixels: 8 bits from black to white, or expected values as the image has."""
    import numpy as np

    if int(done.model.domains.cards[0]) == 2:
        return np.rint(255.0 * done.probability).astype(np.uint8)
    return done.probability.astype(kind) if kind.kind == "f" else np.rint(done.probability).astype(kind)


def _json(done: Any, sweeps: int) -> str:
    import json

    height, width = done.image.shape
    return json.dumps(
        {
            "width": width,
            "height": height,
            "method": done.method,
            "sweeps": sweeps,
            "sigma": done.sigma,
            "flip": done.flip,
            "means": list(done.means),
            "error": done.error,
            "seconds": done.seconds,
        },
        indent=1,
    )
