"""Reading a model, its evidence and lists of sites, as several commands do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from gibbsite._common.wording import nearest
from gibbsite.cli.outputs import warnings_on_stderr
from gibbsite.cli.parameters import FORMAT, INPUT, MODEL, SCAN, SCANS
from gibbsite.errors import ArgumentError, FormatError, GibbsiteError, UnknownFormatError

if TYPE_CHECKING:
    from gibbsite.models import FactorGraph, Model
    from gibbsite.models.stored import StoredPairs

_LARGEST = 4e6  # bytes of a file that is read when a key is pressed


class _OfModel(click.types.StringParamType):
    """Text about the sites of MODEL, which completes their names."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Offer what the model has, if it is given before the option and can be read quickly."""
        # while an option has no value yet, click leaves arguments where they are
        place = ctx.params.get("model") or (ctx.args[0] if ctx.args else None)
        try:
            model = _read_quickly(place, ctx.params.get("from_format"))
            return [CompletionItem(text) for text in self.offers(model, incomplete)] if model else []
        except (GibbsiteError, OSError):
            return []

    def offers(self, model: FactorGraph, incomplete: str) -> list[str]:
        """Return what the text can become."""
        raise NotImplementedError


class SiteState(_OfModel):
    """A site and its state, as SITE=STATE."""

    name = "site=state"

    def offers(self, model: FactorGraph, incomplete: str) -> list[str]:
        """Return sites with an equals sign, or the states of one site."""
        sites = [name for name in map(str, model.sites) if f"{name}=".startswith(incomplete)]
        if len(sites) > 1:
            return [f"{name}=" for name in sites]
        site = sites[0] if sites else _split(model, incomplete)[0]
        pairs = [f"{site}={state}" for state in model.domains.labels(model.index(site))] if site in model.sites else []
        return [pair for pair in pairs if pair.startswith(incomplete)]


class Sites(_OfModel):
    """Names of sites, separated by commas."""

    name = "sites"

    def offers(self, model: FactorGraph, incomplete: str) -> list[str]:
        """Return the sites that can be added."""
        before, comma, last = incomplete.rpartition(",")
        taken = {name.strip() for name in before.split(",")}
        names = [name for name in map(str, model.sites) if name.startswith(last.lstrip()) and name not in taken]
        return [f"{before}{comma}{name}" for name in names]


SITE_STATE, SITES = SiteState(), Sites()


def _read_quickly(place: str | None, from_format: str | None) -> FactorGraph | None:
    """Read a model to complete its names, unless that takes long or waits for standard input."""
    from gibbsite.formats.files import EXAMPLES, is_stored

    if place is None or place == "-" or is_stored(place):
        return None
    if place not in EXAMPLES and not (os.path.isfile(place) and os.path.getsize(place) <= _LARGEST):
        return None
    return load(place, from_format)


format_option = click.option("--from", "from_format", type=FORMAT, help="Format of MODEL (uai, bif, ...).")
_model_parameters = (
    click.argument("model", type=MODEL),
    format_option,
    click.option("-e", "--evidence", type=INPUT, help="Evidence file: UAI, NAME=STATE lines, or JSON."),
    click.option("--observe", multiple=True, type=SITE_STATE, help="Evidence; may be repeated."),
)
scan_option = click.option(
    "--scan",
    type=SCAN,
    metavar="SCAN",
    help=f"{', '.join(SCANS)}, or a file saved by gibbsite scan. [default: systematic; for sampling, "
    "chromatic if many sites can be updated at once]",
)
target_option = click.option("--target", type=SITES, help="Sites, separated by commas. [default: all]")


def takes_model(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the argument MODEL and the options for its format and evidence."""
    for parameter in reversed(_model_parameters):
        command = parameter(command)
    return command


def read_sites(model: Model, query: str | None) -> list[str] | None:
    """Split a list of sites and check that the model has them."""
    if query is None:
        return None
    names = [name.strip() for name in query.split(",") if name.strip()]
    if not names:
        raise click.UsageError("the list of sites is empty; name one, or leave the option out.")
    for name in names:
        model.index(name)
    return names


def load_observed(given: dict[str, Any]) -> FactorGraph:
    """Read the model of a command and fold in the evidence."""
    found: FactorGraph = observe(load(given["model"], given["from_format"]), given["evidence"], given["observe"])
    return found


def load_any(model: str, from_format: str | None, verify: bool = False) -> FactorGraph | StoredPairs:
    """Read a model as :func:`load` does, or open a stored one, which stays in its folder."""
    from gibbsite.formats.files import is_stored

    if not is_stored(model):
        if verify:
            raise click.UsageError("--verify compares the checksums of stored models (.pairs); leave it out.")
        return load(model, from_format)
    if from_format is not None:
        raise click.UsageError("--from has no effect on a stored model; leave it out.")
    from gibbsite.models.stored import open_model

    return open_model(model, verify)


def load(model: str, from_format: str | None) -> FactorGraph:
    """Read a model file, stdin for "-", or an example if there is no such file."""
    from gibbsite.formats import read_model
    from gibbsite.formats.files import EXAMPLES, example_path

    if model in EXAMPLES and not os.path.exists(model):
        model = str(example_path(model))
    elif model != "-" and not os.path.exists(model) and (near := nearest(model, EXAMPLES)) is not None:
        raise FormatError(f"there is no such file; did you mean the example {near}?", model)
    with format_given_by("--from FORMAT"), warnings_on_stderr():
        return read_model(model, from_format)


@contextmanager
def format_given_by(option: str) -> Iterator[None]:
    """Let errors about an unknown format name the option that gives it."""
    try:
        yield
    except UnknownFormatError as error:
        raise error.given_by(option) from None


def observe(model: Any, evidence: str | None, observed: tuple[str, ...]) -> Any:
    """Fold in the evidence of a file and of the command line."""
    if not hasattr(model, "groups") and (evidence is not None or observed):
        return model.observe({})  # a stored model raises an error that says why
    findings = read_findings(model, evidence, observed)
    return model.observe(findings) if findings else model


def read_findings(model: FactorGraph, evidence: str | None, observed: Sequence[str]) -> dict[Any, Any]:
    """Return the evidence of a file and of the command line, by site."""
    findings: dict[Any, Any] = {}
    if evidence is not None:
        from gibbsite.formats import read_evidence

        findings.update(read_evidence(evidence, model))
    for site, state in split_states(model, observed, "--observe").items():
        if site in findings:
            raise ArgumentError(f"evidence for {site!r} is given twice; drop one.")
        findings[site] = state
    return findings


def split_states(model: FactorGraph, items: Sequence[str], option: str) -> dict[str, str]:
    """Split texts SITE=STATE of an option; refuse a site that is given twice."""
    found: dict[str, str] = {}
    for item in items:
        site, equals, state = _split(model, item)
        if not equals or not site:
            raise click.UsageError(f"{option} takes SITE=STATE, got {item!r}.")
        if site in found:
            raise ArgumentError(f"evidence for {site!r} is given twice; drop one.")
        found[site] = state
    return found


def _split(model: FactorGraph, item: str) -> tuple[str, str, str]:
    """Split SITE=STATE, where a name or a state such as ">=10" may contain an equals sign."""
    names = set(model.sites) if item.count("=") > 1 else set()
    for k, letter in enumerate(item):
        if letter == "=" and item[:k] in names:
            return item[:k], "=", item[k + 1 :]
    return item.partition("=")
