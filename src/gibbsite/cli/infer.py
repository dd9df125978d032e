"""``gibbsite infer``: the main job."""

from __future__ import annotations

import warnings
from typing import Any

import click

from gibbsite.cli.inputs import (
    evidence_option,
    format_option,
    load,
    model_argument,
    observe,
    observe_option,
    read_scan,
    read_sites,
    scan_option,
)
from gibbsite.inference import METHODS, TASKS

_TASKS = click.Choice(TASKS, case_sensitive=False)


@click.command("infer")
@model_argument
@format_option
@evidence_option
@observe_option
@click.option("--task", type=_TASKS, default="MAR", help="Marginals, most probable state, log-partition.")
@click.option("--method", type=click.Choice(list(METHODS)), default="auto", show_default=True)
@scan_option
@click.option("--sweeps", type=int, help="Sweeps of each chain after the warmup.")
@click.option("--seconds", type=float, help="Time limit of sampling. [default: 10, unless --sweeps]")
@click.option("--accuracy", type=float, default=0.01, show_default=True, help="Largest error to allow.")
@click.option("--best", type=int, default=1, metavar="N", help="Give the N best states (MAP).")
@click.option("--warmup", type=int, help="Sweeps before recording. [default: a tenth]")
@click.option("--chains", type=int, default=4, show_default=True)
@click.option("--damping", type=float, help="Step of mean field, in (0, 1]. [default: 1]")
@click.option("--parallel", is_flag=True, help="Mean field renews all sites at once.")
@click.option("--threads", type=int, help="[default: all cores]")
@click.option("--rng", type=int, help="Seed; repeats a run exactly.")
@click.option("--query", metavar="SITES", help="Only these sites, separated by commas.")
@click.option("--all", "show_all", is_flag=True, help="Show every site in the table.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--format", "layout", type=click.Choice(["table", "json", "uai", "csv"]), default="table")
@click.option("-o", "--output", "out", help="Write the answer there instead of stdout.")
@click.option("--checkpoint", help="Save the run there now and then.")
@click.option("--resume", is_flag=True, help="Continue from the checkpoint.")
@click.option("--strict", is_flag=True, help="Exit with 4 if the run has not converged.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no verdict on stderr.")
def command(**given: Any) -> int:
    """Posterior marginals, a most probable state, or the log-partition function of MODEL.

    MODEL is a .uai, .bif, .xmlbif, .bqm or .coo file, optionally gzipped, or "-" for stdin. The method is
    chosen by itself: exact if that is cheap, otherwise Gibbs sampling, or annealing for a most probable
    state, with a verdict on how far to trust it.
    "herded" and "herded-shared" count instead of drawing, "quasi" draws with even numbers (MAR); "poisson"
    reads minibatches of factors, for pairwise models of very many; "annealed"
    looks for a most probable state (MAP); "mean-field" gives approximate marginals (MAR) and a lower bound of
    the log-partition function (PR).
    """
    from gibbsite.cli import answers
    from gibbsite.errors import ConvergenceWarning
    from gibbsite.inference import infer

    if given["best"] > 1 and not given["as_json"] and given["layout"] in ("uai", "csv"):
        raise click.UsageError(f"--format {given['layout']} holds one state; use json or table for --best.")
    model = load(given["model"], given["from_format"])
    patient = observe(model, given["evidence"], given["observe"])
    sites = read_sites(model, given["query"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed below
        answer = infer(
            patient,
            given["task"],
            method=given["method"],
            seconds=given["seconds"],
            sweeps=given["sweeps"],
            accuracy=given["accuracy"],
            best=given["best"],
            progress=False if given["quiet"] else None,
            **_run_options(given),
        )
    layout = "json" if given["as_json"] else given["layout"]
    answers.write(answer, model, layout, sites, given["show_all"], given["out"] or "-")
    if not given["quiet"]:
        click.echo(answer.line(), err=True)
        for reason in answer.reasons:
            click.echo(f"  {reason}", err=True)
        for remark in answer.remarks:
            click.echo(f"note: {remark}", err=True)
    if answer.interrupted:
        return 130
    return 4 if given["strict"] and not answer.converged else 0


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Collect the arguments of the sampler that were given."""
    names = ("warmup", "chains", "threads", "rng", "checkpoint", "resume", "parallel")
    damping = {} if given["damping"] is None else {"damping": given["damping"]}
    return {"scan": read_scan(given["scan"]), **{name: given[name] for name in names}, **damping}
