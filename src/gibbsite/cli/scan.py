"""``gibbsite scan``: optimise the order of updates for some target sites (DoGS)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import inputs
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, note_on_compiling
from gibbsite.cli.parameters import COUNT, FILE_OUTPUT, PICTURE, POSITIVE, json_option, quiet_option, read_scan

if TYPE_CHECKING:
    from gibbsite.inference.influence import DogsScan
    from gibbsite.models import FactorGraph

_MOST = 15  # sites shown


@click.command(
    "scan",
    cls=Command,
    examples=(
        "gibbsite scan lattice.uai --target 12,13 --steps 2000 -o near.npz",
        "gibbsite infer lattice.uai --method gibbs --scan near.npz --query 12,13",
    ),
)
@inputs.takes_model
@inputs.target_option
@click.option("--accuracy", type=POSITIVE, help="Bias to allow; find the shortest scan that reaches it.")
@click.option("--steps", type=COUNT, help="Length of the scan; with --accuracy, the longest to allow.")
@click.option("--iterations", type=COUNT, default=1, show_default=True, help="Passes of improvement.")
@inputs.scan_option
@click.option("-o", "--output", "out", type=FILE_OUTPUT, help="File for the scan (.npz), for gs.load and --scan.")
@json_option
@click.option("--plot", type=PICTURE, metavar="FILE", help="Plot the bound before and after.")
@quiet_option
def command(**given: Any) -> int:
    """Find an order of updates that makes the target sites of MODEL forget their start quickly (DoGS).

    The search starts from the scan given by --scan. The result comes with a guarantee: a bound on the bias
    after one pass, from any start.
    """
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.inference.influence import certify, dogs

    model = inputs.load_observed(given)
    sites, initial = inputs.read_sites(model, given["target"]), read_scan(given["scan"])
    with note_on_compiling(given["quiet"]):
        found = dogs(
            model,
            target=sites,
            accuracy=given["accuracy"],
            steps=given["steps"],
            iterations=given["iterations"],
            initial=initial,
        )
    if given["out"] is not None:
        deliver(given["out"], found.save)
    length = len(found.order)
    certificate = found.certify(model)
    if given["plot"] is not None:
        from gibbsite.results.plots import plot_variation

        before = certify(model, scan=initial, steps=length, target=sites)
        plot_variation({before.scan: before, "optimised": certificate}, path=given["plot"])
    echo(write_json(as_data(found, model)) if given["as_json"] else as_table(found, model))
    if not given["quiet"]:
        echo(certificate.statement, err=True)
        if not certificate.vacuous:
            name = given["scan"] or "systematic"
            echo(f"The same number of steps of the {name} scan: {_bound(found.input_variation)}.", err=True)
    return 0


def _bound(variation: float) -> str:
    """Return a bound in words; an infinite one says nothing."""
    return f"at most {variation:.4g}" if math.isfinite(variation) else "nothing is known"


def as_data(found: DogsScan, model: FactorGraph) -> dict[str, Any]:
    """Return the scan as plain data, with sites by name."""
    names = model.sites
    return {
        "steps": len(found.order),
        "variation": found.variation,
        "input_variation": found.input_variation,
        "target": [names[i] for i in found.targets],
        "order": [names[i] for i in found.order],
    }


def as_table(found: DogsScan, model: FactorGraph) -> str:
    """Return a table of how often and when last each site is visited, the most visited first."""
    import numpy as np

    visits = np.bincount(found.order, minlength=model.n_sites)
    last = np.full(model.n_sites, -1)
    last[found.order] = np.arange(1, len(found.order) + 1)
    often = np.lexsort((-last, -visits))[: np.count_nonzero(visits)]
    names = [model.sites[i] for i in often[:_MOST]]
    width = max([4, *(len(name) for name in names)])
    lines = [f"{'site':<{width}}  visits  last at step"]
    for name, i in zip(names, often[:_MOST], strict=True):
        lines.append(f"{name:<{width}}  {visits[i]:>6}  {last[i]:>12}")
    if often.size > _MOST:
        lines.append(f"... and {often.size - _MOST} more of {model.n_sites} sites (--json)")
    return "\n".join(lines)
