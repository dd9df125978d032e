"""``gibbsite score``: how probable cases are under a model, and how well it predicts a target."""

from __future__ import annotations

from typing import Any

import click

from gibbsite.cli import inputs
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, tell
from gibbsite.cli.parameters import INPUT, MODEL, OUTPUT, Integer, json_option, quiet_option
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import save

_MOST_SHOWN = 10  # rows with problems that are named


@click.command(
    "score",
    cls=Command,
    examples=("gibbsite score alarm cases.csv", "gibbsite score network.bif cases.csv --target disease --json"),
)
@click.argument("model", type=MODEL)
@click.argument("cases", type=INPUT)
@inputs.format_option
@click.option("--target", metavar="SITE", help="Predict this column from all others.")
@click.option("--bins", type=Integer(1), default=10, show_default=True, help="Bins of the calibration table.")
@click.option("--threads", type=Integer(1), help="[default: all cores]")
@json_option
@click.option("-o", "--output", "out", type=OUTPUT, help="File to write.")
@quiet_option
def command(**given: Any) -> int:
    """Score MODEL on CASES, a CSV or Parquet file with a row for each case.

    Prints the log-likelihood of the cases and, for a target, accuracy, log loss, Brier score, a table of what came true
    against what was most probable, and a calibration table.
    """
    from gibbsite.applications.cases.score import score_cases

    model = inputs.load(given["model"], given["from_format"])
    found = score_cases(model, given["cases"], given["target"], bins=given["bins"], threads=given["threads"])
    text = write_json(found.to_dict()) if given["as_json"] else str(found)
    deliver(given["out"] or "-", lambda out: save(out, text + "\n"), text=True)
    if not given["quiet"]:
        for problem in list(found.problems.values())[:_MOST_SHOWN]:
            tell(problem)
        if len(found.problems) > _MOST_SHOWN:
            echo(f"... and {len(found.problems) - _MOST_SHOWN:,} more rows with problems", err=True)
    return 0
