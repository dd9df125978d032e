"""``gibbsite reproduce``: experiments of papers, run again."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import click

from gibbsite.cli.outputs import deliver, echo
from gibbsite.cli.parameters import FOLDER, SEED, Experiment, refuse


@click.command("reproduce")
@click.argument("name", required=False, type=Experiment())
@click.option("--quick", is_flag=True, help="Smaller, in seconds; the default has the paper's settings.")
@click.option("-o", "--output", "folder", type=FOLDER, metavar="DIR", help="Where to save.  [default: ./NAME]")
@click.option("--rng", type=SEED, default=1, show_default=True, help="Seed.")
@click.option("--on", metavar="CLUSTER", help="Make replicates on workers, as in gibbsite infer --on.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON; without a NAME, the list.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
def command(
    name: str | None, quick: bool, folder: str | None, rng: int, on: str | None, as_json: bool, quiet: bool
) -> None:
    """Run the experiment NAME, or "all" of them; without a NAME, list them.

    Prints what the paper says beside what is found here, and saves NAME.json and NAME.png in DIR ("all": in a
    folder NAME each, in DIR).
    """
    from gibbsite import lab
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.lab.experiment import make_folder

    if name is None:
        refuse(["quick", "folder", "rng", "on"], "without the NAME of an experiment")
        _list(as_json)
        return
    chosen = lab.experiments() if name == "all" else [lab.find(name)]
    places = [Path(folder or "") / e.name if name == "all" or not folder else Path(folder) for e in chosen]
    for place in places:  # a folder that cannot be made is known before the long run
        make_folder(place)
    found = []
    for experiment, place in zip(chosen, places, strict=True):
        if not as_json:
            echo(f"{experiment.name}: {experiment.title}\n({experiment.source})\n")
        findings = lab.run(experiment.name, quick=quick, rng=rng, progress=False if quiet else None, on=on)
        if as_json:
            found.append(findings.to_dict())
        else:
            echo(findings.text() + "\n")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            paths = deliver(str(place), partial(experiment.save, findings))
        for warning in caught:
            if issubclass(warning.category, UserWarning):
                echo(f"gibbsite: {warning.message}", err=True)
        if not quiet:
            saved = " and ".join(map(str, paths))
            echo(f"gibbsite: {findings.seconds:.0f} s, saved {saved}", err=True)
    if as_json:
        echo(write_json(found if name == "all" else found[0], indent=None))


def _list(as_json: bool) -> None:
    """Print names, titles and sources."""
    from gibbsite import lab

    known = lab.experiments()
    if as_json:
        from gibbsite.formats.parsing.plain_json import write_json

        echo(write_json([{"name": e.name, "title": e.title, "source": e.source} for e in known], None))
        return
    width = max(len(experiment.name) for experiment in known)
    for experiment in known:
        echo(f"{experiment.name:<{width}}  {experiment.title}")
    echo("\nRun one with: gibbsite reproduce NAME [--quick]")
