"""Answers as text: tables, CSV, JSON and the UAI result formats."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite.cli.inputs import as_said
from gibbsite.errors import GibbsiteError
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import save
from gibbsite.formats.uai_results import write_uai_map, write_uai_mar, write_uai_mmap, write_uai_pr
from gibbsite.result.table import with_sign

if TYPE_CHECKING:
    from gibbsite.inference import Inference
    from gibbsite.model import Model
    from gibbsite.result.table import SiteTable

_MOST = 40  # sites shown in a table, unless all are asked for
_PIECE = 1 << 20  # characters written at a time


def write(
    answer: Inference,
    model: Model,
    layout: str,
    sites: list[str] | None,
    show_all: bool,
    out: str,
    folder: str | None = None,
) -> None:
    """Write the answer to a file, or to stdout for "-"; ``model`` is the one before any evidence.

    Where marginals of all sites are in a folder already, JSON says where instead of repeating them.
    """
    if layout == "uai":
        _write_uai(answer, model, out)
    elif layout == "json":
        save(out, write_json(as_json(answer, sites, folder)) + "\n")
    elif layout == "csv":
        save(out, as_csv(answer, sites))
    else:
        save(out, as_table(answer, model, sites, show_all))


def _write_uai(answer: Inference, model: Model, out: str) -> None:
    """Write the answer as the UAI competitions want it, sites in the order of the model file."""
    if answer.task == "MAR":
        write_uai_mar(answer.marginals, out, model)
    elif answer.task == "MAP":
        assert answer.assignment is not None
        write_uai_map(answer.assignment, out, model)
    elif answer.task == "MMAP":
        assert answer.assignment is not None
        write_uai_mmap({name: answer.assignment[name] for name in _maximised(answer)}, out, model)
    else:
        write_uai_pr(answer.log_z, out)


def _maximised(answer: Inference) -> list[str]:
    """Return the sites that were maximised over: those of the state that were not observed."""
    assert answer.assignment is not None
    return [name for name in answer.assignment if name not in answer.model.evidence]


def as_json(answer: Inference, sites: list[str] | None, folder: str | None = None) -> dict[str, Any]:
    """Return the JSON answer, for all or the chosen sites; what is said in it names options."""
    data = answer.to_dict([] if folder is not None and sites is None else sites)
    data["reason"] = as_said(data["reason"])
    data["remarks"] = [as_said(remark) for remark in data["remarks"]]
    data["diagnostics"]["reasons"] = [as_said(reason) for reason in data["diagnostics"]["reasons"]]
    if folder is not None:
        data["files"] = {name: os.path.join(folder, f"{name}.npy") for name in ("marginals", "sums")}
    return data


def as_csv(answer: Inference, sites: list[str] | None) -> Iterator[str]:
    """Yield one line per site and state, some at a time."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for row in _csv_rows(answer, sites):
        writer.writerow(row)
        if file.tell() > _PIECE:
            yield file.getvalue()
            file.seek(0)
            file.truncate()
    yield file.getvalue()


def _csv_rows(answer: Inference, sites: list[str] | None) -> Iterator[list[Any]]:
    if answer.task == "MAR":
        yield ["site", "state", "probability", "standard_error"]
        for site, states, errors in answer.rows(sites):
            for state, p in states.items():
                known = math.isfinite(errors[state])
                yield [site, state, repr(p), repr(errors[state]) if known else ""]
    elif answer.task in ("MAP", "MMAP"):
        assert answer.assignment is not None
        yield ["site", "state"]
        for site in sites or answer.assignment:
            yield [site, answer.assignment[site]]
    else:
        numbers: dict[str, float | None] = {"log_z": answer.log_z}
        if answer.kind == "estimate":
            numbers["log_z_error"] = answer.log_z_error
        if answer.log_z_bounds is not None:
            numbers["log_z_lower"], numbers["log_z_upper"] = answer.log_z_bounds
        yield list(numbers)
        yield ["" if one is None or not math.isfinite(one) else repr(one) for one in numbers.values()]


