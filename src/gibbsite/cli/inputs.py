"""What several commands share: reading a model, its evidence and sites."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gibbsite._common.wording import nearest
from gibbsite.cli.outputs import echo
from gibbsite.cli.parameters import FORMAT, INPUT, MODEL, SCAN, SCANS
from gibbsite.errors import ArgumentError, FormatError, UnknownFormatError

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model
    from gibbsite.models.stored import StoredPairs

model_argument = click.argument("model", type=MODEL)
format_option = click.option("--from", "from_format", type=FORMAT, help="Format of MODEL (uai, bif, ...).")
evidence_option = click.option("-e", "--evidence", type=INPUT, help="Evidence file: UAI, NAME=STATE lines, or JSON.")
observe_option = click.option(
    "--observe", multiple=True, metavar="SITE=STATE", help="Evidence on the command line; may be repeated."
)
scan_option = click.option(
    "--scan",
    type=SCAN,
    metavar="SCAN",
    help=f"{', '.join(SCANS)}, or a file saved by gibbsite scan. [default: systematic; for sampling, "
    "chromatic where many sites move at once]",
)
target_option = click.option("--target", metavar="SITES", help="Sites, separated by commas. [default: all]")


@contextmanager
def note_on_compiling(quiet: bool) -> Iterator[None]:
    """Say on stderr why the first call of all takes longer."""
    from gibbsite._numba.jit import announcing

    with announcing(lambda said: None if quiet else echo(said, err=True), "this command"):
        yield


def read_sites(model: Model, query: str | None) -> list[str] | None:
    """Split a list of sites; refuse unknown ones."""
    if query is None:
        return None
    names = [name.strip() for name in query.split(",") if name.strip()]
    if not names:
        raise click.UsageError("the list of sites is empty; name one, or leave the option out.")
    for name in names:
        model.index(name)
    return names


def say(message: str, opening: str = "") -> None:
    """Print a message of the library on stderr, in the spelling of the command that runs."""
    echo(opening + as_said(message), err=True)


def as_said(message: str) -> str:
    """Return a message of the library in the spelling of the command that runs."""
    from gibbsite.cli.wording import in_options

    context = click.get_current_context(silent=True)
    return message if context is None else in_options(message, context.command)


def load_observed(given: dict[str, Any]) -> FactorGraph:
    """Read the model a command was given and fold in the evidence."""
    found: FactorGraph = observe(load(given["model"], given["from_format"]), given["evidence"], given["observe"])
    return found


def load_any(model: str, from_format: str | None, verify: bool = False) -> FactorGraph | StoredPairs:
    """Read a model as :func:`load` does, or open a stored one, which stays in its folder."""
    from gibbsite.formats.files import is_stored

    if not is_stored(model):
        if verify:
            raise click.UsageError("--verify is about the checksums of stored models (.pairs); leave it out.")
        return load(model, from_format)
    if from_format is not None:
        raise click.UsageError("--from has no effect on a stored model; leave it out.")
    from gibbsite.models.stored import open_model

    return open_model(model, verify)


def load(model: str, from_format: str | None) -> FactorGraph:
    """Read a model file, or stdin for "-"; a name that is no file may be that of an example."""
    from gibbsite.formats import read_model
    from gibbsite.formats.examples import EXAMPLES, example_path

    if model in EXAMPLES and not os.path.exists(model):
        model = str(example_path(model))
    elif model != "-" and not os.path.exists(model) and (near := nearest(model, EXAMPLES)) is not None:
        raise FormatError(f"there is no such file; did you mean the example {near}?", model)
    with format_given_by("--from FORMAT"):
        return read_model(model, from_format)


@contextmanager
def format_given_by(option: str) -> Iterator[None]:
    """Let errors about an unknown format name the option that would tell it."""
    try:
        yield
    except UnknownFormatError as error:
        raise error.given_by(option) from None


def observe(model: Any, evidence: str | None, observed: tuple[str, ...]) -> Any:
    """Fold in the evidence of a file and of the command line."""
    findings: dict[Any, Any] = {}
    if not hasattr(model, "groups") and (evidence is not None or observed):
        return model.observe(findings)  # a stored model, which says why it does not
    if evidence is not None:
        from gibbsite.formats import read_evidence

        findings.update(read_evidence(evidence, model))
    for item in observed:
        site, equals, state = _split(model, item)
        if not equals or not site:
            raise click.UsageError(f"--observe takes SITE=STATE, got {item!r}.")
        if site in findings:
            raise ArgumentError(f"evidence for {site!r} is given twice; drop one.")
        findings[site] = state
    return model.observe(findings) if findings else model


def _split(model: FactorGraph, item: str) -> tuple[str, str, str]:
    """Split SITE=STATE; a name or a state such as ">=10" may contain the sign itself."""
    names = set(model.sites) if item.count("=") > 1 else set()
    for k, letter in enumerate(item):
        if letter == "=" and item[:k] in names:
            return item[:k], "=", item[k + 1 :]
    return item.partition("=")
