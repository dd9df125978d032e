"""What several commands share: reading a model and its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gibbsite.errors import ModelError

if TYPE_CHECKING:
    from gibbsite.model import FactorGraph

model_argument = click.argument("model", type=str)
format_option = click.option(
    "--from", "from_format", metavar="FORMAT", help="Format of MODEL (uai, bif, xmlbif, bqm, coo)."
)
evidence_option = click.option(
    "-e", "--evidence", type=str, help="Evidence file: UAI, NAME=STATE lines, or JSON."
)
observe_option = click.option(
    "--observe", multiple=True, metavar="SITE=STATE", help="Evidence on the command line; may be repeated."
)


def load(model: str, from_format: str | None) -> FactorGraph:
    """Read a model file, or stdin for "-"."""
    from gibbsite.formats import read_model

    return read_model(model, from_format)


def observe(model: FactorGraph, evidence: str | None, observed: tuple[str, ...]) -> FactorGraph:
    """Fold in the evidence of a file and of the command line."""
    findings: dict[Any, Any] = {}
    if evidence is not None:
        from gibbsite.formats import read_evidence

        findings.update(read_evidence(evidence, model))
    for item in observed:
        site, equals, state = _split(model, item)
        if not equals or not site:
            raise click.UsageError(f"--observe takes SITE=STATE, got {item!r}.")
        if site in findings:
            raise ModelError(f"evidence for {site!r} is given twice; drop one.")
        findings[site] = state
    return model.observe(findings) if findings else model


def _split(model: FactorGraph, item: str) -> tuple[str, str, str]:
    """Split SITE=STATE; a name or a state such as ">=10" may contain the sign itself."""
    names = set(model.sites) if item.count("=") > 1 else set()
    for k, letter in enumerate(item):
        if letter == "=" and item[:k] in names:
            return item[:k], "=", item[k + 1 :]
    return item.partition("=")
