"""``gibbsite bugs``: sample from a model in the BUGS language, or show its full conditional distributions."""

from __future__ import annotations

import csv
import io
import os
import warnings
from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import parameters
from gibbsite.cli.answers import text_cell
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, note_on_compiling, warnings_on_stderr
from gibbsite.cli.wording import spelled

if TYPE_CHECKING:
    from gibbsite.applications.bugs.model import BugsModel
    from gibbsite.results import Result

_SWEEPS = 10_000  # where neither sweeps nor seconds are given
_LAYOUTS = {".json": "json", ".csv": "csv", ".txt": "table"}  # by suffix
_OF_RUNS = (
    *("inits", "sweeps", "warmup", "thin", "chains", "seconds", "rng", "threads", "checkpoint", "resume"),
    *("plot", "strict"),
)


class _Names(click.types.StringParamType):
    """Names of variables or elements, separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the names; commas between brackets belong to a name."""
        if not isinstance(value, str):
            return value
        names, depth = [""], 0
        for letter in value:
            depth += (letter == "[") - (letter == "]")
            if letter == "," and not depth:
                names.append("")
            else:
                names[-1] += letter
        names = [name.strip() for name in names]
        if not all(names):
            self.fail(f"{value!r} has an empty name.", param, ctx)
        return names


@click.command(
    "bugs",
    cls=Command,
    examples=(
        "gibbsite bugs rats.bug --data rats-data.R --monitor alpha.c,beta.c",
        "gibbsite bugs rats.bug --data rats-data.R --explain",
        "gibbsite bugs line.bug --data line.json --inits a.R --inits b.R --json -o line.json",
    ),
    common={
        "Model": ("data", "inits", "monitor", "explain", "latex"),
        "Run": ("sweeps", "warmup", "thin", "chains", "seconds", "rng"),
        "Answer": ("as_json", "out", "plot", "strict", "quiet"),
    },
    rare={"More of the run": ("threads", "checkpoint", "resume")},
    details=(
        "Without --monitor, the answer is about all unknowns that are not missing data, and deterministic numbers. "
        "It comes with a verdict on how far to trust it. Ctrl-C or SIGTERM ends a run early: the answer from the draws "
        "made by then is written, and the exit code is 130."
    ),
)
@click.argument("model", type=parameters.INPUT)
@click.option("--data", type=parameters.INPUT, metavar="FILE", help="Data: a dump of R, JSON, or data of WinBUGS.")
@click.option(
    "--inits",
    type=parameters.INPUT,
    metavar="FILE",
    multiple=True,
    help="Initial values of all chains; or repeat it, a file for each chain. [default: random]",
)
@click.option(
    "--monitor", type=_Names(), metavar="NAMES", help="Variables, or elements such as beta[1,2], separated by commas."
)
@click.option("--sweeps", type=parameters.COUNT, help=f"Number of sweeps of each chain. [default: {_SWEEPS}]")
@click.option("--warmup", type=parameters.Integer(0), help="Sweeps before these. [default: a tenth]")
@click.option("--thin", type=parameters.COUNT, default=1, show_default=True, help="Keep the draw of every Nth sweep.")
@click.option("--chains", type=parameters.COUNT, help="[default: 4, or one for each file of --inits]")
@click.option("--seconds", type=parameters.POSITIVE, help="Time limit of sampling.")
@click.option("--rng", type=parameters.SEED, help="Seed, to repeat a run exactly.")
@click.option("--threads", type=parameters.COUNT, help="[default: all cores]")
@click.option("--checkpoint", type=parameters.FILE_OUTPUT, help="File to save the run to, so that it can be resumed.")
@click.option("--resume", is_flag=True, help="Continue from the checkpoint.")
@click.option("--explain", is_flag=True, help="Show full conditional distributions; do not sample.")
@click.option("--latex", is_flag=True, help="Show them in LaTeX (--explain).")
@parameters.json_option
@click.option("-o", "--output", "out", type=parameters.OUTPUT, help="File to write: .json, .csv or .txt, also .gz.")
@click.option("--plot", type=parameters.PICTURE, metavar="FILE", help="Plot the draws of monitored quantities.")
@click.option("--strict", is_flag=True, help="Exit with 4 unless converged.")
@parameters.quiet_option
def command(**given: Any) -> int:
    """Sample from MODEL, a file in the BUGS language, as JAGS does.

    The answer is a table: mean, standard deviation, Monte Carlo error, effective sample size, R-hat and quantiles.
    """
    import gibbsite as gs
    from gibbsite.errors import ConvergenceWarning
    from gibbsite.formats.parsing.text import save

    layout = _check_options(given)
    with warnings_on_stderr(given["quiet"]):
        # a path, whatever its name looks like
        model = gs.bugs(_path(given["model"]), given["data"], given["monitor"])
        if given["explain"]:
            shown = _explanation(model, layout, given["latex"])
            deliver(given["out"] or "-", lambda out: save(out, shown), text=True)
            return 0
        with note_on_compiling(given["quiet"]):
            warnings.simplefilter("ignore", ConvergenceWarning)  # its reasons are printed below
            result = model.sample(**_run_options(given))
    try:
        answer = _answer(model, result, layout)
        deliver(given["out"] or "-", lambda out: save(out, answer), text=True)
        if given["plot"] is not None:
            gs.plot_trace(result, path=given["plot"])
    finally:
        if not given["quiet"]:
            echo(spelled(result.diagnostics.line()), err=True)
            for reason in result.diagnostics.reasons:
                echo(f"  {spelled(reason)}", err=True)
    if result.interrupted:
        return 130
    return 4 if given["strict"] and not result.diagnostics.converged else 0


