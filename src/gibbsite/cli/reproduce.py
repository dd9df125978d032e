"""``gibbsite reproduce``: run the experiments of papers again; ``gibbsite data``: convert their data for that."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, tell, warnings_on_stderr
from gibbsite.cli.parameters import EXPERIMENT, FOLDER, Choice, json_option, quiet_option, refuse, rng_option


@click.command(
    "reproduce",
    cls=Command,
    examples=(
        "gibbsite reproduce",
        "gibbsite reproduce herded-two-variables --quick",
        "gibbsite reproduce all -o results",
        "gibbsite reproduce herded-entities --data ~/papers",
    ),
)
@click.argument("name", required=False, type=EXPERIMENT)
@click.option(
    "--quick",
    is_flag=True,
    help="Run a smaller version, with 3 to 40 seconds of processor time, instead of the paper's settings.",
)
@click.option(
    "--long",
    "long",
    is_flag=True,
    help="Make the 10^6 draws of the paper (poisson-mixture, poisson-mh), for hours; a run that was stopped continues.",
)
@click.option("-o", "--output", "folder", type=FOLDER, metavar="DIR", help="Folder for the files. [default: ./NAME]")
@click.option("--data", metavar="DIR", help="Folder with the data of the papers. [default: $GIBBSITE_DATA]")
@rng_option
@click.option("--on", metavar="CLUSTER", help="Run replicates on workers, as gibbsite infer --on does.")
@json_option
@quiet_option
def command(
    name: str | None,
    quick: bool,
    long: bool,
    folder: str | None,
    data: str | None,
    rng: int,
    on: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the experiment NAME, or "all" of them; without a NAME, list them.

    Prints the claims of the paper beside what is found here, and saves NAME.json and NAME.png in DIR ("all":
    in one folder per experiment, in DIR, each in a process of its own).

    Experiments on photographs, silhouettes and news read them from the folder of --data or from the one that
    the environment variable GIBBSITE_DATA names; docs/data.md has its layout. Without them they use data that are
    made up. The first line of a run says which data it uses.
    """
    from gibbsite import lab
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.lab.data import data_folder, describe_data, require
    from gibbsite.lab.experiment import make_folder

    if name is None:
        refuse(["quick", "long", "folder", "data", "rng", "on"], "without the NAME of an experiment")
        _list(as_json)
        return
    chosen = lab.experiments() if name == "all" else [lab.find(name)]
    places = [Path(folder or "") / e.name if name == "all" or not folder else Path(folder) for e in chosen]
    for place in places:  # fail before the long run if a folder cannot be made
        make_folder(place)
    with data_folder(data):
        for experiment in chosen if data is not None else []:
            require(experiment.data)
    if name == "all":
        refuse(["long"], "with all")
        how = ["--rng", str(rng), *(["--data", data] if data else []), *(["--on", on] if on else [])]
        how += [word for word, given in (("--quick", quick), ("--json", as_json), ("--quiet", quiet)) if given]
        _run_apart({e.name: place for e, place in zip(chosen, places, strict=True)}, how, as_json)
        return
    experiment, place = chosen[0], places[0]
    if not as_json:
        with data_folder(data):
            echo(describe_data(experiment.data))
        echo(f"{experiment.name}: {experiment.title}\n({experiment.source})\n")
    kept = place if long else None
    shown = False if quiet else None
    findings = lab.run(experiment.name, quick=quick, long=kept, rng=rng, data=data, progress=shown, on=on)
    if not as_json:
        echo(replace(findings, data="").text() + "\n")
    with warnings_on_stderr():
        paths = deliver(str(place), partial(experiment.save, findings))
    tell(f"{findings.seconds:.0f} s, saved {' and '.join(map(str, paths))}", quiet)
    if as_json:
        echo(write_json(findings.to_dict(), indent=None))


def _run_apart(places: Mapping[str, Path], how: Sequence[str], as_json: bool) -> None:
    """Run each experiment in a process of its own, so that its compiled code and its data do not stay in memory."""
    found = []
    for name, place in places.items():
        command = [sys.executable, "-m", "gibbsite", "reproduce", name, "-o", str(place), *how]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE if as_json else None)
        if done.returncode:
            raise click.exceptions.Exit(done.returncode if done.returncode > 0 else 1)
        found += [json.loads(done.stdout)] if as_json else []
    if as_json:
        echo(json.dumps(found))


def _list(as_json: bool) -> None:
    """Print the names, titles and sources of all experiments."""
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


@click.command(
    "data",
    cls=Command,
    examples=(
        "gibbsite data msrc MSRC_ObjCategImageDatabase_v2 ~/papers",
        "gibbsite data ieer nltk_data/corpora/ieer ~/papers",
        "gibbsite reproduce herded-entities --data ~/papers",
    ),
)
@click.argument("name", type=Choice(("msrc", "mpeg7", "ieer", "newswire")))
@click.argument("source", type=FOLDER)
@click.argument("folder", type=FOLDER)
@quiet_option
def data_command(name: str, source: str, folder: str, quiet: bool) -> None:
    """Convert the data NAME, unpacked in the folder SOURCE, and put them into FOLDER for gibbsite reproduce.

    msrc are photographs with label maps (BMP), mpeg7 silhouettes (GIF), ieer news with marks of NIST, and
    newswire the articles of en-worldwide-newswire. docs/data.md says where they are and under which terms.
    """
    from gibbsite.lab.conversion import convert

    with warnings_on_stderr(quiet):
        found = convert(name, source, folder)
    places = sorted({str(path.parent) for path in found.paths})
    tell(f"{found.contents}, in {places[0] if len(places) == 1 else ' and '.join(places)}", quiet)
