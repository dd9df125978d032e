"""Objects in notebooks: small self-contained pieces of HTML that can be read on light and on dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from gibbsite._common.wording import escaped

# Colours that read on light and on dark pages; everything else is inherited from the page.
GOOD, BAD = "#2a9d5c", "#d1495b"
CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


def escape(text: object) -> str:
    """Return a text for a page, in which neither markup nor control characters have an effect.

    Examples
    --------
    >>> escape("<b>")
    '&lt;b&gt;'
    """
    return html.escape(escaped(text))


def card(
    title: str,
    lines: Iterable[object] = (),
    *,
    good: bool | None = None,
    notes: Iterable[object] = (),
    table: Iterable[str] = (),
) -> str:
    """Return what is known about an object as a piece of a page.

    Parameters
    ----------
    title : str
        A word or two in bold.
    lines : iterable
        Texts; the first is put beside the title.
    good : bool, optional
        Whether the title is a good or a bad verdict, which gives it a colour.
    notes : iterable
        Texts for a list.
    table : iterable of str
        Pieces of HTML, which are not escaped; see :func:`grid`.

    Examples
    --------
    >>> print(card("Result", ["a < b"]))
    <div style="line-height:1.5">
    <div><strong>Result</strong> &nbsp; a &lt; b</div>
    </div>
    """
    color = "" if good is None else f' style="color:{GOOD if good else BAD}"'
    first, *others = [*lines] or [""]
    beside = f" &nbsp; {escape(first)}" if first else ""
    parts = ['<div style="line-height:1.5">', f"<div><strong{color}>{escape(title)}</strong>{beside}</div>"]
    parts += [f"<div>{escape(line)}</div>" for line in others]
    if items := [f"<li>{escape(note)}</li>" for note in notes]:
        parts += ['<ul style="margin:4px 0">', *items, "</ul>"]
    return "\n".join([*parts, *table, "</div>"])


def grid(heads: Sequence[object], rows: Iterable[Sequence[object]], left: int = 0, things: str = "rows") -> list[str]:
    """Return a table as pieces of HTML; cells are escaped.

    Parameters
    ----------
    heads : sequence
        Names of the columns.
    rows : iterable of sequence
        The cells.
    left : int
        Number of rows that are not shown, which are mentioned below the table.
    things : str
        What a row is about, in the plural.

    Examples
    --------
    >>> grid(["a"], [["<"]], left=2)[-2:]
    ['</table>', '<div>… and 2 more rows</div>']
    """
    found = ['<table style="border-collapse:collapse;margin-top:6px">']
    found.append("<tr>" + "".join(f'<th style="{CELL}">{escape(head)}</th>' for head in heads) + "</tr>")
    lines = ("".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row) for row in rows)
    found += [*(f"<tr>{line}</tr>" for line in lines), "</table>"]
    return [*found, f"<div>… and {left:,} more {things}</div>"] if left else found
