"""Answers as text: tables, CSV, JSON and the UAI result formats."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any

from gibbsite.cli.inputs import as_said
from gibbsite.errors import GibbsiteError
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import save
from gibbsite.formats.uai_results import write_uai_map, write_uai_mar, write_uai_mmap, write_uai_pr
from gibbsite.result.table import with_sign

if TYPE_CHECKING:
    from gibbsite.inference import Inference
    from gibbsite.model import FactorGraph
    from gibbsite.result.table import SiteTable

_MOST = 40  # sites shown in a table, unless all are asked for


def write(
    answer: Inference, model: FactorGraph, layout: str, sites: list[str] | None, show_all: bool, out: str
) -> None:
    """Write the answer to a file, or to stdout for "-"; ``model`` is the one before any evidence."""
    if layout == "uai":
        _write_uai(answer, model, out)
    elif layout == "json":
        save(out, write_json(as_json(answer, sites)) + "\n")
    elif layout == "csv":
        save(out, as_csv(answer, sites))
    else:
        save(out, as_table(answer, model, sites, show_all))


def _write_uai(answer: Inference, model: FactorGraph, out: str) -> None:
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


def as_json(answer: Inference, sites: list[str] | None) -> dict[str, Any]:
    """Return the JSON answer, for all or the chosen sites; what is said in it names options."""
    data = answer.to_dict()
    data["reason"] = as_said(data["reason"])
    data["remarks"] = [as_said(remark) for remark in data["remarks"]]
    data["diagnostics"]["reasons"] = [as_said(reason) for reason in data["diagnostics"]["reasons"]]
    if sites is not None:
        for key in ("marginals", "mcse", "assignment"):
            if key in data:
                data[key] = {site: data[key][site] for site in sites}
        for one in data.get("best", ()):
            one["assignment"] = {site: one["assignment"][site] for site in sites}
    return data


def as_csv(answer: Inference, sites: list[str] | None) -> str:
    """Return one line per site and state."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if answer.task == "MAR":
        writer.writerow(["site", "state", "probability", "standard_error"])
        for site in sites or answer.marginals:
            errors = answer.mcse[site]
            for state, p in answer.marginals[site].items():
                known = math.isfinite(errors[state])
                writer.writerow([site, state, repr(p), repr(errors[state]) if known else ""])
    elif answer.task in ("MAP", "MMAP"):
        assert answer.assignment is not None
        writer.writerow(["site", "state"])
        writer.writerows([site, answer.assignment[site]] for site in sites or answer.assignment)
    else:
        numbers: dict[str, float | None] = {"log_z": answer.log_z}
        if answer.kind == "estimate":
            numbers["log_z_error"] = answer.log_z_error
        if answer.log_z_bounds is not None:
            numbers["log_z_lower"], numbers["log_z_upper"] = answer.log_z_bounds
        writer.writerow(numbers)
        writer.writerow(
            "" if one is None or not math.isfinite(one) else repr(one) for one in numbers.values()
        )
    return file.getvalue()


def as_table(answer: Inference, model: FactorGraph, sites: list[str] | None, show_all: bool) -> str:
    """Return a table for people: sites whose probabilities the evidence changed most come first."""
    if answer.task == "PR":
        if not math.isfinite(answer.log_z):
            return f"log Z   no {answer.kind} known\n"
        signs = {"exact": "=", "estimate": "=", "lower bound": ">=", "upper bound": "<="}
        sign, note = signs.get(answer.kind, "~"), "" if answer.kind == "exact" else f"   {answer.kind}"
        error = with_sign(answer.log_z_error or math.nan)
        log10 = f"{answer.log_z / math.log(10):.10g}"
        line = f"log Z {sign} {answer.log_z:.10g}{error}   (log10 {log10}){note}\n"
        known = answer.log_z_bounds if answer.kind in ("estimate", "approximation") else None
        bounds = zip((">=", "<="), known or (), strict=False)
        return line + "".join(
            f"log Z {way} {one:.10g}   certain\n" for way, one in bounds if math.isfinite(one)
        )
    if answer.task in ("MAP", "MMAP"):
        return _states(answer, sites)
    prior = _prior(model) if answer.model.evidence else None
    names = sites or [name for name in model.sites if name not in answer.model.evidence]
    if prior is not None and sites is None:
        names = sorted(names, key=lambda name: -_change(answer.marginals[name], prior[name]))
    shown = names if show_all or sites else names[:_MOST]
    more = len(names) - len(shown)
    rest = f"... and {more} more sites (--all, --query, --json)\n" if more else ""
    return _lines({name: _row(answer, name, prior) for name in shown}) + rest


def _states(answer: Inference, sites: list[str] | None) -> str:
    """Return the best states side by side, the best one first, with log-potentials and how often found."""
    names = sites or list(answer.best[0].assignment)
    what = "log of the sum" if answer.task == "MMAP" else "log-potential"
    columns = [[str(one.assignment[name]) for name in names] for one in answer.best]
    widths = [max((len(state) for state in column), default=0) for column in columns]
    rows = {
        name: "  ".join(
            f"{column[k]:<{width}}" for column, width in zip(columns, widths, strict=True)
        ).rstrip()
        for k, name in enumerate(names)
    }
    lines = []
    for number, one in enumerate(answer.best, 1):
        which = f"{number}. " if len(answer.best) > 1 else ""
        chains = "" if one.found is None else f"   found by {one.found} of {_chains(answer)} chains"
        lines.append(f"{which}{what} {one.log_potential:.10g}{chains}\n")
    if answer.ties is not None and answer.ties["count"] > 1:
        most = "" if answer.ties["how"] == "counted" and answer.ties["complete"] else "at least "
        lines.append(f"{most}{answer.ties['count']:,} states are as good ({answer.ties['how']})\n")
    return _lines(rows) + "".join(lines)


def _chains(answer: Inference) -> int:
    return int(answer.verdict.numbers["chains"])


def _row(answer: Inference, name: str, prior: SiteTable | None) -> str:
    """Return the probabilities of a site, with errors where there are any, and what they were before."""
    errors = answer.mcse[name]
    drawn = answer.kind == "estimate"
    parts = [
        f"{state} {p:.4f}" + (with_sign(errors[state]) if drawn else "")
        for state, p in answer.marginals[name].items()
    ]
    before = ""
    if prior is not None:
        before = "   (before: " + " ".join(f"{p:.4f}" for p in prior[name].values()) + ")"
    return "  ".join(parts) + before


def _lines(rows: dict[str, str]) -> str:
    width = max((len(name) for name in rows), default=0)
    return "".join(f"{name:<{width}}  {text}\n" for name, text in rows.items())


def _prior(model: FactorGraph) -> SiteTable | None:
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
