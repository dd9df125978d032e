"""``gibbsite certify``: bound the bias of a scan before sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import inputs
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import echo, note_on_compiling
from gibbsite.cli.parameters import PICTURE, POSITIVE, Integer, json_option, quiet_option, read_scan

if TYPE_CHECKING:
    from gibbsite.inference.influence import Certificate

_ROWS = 12  # of the table of bounds


@click.command(
    "certify",
    cls=Command,
    examples=(
        "gibbsite certify alarm --observe CO=LOW --target HYPOVOLEMIA",
        "gibbsite certify lattice.uai --accuracy 0.001 --plot bound.png",
    ),
)
@inputs.takes_model
@inputs.target_option
@inputs.scan_option
@click.option("--steps", type=Integer(0), help="Number of steps; with --accuracy, the most to allow.")
@click.option("--accuracy", type=POSITIVE, help="Find how many steps reach this bias. [default: 0.01, unless --steps]")
@json_option
@click.option("--plot", type=PICTURE, metavar="FILE", help="Plot the bound against the number of steps.")
@click.option("--strict", is_flag=True, help="Exit with 4 if the bound is vacuous or not reached.")
@quiet_option
def command(**given: Any) -> int:
    """Bound the bias of Gibbs sampling on MODEL from any start, without sampling.

    The bound is on the total variation distance of the target sites (all by default). It follows from how
    strongly sites influence each other; if that is too strong the bound is vacuous, and the command says so.
    """
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.inference.influence import certify

    model = inputs.load_observed(given)
    accuracy = given["accuracy"]
    if accuracy is None and given["steps"] is None:
        accuracy = 0.01
    with note_on_compiling(given["quiet"]):
        found = certify(
            model,
            scan=read_scan(given["scan"]),
            target=inputs.read_sites(model, given["target"]),
            steps=given["steps"],
            accuracy=accuracy,
        )
    if given["plot"] is not None:
        from gibbsite.results.plots import plot_variation

        plot_variation(found, path=given["plot"])
    echo(write_json(found.to_dict()) if given["as_json"] else as_table(found))
    if not given["quiet"]:
        echo(found.statement, err=True)
    return 4 if given["strict"] and (found.vacuous or not found.reached) else 0


def as_table(found: Certificate) -> str:
    """Return the certificate as a table: the influence, then bounds by number of steps."""
    import numpy as np

    norms = found.influence.norms
    side = "< 1" if found.influence.total < 1 else ">= 1"
    sizes = f"row sum {norms.row_sum:.4g}  column sum {norms.column_sum:.4g}  spectral {norms.spectral:.4g}"
    trivial = float(found.weights.sum())
    lines = [
        f"influence  {sizes}  radius {norms.radius:.4g}  total {side}",
        "",
        f"{'steps':>12}  bias at most (expected number of sites in another state, of {trivial:g})",
    ]
    last = found.curve_steps.size - 1
    shown = np.unique(np.linspace(0, last, min(_ROWS, last + 1)).round().astype(int)).tolist()
    bounds = [f"{v:.4g}" if v < trivial else "vacuous" for v in found.curve.tolist()]
    return "\n".join(lines + [f"{found.curve_steps[k]:>12}  {bounds[k]}" for k in shown])
