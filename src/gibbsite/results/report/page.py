"""The page of a report: sections, their style and their script, in one file that needs no network."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from gibbsite._common.html import escape
from gibbsite.errors import GibbsiteError
from gibbsite.formats.parsing.text import save

#: Nothing may be loaded from anywhere: a report shows what is in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_LARGEST_PICTURE = 120_000  # characters of a drawing, above which it becomes an image of points


class Section(NamedTuple):
    """A part of a report: its title, and pieces of HTML in which all texts are escaped."""

    title: str
    pieces: Sequence[str]


def make_page(title: str, lead: Iterable[str], sections: Sequence[Section], data: Any) -> str:
    """Return a page with a title, pieces of HTML below it, sections, and the numbers as JSON.

    Examples
    --------
    >>> page = make_page("A <b>", ["<p>found</p>"], [Section("More", ["<p>text</p>"])], {"p": 0.5})
    >>> "A &lt;b&gt;" in page, '<h2 id="more">' in page, '{"p": 0.5}' in page
    (True, True, True)
    """
    here = files("gibbsite.results.report")
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    names = [(section.title.lower().replace(" ", "-"), section) for section in sections]
    links = " ".join(f'<a href="#{escape(name)}">{escape(section.title)}</a>' for name, section in names)
    # "<" must not end the element that holds the numbers
    numbers = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    body = [
        f'<section aria-labelledby="{escape(name)}"><h2 id="{escape(name)}">{escape(section.title)}</h2>'
        + "\n".join(section.pieces)
        + "</section>"
        for name, section in names
    ]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style></head>",
            "<body>",
            f"<header><h1>{escape(title)}</h1>",
            *lead,
            f'<nav aria-label="Parts of this report">{links}</nav></header>',
            "<main>",
            *body,
            "</main>",
            f'<script type="application/json" id="numbers">{numbers}</script>',
            f"<script>{script}</script>",
            "</body></html>",
            "",
        ]
    )


def definition_list(rows: Iterable[tuple[str, object]]) -> str:
    """Return names with what they are, as HTML.

    Examples
    --------
    >>> definition_list([("method", "exact")])
    '<dl><dt>method</dt><dd>exact</dd></dl>'
    """
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows) + "</dl>"


class Column(NamedTuple):
    """A column of a table: its name, and whether its cells are numbers."""

    name: str
    number: bool = False


class Cell(NamedTuple):
    """A cell: a piece of HTML, and the value by which rows are sorted."""

    html: str
    value: Any = None


def sortable_table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], name: str, caption: str) -> list[str]:
    """Return a table that can be sorted and searched, as pieces of HTML.

    Examples
    --------
    >>> pieces = sortable_table([Column("a", True)], [[Cell("0.5", 0.5)]], "numbers", "Some numbers")
    >>> '<td class="number" data-value="0.5">0.5</td>' in "".join(pieces)
    True
    """
    heads = "".join(
        f'<th scope="col"{" class=number" * column.number}><button type="button">{escape(column.name)}</button></th>'
        for column in columns
    )
    search = f"search-{escape(name)}"
    pieces = [
        f'<label class="search" for="{search}">Search</label> <input type="search" id="{search}"> '
        f'<span class="soft" id="{search}-found" role="status"></span>',
        f'<div class="scroll"><table class="sortable" data-search="{search}"><caption class="soft">'
        f"{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>",
    ]
    for row in rows:
        cells = []
        for column, cell in zip(columns, row, strict=True):
            kind = ' class="number"' if column.number else ""
            value = "" if cell.value is None else f' data-value="{escape(cell.value)}"'
            cells.append(f"<td{kind}{value}>{cell.html}</td>")
        pieces.append(f"<tr>{''.join(cells)}</tr>")
    return [*pieces, "</tbody></table></div>"]


def bar(p: float, error: float) -> str:
    """Return a bar of a probability with a mark from four standard errors below it to four above.

    Examples
    --------
    >>> bar(0.25, 0.0)
    '<span class="track" aria-hidden="true"><i style="width:25.00%"></i></span>'
    """
    mark = ""
    if error > 0.0:
        low, high = max(p - 4.0 * error, 0.0), min(p + 4.0 * error, 1.0)
        mark = f'<b style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></b>'
    return f'<span class="track" aria-hidden="true"><i style="width:{100 * p:.2f}%"></i>{mark}</span>'


def picture(draw: Callable[[], Any], text: str) -> list[str]:
    """Return a plot as a drawing inside the page; nothing if it cannot be drawn or matplotlib is not installed.

    ``draw`` returns axes or a figure of matplotlib, or an array of axes; ``text`` says what is seen.
    """
    try:
        drawn = draw()
    except (GibbsiteError, ImportError):
        return []
    first = drawn.flat[0] if hasattr(drawn, "flat") else drawn
    figure = getattr(first, "figure", None) or first
    while hasattr(figure, "figure") and figure.figure is not None and figure.figure is not figure:
        figure = figure.figure
    return [f"<figure>{_embed(figure, text)}<figcaption>{escape(text)}</figcaption></figure>"]


def _embed(figure: Any, text: str) -> str:
    import base64

    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gibbsite"}):
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    drawing = out.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    if len(drawing) <= _LARGEST_PICTURE:
        return drawing.replace("<svg", f'<svg role="img" aria-label="{escape(text)}"', 1)
    points = io.BytesIO()
    figure.savefig(points, format="png", dpi=110, bbox_inches="tight")
    code = base64.b64encode(points.getvalue()).decode()
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{code}">'


def save_page(path: str | Path, page: str) -> None:
    """Write a page to a file; an existing file is replaced when all is written."""
    save(str(path), page)
