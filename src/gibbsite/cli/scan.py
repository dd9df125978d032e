"""``gibbsite scan``: a scan optimised for what one wants to know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import inputs

if TYPE_CHECKING:
    from gibbsite.influence import DogsScan
    from gibbsite.model import FactorGraph

_MOST = 15  # sites shown


@click.command("scan")
@inputs.model_argument
@inputs.format_option
@inputs.evidence_option
@inputs.observe_option
@inputs.target_option
@click.option("--accuracy", type=float, help="Bias to allow; the shortest scan found is kept.")
@click.option("--steps", type=int, help="Length of the scan; with --accuracy, the longest to allow.")
@click.option("--iterations", type=int, default=1, show_default=True, help="Passes of improvement.")
@inputs.scan_option
@click.option("-o", "--output", "out", help="Save the scan there (.npz), for gs.load_scan and --scan.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, the order included.")
@click.option("--plot", metavar="FILE", help="Draw how the bound falls, before and after.")
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr.")
def command(**given: Any) -> int:
    """Choose the order of visits that makes MODEL's target sites forget their start soonest (DoGS).

    The result is improved from the scan given by --scan and has a guarantee: a bound on the bias after one
    pass, from any start.
    """
    from gibbsite.influence import certify, dogs

    model = inputs.load_observed(given)
    sites, initial = inputs.read_sites(model, given["target"]), inputs.read_scan(given["scan"])
    with inputs.note_on_compiling(given["quiet"]):
        found = dogs(
            model,
            target=sites,
            accuracy=given["accuracy"],
            steps=given["steps"],
            iterations=given["iterations"],
            initial=initial,
        )
    if given["out"] is not None:
        found.save(given["out"])
    if given["plot"] is not None:
        from gibbsite.report import plot_variation

        length = len(found.order)
        before = certify(model, scan=initial, steps=length, target=sites)
        plot_variation({given["scan"]: before, "optimised": found.certify(model)}, path=given["plot"])
    click.echo(json.dumps(as_data(found, model), indent=1) if given["as_json"] else as_table(found, model))
    if not given["quiet"]:
        click.echo(
            f"{len(found.order)} steps guarantee a bias of at most {found.variation:.4g} from any start; as "
            f"many of the {given['scan']} scan {found.input_variation:.4g}.",
            err=True,
        )
    return 0


def as_data(found: DogsScan, model: FactorGraph) -> dict[str, Any]:
    """Return the scan as JSON values, sites by name."""
    names = model.sites
    return {
        "steps": len(found.order),
        "variation": found.variation,
        "input_variation": found.input_variation,
        "target": [names[i] for i in found.targets],
        "order": [names[i] for i in found.order],
    }


def as_table(found: DogsScan, model: FactorGraph) -> str:
    """Return how often and when last each site is visited, the most visited first."""
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