def _check_options(given: dict[str, Any]) -> str:
    """Refuse options that contradict each other or have no effect; return the layout of the answer."""
    if given["explain"]:
        parameters.refuse(_OF_RUNS, "with --explain")
    else:
        parameters.refuse(["latex"], "without --explain")
    if given["resume"] and given["checkpoint"] is None:
        raise click.UsageError("--resume needs --checkpoint, the file to save to and continue from.")
    files = given["inits"]
    if len(files) > 1 and given["chains"] not in (None, len(files)):
        raise click.UsageError(
            f"--chains {given['chains']} and {len(files)} files of --inits contradict each other; give one file for "
            "all chains, or one for each chain."
        )
    if [given["model"], given["data"], *files].count("-") > 1:
        raise click.UsageError("only one of MODEL, --data and --inits can be read from stdin.")
    suffix = os.path.splitext((given["out"] or "").lower().removesuffix(".gz"))[1]
    if suffix and suffix not in _LAYOUTS:
        raise click.UsageError(f"the suffix {suffix} belongs to no output format; use {', '.join(_LAYOUTS)}.")
    return "json" if given["as_json"] else _LAYOUTS.get(suffix, "table")


def _path(name: str) -> Any:
    """Return the path of a file, or for "-" the text on stdin."""
    from pathlib import Path

    from gibbsite.formats.parsing.text import load

    return load("-").decoded() + "\n" if name == "-" else Path(name)


def _run_options(given: dict[str, Any]) -> dict[str, Any]:
    """Collect the arguments of the run."""
    import gibbsite as gs

    files = list(given["inits"])
    chosen = {name: given[name] for name in ("seconds", "warmup", "rng", "threads") if given[name] is not None}
    sweeps = given["sweeps"] or (None if given["seconds"] is not None else _SWEEPS)
    if given["thin"] > 1:
        sweeps = gs.Sweeps(sweeps, thin=given["thin"])
    if given["checkpoint"] is not None:
        chosen["checkpoint"] = gs.Checkpoint(given["checkpoint"], resume=given["resume"])
    return {
        **chosen,
        "sweeps": sweeps,
        "chains": given["chains"] or (len(files) if len(files) > 1 else 4),
        "inits": files[0] if len(files) == 1 else files or None,
        "progress": False if given["quiet"] else None,
    }


def _explanation(model: BugsModel, layout: str, latex: bool) -> str:
    """Return the full conditional distributions, one in a line or as JSON."""
    from dataclasses import asdict

    from gibbsite.formats.parsing.plain_json import write_json

    found = model.conditionals()
    if layout == "json":
        return write_json({"conditionals": [asdict(each) for each in found]}) + "\n"
    return "".join(f"{each.latex if latex else each}\n" for each in found)


def _answer(model: BugsModel, result: Result, layout: str) -> str:
    """Return the statistics of what is monitored as a table, as CSV or, with the verdict, as JSON."""
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.results.statistics import statistics_lines

    # a run that ended before its first draw has none
    table = result.statistics(model.monitored_sites) if result.n_draws else {}
    if layout == "json":
        updates = {each.name: {"formula": each.formula, "update": each.update} for each in model.conditionals()}
        verdict = result.diagnostics.to_dict()
        return write_json({"summary": table, "diagnostics": verdict, "updates": updates}) + "\n"
    if layout == "csv":
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["element", *next(iter(table.values()), {})])
        writer.writerows([text_cell(name), *map(repr, row.values())] for name, row in table.items())
        return file.getvalue()
    return "".join(f"{line}\n" for line in statistics_lines(table))
