"""``gibbsite learn``: tables and structures of Bayesian networks from a file of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gibbsite.cli import inputs
from gibbsite.cli.help import Command
from gibbsite.cli.outputs import deliver, echo, note_on_compiling, tell, warnings_on_stderr
from gibbsite.cli.parameters import (
    COUNT,
    FILE_OUTPUT,
    INPUT,
    MODEL,
    Choice,
    Integer,
    json_option,
    quiet_option,
    rng_option,
)
from gibbsite.errors import ArgumentError, FormatError

if TYPE_CHECKING:
    from gibbsite.learn import Cases, StructureFit, StructurePosterior, TableFit


@click.command(
    "learn",
    cls=Command,
    examples=(
        "gibbsite learn cases.csv -o network.bif",
        "gibbsite learn cases.csv --structure alarm --prior bdeu:10 -o learned.bif",
        "gibbsite learn cases.csv --structure network.bif --hidden Cause=a,b --method gibbs",
        "gibbsite learn cases.csv --sample --json",
    ),
    common={
        "Structure": ("structure", "search", "sample", "max_parents", "required", "forbidden"),
        "Tables": ("prior", "method", "hidden"),
        "Answer": ("out", "as_json", "strict", "quiet"),
    },
    rare={
        "Cases": ("weights", "incomplete"),
        "Runs": ("exact", "restarts", "sweeps", "warmup", "chains", "threads", "rng"),
    },
)
@click.argument("data", type=INPUT)
@click.option("--structure", type=MODEL, help="Take the edges, and the states, of this network.")
@click.option("--search", metavar="SCORE", help="Search for edges by bic, aic, k2, bdeu or bdeu:N. [default: bic]")
@click.option("--sample", is_flag=True, help="Draw structures, for probabilities of edges.")
@click.option("--exact", is_flag=True, help="Prove the best structure of at most 20 columns.")
@click.option("--restarts", type=Integer(0), default=10, show_default=True, help="Further climbs of the search.")
@click.option("--max-parents", type=Integer(0), help="Most parents of a site.")
@click.option("--required", multiple=True, metavar="A>B", help="Require an edge; may be repeated.")
@click.option("--forbidden", multiple=True, metavar="A>B", help="Forbid an edge; may be repeated.")
@click.option("--prior", help="Prior of the tables: ml, bdeu, bdeu:N, k2 or jeffreys. [default: bdeu]")
@click.option(
    "--method", type=Choice(["auto", "counts", "em", "gibbs"]), default="auto", help="How tables are learned."
)
@click.option("--hidden", multiple=True, metavar="NAME=A,B", help="A site without a column, and its states.")
@click.option("--weights", metavar="COLUMN", help="Column that says how often each case counts.")
@click.option(
    "--incomplete",
    type=Choice(["refuse", "drop"]),
    default="refuse",
    help="What the search does with cases that have missing cells. [default: refuse]",
)
@click.option("--sweeps", type=COUNT, default=1000, show_default=True, help="Recorded sweeps of each chain.")
@click.option("--warmup", type=Integer(0), help="Sweeps before. [default: a quarter]")
@click.option("--chains", type=COUNT, default=4, show_default=True, help="Number of chains.")
@click.option("--threads", type=COUNT, help="[default: all cores]")
@rng_option
@click.option("-o", "--output", "out", type=FILE_OUTPUT, help="Write the network, in the format of the name.")
@json_option
@click.option("--strict", is_flag=True, help="Exit with 4 unless exact or converged.")
@quiet_option
def command(**given: Any) -> int:
    """Learn a Bayesian network from DATA, a CSV file with names in the first row and a case in each other row.

    Empty cells, NA, NaN, ? and * are missing. Without --structure, edges are searched for among all columns; with
    --sample their probabilities are estimated, and tables are those of the most probable structure drawn.
    """
    from gibbsite.formats import write_model
    from gibbsite.formats.parsing.plain_json import write_json
    from gibbsite.learn import fit_tables

    _check(given)
    quiet = given["quiet"]
    with warnings_on_stderr(quiet), note_on_compiling(quiet):
        known = None if given["structure"] is None else inputs.load(given["structure"], None)
        hidden = dict(_read_hidden(text) for text in given["hidden"])
        cases = _read(given["data"], given["weights"])
        _report(cases, quiet)
        found = None if known is not None else _find_structure(cases, given)
        fit = fit_tables(
            cases,
            known if found is None else found,
            prior=given["prior"] or "bdeu",
            states=hidden,
            method=given["method"],
            sweeps=given["sweeps"],
            warmup=given["warmup"],
            chains=given["chains"],
            threads=given["threads"],
            rng=given["rng"],
            progress=False if quiet else None,
        )
    if given["out"] is not None:
        deliver(given["out"], lambda path: write_model(fit.model, path))
    text = write_json(as_data(fit, found)) if given["as_json"] else as_text(fit, found)
    echo(text)
    good = bool(fit.converged) and (found is None or found.converged is not False)
    return 4 if given["strict"] and not good else 0


def _read(path: str, weights: str | None) -> Cases:
    """Read the cases; what is wrong with them is wrong with the file."""
    from gibbsite.learn import read_cases

    try:
        return read_cases(path, weights=weights)
    except ArgumentError as error:
        raise FormatError(f"{path}: {error}") from None


def _check(given: dict[str, Any]) -> None:
    """Refuse options that contradict each other."""
    if given["structure"] is not None:
        for name in ("search", "sample", "exact", "required", "forbidden"):
            if given[name]:
                raise click.UsageError(f"--{name} is about edges, and --structure gives them; leave one of them out.")
    elif given["hidden"]:
        raise click.UsageError("--hidden needs --structure, which says where the hidden site belongs.")
    if given["sample"] and given["exact"]:
        raise click.UsageError("--exact finds one structure, and --sample draws many; leave one of them out.")


def _read_hidden(text: str) -> tuple[str, list[str]]:
    name, equals, states = text.partition("=")
    labels = [state.strip() for state in states.split(",") if state.strip()]
    if not equals or len(labels) < 2:
        raise click.UsageError(f"--hidden must be NAME=STATE,STATE, got {text!r}.")
    return name.strip(), labels


def _read_edges(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for text in texts:
        parent, arrow, child = text.partition(">")
        if not arrow:
            raise click.UsageError(f"an edge must be written PARENT>CHILD, got {text!r}.")
        found.append((parent.strip(), child.strip()))
    return found


def _report(cases: Cases, quiet: bool) -> None:
    """Say how many cells are missing, and in which columns."""
    if not cases.n_missing:
        return
    by_column = (cases.codes < 0).sum(axis=1)
    worst = sorted(zip(by_column.tolist(), cases.names, strict=True), reverse=True)[:3]
    named = ", ".join(f"{name} {count:,}" for count, name in worst if count)
    tell(f"{cases.n_missing:,} of {cases.codes.size:,} cells are missing (most in {named})", quiet)


def _find_structure(cases: Cases, given: dict[str, Any]) -> StructureFit | StructurePosterior:
    """Search for a structure, or draw structures."""
    from gibbsite.learn import learn_structure, sample_structures

    common: dict[str, Any] = {name: given[name] for name in ("incomplete", "rng", "threads")}
    common |= {name: _read_edges(given[name]) for name in ("required", "forbidden")}
    common["progress"] = False if given["quiet"] else None
    if given["max_parents"] is not None:
        common["max_parents"] = given["max_parents"]
    if given["sample"]:
        common |= {name: given[name] for name in ("sweeps", "warmup", "chains")}
        return sample_structures(cases, score=given["search"] or "bdeu", **common)
    method = "exact" if given["exact"] else "auto"
    return learn_structure(cases, score=given["search"] or "bic", method=method, restarts=given["restarts"], **common)


def as_data(fit: TableFit, found: StructureFit | StructurePosterior | None) -> dict[str, Any]:
    """Return the network and what is known about it as plain data."""
    tables = {
        site: {"parents": fit.parents[site], "states": states, "table": fit.table(site), "sd": fit.sd(site)}
        for site, states in zip(fit.sites, fit.states, strict=True)
    }
    data: dict[str, Any] = {
        "task": "learn",
        "cases": fit.n_cases,
        "missing": fit.n_missing,
        "method": fit.method,
        "prior": fit.prior,
        "log_likelihood": fit.log_likelihood,
        "bic": fit.bic,
        "tables": tables,
        "diagnostics": fit.diagnostics.to_dict(),
    }
    if found is not None:
        data["structure"] = {
            "parents": found.parents,
            "score": found.score,
            "scored_by": found.scored_by,
            "diagnostics": found.diagnostics.to_dict(),
        }
        rows = getattr(found, "edge_rows", None)
        if rows is not None:
            names = ("parent", "child", "probability", "mcse")
            data["structure"]["edges"] = [dict(zip(names, row, strict=False)) for row in rows()]
    return data


def as_text(fit: TableFit, found: StructureFit | StructurePosterior | None) -> str:
    """Return the structure and the tables as readable text."""
    return fit.summary() if found is None else f"{found.summary()}\n\n{fit.summary()}"