def as_table(answer: Inference, model: Model, sites: list[str] | None, show_all: bool) -> Iterator[str]:
    """Yield the lines of a table for people: sites whose probabilities evidence changed most come first."""
    if answer.task == "PR":
        yield _log_z(answer)
        return
    if answer.task in ("MAP", "MMAP"):
        yield from _states(answer, sites)
        return
    evidence = answer.model.evidence
    prior = _prior(model) if evidence else None
    ordered = sites
    if prior is not None and sites is None:
        free = [name for name in model.sites if name not in evidence]
        ordered = sorted(free, key=lambda name: -_change(answer.marginals[name], prior[name]))
    many = len(sites) if sites else model.n_sites - len(evidence)
    shown = many if show_all or sites else min(many, _MOST)

    def names() -> Iterator[str]:
        free = (name for name in model.domains.names if name not in evidence)
        return islice(ordered or free, shown)

    width = max(map(len, names()), default=0)
    for name, states, errors in answer.rows(names()):
        before = None if prior is None else prior[name]
        yield f"{name:<{width}}  {_row(states, errors, answer.kind == 'estimate', before)}\n"
    if many > shown:
        yield f"... and {many - shown} more sites (--all, --query, --json)\n"


def _log_z(answer: Inference) -> str:
    """Return the log-partition function, and bounds of it that are certain."""
    if not math.isfinite(answer.log_z):
        return f"log Z   no {answer.kind} known\n"
    signs = {"exact": "=", "estimate": "=", "lower bound": ">=", "upper bound": "<="}
    sign, note = signs.get(answer.kind, "~"), "" if answer.kind == "exact" else f"   {answer.kind}"
    error = with_sign(answer.log_z_error or math.nan)
    log10 = f"{answer.log_z / math.log(10):.10g}"
    line = f"log Z {sign} {answer.log_z:.10g}{error}   (log10 {log10}){note}\n"
    known = answer.log_z_bounds if answer.kind in ("estimate", "approximation") else None
    bounds = zip((">=", "<="), known or (), strict=False)
    return line + "".join(f"log Z {way} {one:.10g}   certain\n" for way, one in bounds if math.isfinite(one))


def _states(answer: Inference, sites: list[str] | None) -> Iterator[str]:
    """Yield the best states side by side, the best one first, with log-potentials and how often found."""
    names = sites or answer.best[0].assignment
    what = "log of the sum" if answer.task == "MMAP" else "log-potential"
    widths = [max((len(str(one.assignment[name])) for name in names), default=0) for one in answer.best]
    width = max(map(len, names), default=0)
    for name in names:
        states = zip(answer.best, widths, strict=True)
        row = "  ".join(f"{one.assignment[name]!s:<{each}}" for one, each in states)
        yield f"{name:<{width}}  {row.rstrip()}\n"
    for number, one in enumerate(answer.best, 1):
        which = f"{number}. " if len(answer.best) > 1 else ""
        chains = "" if one.found is None else f"   found by {one.found} of {_chains(answer)} chains"
        yield f"{which}{what} {one.log_potential:.10g}{chains}\n"
    if answer.ties is not None and answer.ties["count"] > 1:
        most = "" if answer.ties["how"] == "counted" and answer.ties["complete"] else "at least "
        yield f"{most}{answer.ties['count']:,} states are as good ({answer.ties['how']})\n"


def _chains(answer: Inference) -> int:
    return int(answer.verdict.numbers["chains"])


def _row(
    states: dict[Any, float], errors: dict[Any, float], drawn: bool, before: dict[Any, float] | None
) -> str:
    """Return the probabilities of a site, with errors where they were drawn, and what they were before."""
    parts = [f"{state} {p:.4f}" + (with_sign(errors[state]) if drawn else "") for state, p in states.items()]
    if before is None:
        return "  ".join(parts)
    return "  ".join(parts) + "   (before: " + " ".join(f"{p:.4f}" for p in before.values()) + ")"


def _prior(model: Any) -> SiteTable | None:
    """Return the marginals without evidence where they are cheap to have."""
    from gibbsite.exact import predict_exact, solve_exact

    try:
        if predict_exact(model).seconds > 2.0:
            return None
        return solve_exact(model).marginals
    except GibbsiteError:
        return None


def _change(after: dict[Any, float], before: dict[Any, float]) -> float:
    """Return the total variation between two distributions."""
    return 0.5 * sum(abs(p - before[state]) for state, p in after.items())
