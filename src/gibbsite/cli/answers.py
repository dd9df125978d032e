"""Answers of ``gibbsite infer`` as text: tables, CSV, JSON, Markdown, HTML and the UAI result formats."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gibbsite._common.html import escape
from gibbsite._common.wording import escaped
from gibbsite.cli.wording import spelled
from gibbsite.errors import IncompatibleError
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.formats.parsing.text import save
from gibbsite.formats.uai_results import write_uai_map, write_uai_mar, write_uai_mmap, write_uai_pr
from gibbsite.inference.answer import answer_lines, is_network
from gibbsite.results.rows import MOST_STATES, mean_and_sd

if TYPE_CHECKING:
    from gibbsite.inference import Inference
    from gibbsite.models import Model

_MOST = 40  # sites shown in a table without --all
_PIECE = 1 << 20  # characters written at a time
_STYLE = (
    "body{font-family:sans-serif;margin:2em}td,th{text-align:left;padding:2px 12px 2px 0}th{border-bottom:1px solid}"
)


def write(
    answer: Inference,
    model: Model,
    layout: str,
    sites: list[str] | None,
    show_all: bool,
    out: str,
    folder: str | None = None,
) -> None:
    """Write the answer to a file, or to stdout for "-"; ``model`` is the model without evidence.

    If the marginals of all sites are in a folder, JSON output names the folder instead of repeating them.
    """
    if layout == "uai":
        _write_uai(answer, model, out)
    elif layout == "json":
        save(out, write_json(as_json(answer, model, sites, folder)) + "\n")
    elif layout == "csv":
        save(out, as_csv(answer, sites))
    elif layout in ("md", "html"):
        rows = _page_rows(answer, model, sites)
        notes = [answer.line(), *answer.reasons, *(f"note: {remark}" for remark in answer.remarks)]
        if answer.log_potential is not None:
            notes.append(f"log-potential {answer.log_potential:.10g}")
        save(out, as_page(layout, f"gibbsite infer: {answer.task}", [spelled(note) for note in notes], rows))
    else:
        save(out, as_table(answer, model, sites, show_all))


def _write_uai(answer: Inference, model: Model, out: str) -> None:
    """Write the answer in the format of the UAI competitions, with sites in the order of the model file."""
    if answer.task == "MAR":
        assert answer.marginals is not None
        write_uai_mar(answer.marginals, out, model)
    elif answer.task == "MAP":
        assert answer.assignment is not None
        write_uai_map(answer.assignment, out, model)
    elif answer.task == "MMAP":
        assert answer.assignment is not None
        write_uai_mmap({name: answer.assignment[name] for name in _maximised(answer)}, out, model)
    else:
        assert answer.log_z is not None
        write_uai_pr(answer.log_z, out)


def _maximised(answer: Inference) -> list[str]:
    """Return the sites that were maximised over."""
    assert answer.assignment is not None
    return [name for name in answer.assignment if name not in answer.model.evidence]


def as_json(answer: Inference, model: Model, sites: list[str] | None, folder: str | None = None) -> dict[str, Any]:
    """Return the JSON answer for all or some sites, with messages spelled in options."""
    data = answer.to_dict([] if folder is not None and sites is None else sites)
    data["reason"] = spelled(data["reason"])
    data["remarks"] = [spelled(remark) for remark in data["remarks"]]
    data["diagnostics"]["reasons"] = [spelled(reason) for reason in data["diagnostics"]["reasons"]]
    if answer.task == "PR" and answer.model is not model and is_network(model):
        data["log_z_is"] = "log of the probability of the evidence"
    if answer.task == "MAP" and sites is not None:
        data["assignment_is"] = "part of the best state of all sites"
    if (cut := find_cut(answer, model)) is not None:
        data["cut"] = cut
    if folder is not None:
        data["files"] = {name: os.path.join(folder, f"{name}.npy") for name in ("marginals", "sums")}
    return data


def as_csv(answer: Inference, sites: list[str] | None) -> Iterator[str]:
    """Yield the lines, one per site and state, in chunks."""
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
                yield [text_cell(site), text_cell(state), repr(p), repr(errors[state]) if known else ""]
    elif answer.task in ("MAP", "MMAP"):
        assert answer.assignment is not None
        yield ["site", "state"]
        for site in sites or answer.assignment:
            yield [text_cell(site), text_cell(answer.assignment[site])]
    else:
        numbers: dict[str, float | None] = {"log_z": answer.log_z}
        if answer.kind == "estimate":
            numbers["log_z_error"] = answer.log_z_error
        if answer.log_z_bounds is not None:
            numbers["log_z_lower"], numbers["log_z_upper"] = answer.log_z_bounds
        yield list(numbers)
        yield ["" if one is None or not math.isfinite(one) else repr(one) for one in numbers.values()]


def _page_rows(answer: Inference, model: Model, sites: list[str] | None) -> Iterator[list[Any]]:
    """Yield the rows of a page: those of the CSV file rounded, with observed sites marked, and means of numbers."""
    rows = _csv_rows(answer, sites)
    if answer.task != "MAR":
        yield from rows
        return
    yield ["site", "state", "probability", "standard error"]
    for site, states, errors in answer.rows(sites):
        name = f"{site} (observed)" if site in answer.model.evidence else site
        for state, p in states.items():
            known = math.isfinite(errors[state]) and answer.kind != "exact"
            yield [name, state, f"{p:.6g}", f"{errors[state]:.2g}" if known else ""]
        if len(states) > MOST_STATES and (both := mean_and_sd(states)) is not None:
            yield [name, "mean", f"{both[0]:.6g}", ""]
            yield [name, "standard deviation", f"{both[1]:.6g}", ""]


def as_page(layout: str, title: str, notes: list[str], rows: Iterator[list[Any]]) -> Iterator[str]:
    """Yield a page in Markdown or HTML: a title, notes, and a table whose first row names its columns."""
    yield _top(layout, title, notes)
    if layout == "md":
        for number, row in enumerate(rows):
            yield "| " + " | ".join(map(_markdown_text, row)) + " |\n"
            if number == 0:
                yield "|---" * len(row) + "|\n"
        return
    yield "<table>\n"
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        yield "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>\n"
    yield "</table>\n</body>\n</html>\n"


def as_text_page(layout: str, title: str, notes: list[str], lines: Iterable[str]) -> Iterator[str]:
    """Yield a page in Markdown or HTML: a title, notes, and lines as they are.

    Examples
    --------
    >>> print("".join(as_text_page("md", "P", ["exact"], ["a  1"])))
    # P
    <BLANKLINE>
    exact
    <BLANKLINE>
        a  1
    <BLANKLINE>
    """
    yield _top(layout, title, notes)
    if layout == "md":
        yield from (f"    {escaped(line)}\n" for line in lines)
    else:
        yield "<pre>\n" + "".join(f"{escape(line)}\n" for line in lines) + "</pre>\n</body>\n</html>\n"


def _top(layout: str, title: str, notes: list[str]) -> str:
    """Return the beginning of a page: a title and notes, the first one as a paragraph."""
    if layout == "md":
        listed = "".join(f"- {_markdown_text(note)}\n" for note in notes[1:])
        return f"# {_markdown_text(title)}\n\n{_markdown_text(notes[0])}\n\n{listed}" + "\n" * bool(listed)
    listed = "".join(f"<li>{escape(note)}</li>\n" for note in notes[1:])
    head = f'<head><meta charset="utf-8"><title>{escape(title)}</title>\n<style>{_STYLE}</style></head>'
    top = f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n<h1>{escape(title)}</h1>\n<p>{escape(notes[0])}</p>\n'
    return top + (f"<ul>\n{listed}</ul>\n" if listed else "")


def _markdown_text(value: object) -> str:
    """Return a text of which Markdown changes nothing."""
    return re.sub(r"([\\`*_\[\]<>|#~$&])", r"\\\1", escaped(value))


def as_table(answer: Inference, model: Model, sites: list[str] | None, show_all: bool) -> Iterator[str]:
    """Yield the lines of a table; sites whose probabilities the evidence changed most come first."""
    most = _MOST if answer.task == "MAR" and sites is None and not show_all else None
    lines = answer_lines(answer, sites, before=model, most=most, more=" (--all, --query, --json)", all_states=show_all)
    yield from (f"{line}\n" for line in lines)
    if (cut := find_cut(answer, model)) is not None:
        yield f"cut {cut:.10g}\n"


def find_cut(answer: Inference, model: Model) -> float | None:
    """Return the value of the cut of a state, None if the model is no max-cut problem.

    In models read from max-cut files, the log-potential is twice the value of the cut.
    """
    from gibbsite.formats.objects.bqm import edges_of
    from gibbsite.models import FactorGraph

    if answer.task != "MAP" or not isinstance(model, FactorGraph) or answer.log_potential is None:
        return None
    try:
        pairs, couplings = edges_of(model)
    except IncompatibleError:
        return None
    weight = -float(couplings.sum())
    if not len(pairs) or abs(model.log_offset - weight) > 1e-9 * max(float(abs(couplings).sum()), 1e-300):
        return None
    return answer.log_potential / 2.0


def text_cell(value: Any) -> Any:
    """Return a name or a state, quoted if a spreadsheet would read it as a formula."""
    if not isinstance(value, str):
        return value
    text = escaped(value)
    if text[:1] in ("=", "+", "-", "@"):
        try:
            float(text)
        except ValueError:
            return f"'{text}"
    return text
