"""Results in notebooks: the verdict and the first sites as a small self-contained piece of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.wording import escaped

if TYPE_CHECKING:
    from gibbsite.results.table import SiteTable

_SITES, _STATES = 10, 8
# Colours that read on light and on dark pages; everything else is inherited from the page.
_GOOD, _BAD, _BAR = "#2a9d5c", "#d1495b", "#5b8fd9"
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"
_LINE = "border-top:1px solid rgba(128,128,128,.35)"


def escape(text: object) -> str:
    """Return a text for a page: neither marks nor control characters act on it."""
    return html.escape(escaped(text))


def answer_div(word: str, good: bool | None, lines: Iterable[str], reasons: Iterable[str], table: Iterable[str]) -> str:
    """Return an answer as a piece of a page: the verdict in a word, lines about it, reasons, and a table."""
    color = _GOOD if good else _BAD
    first, *others = lines
    parts = [
        '<div style="line-height:1.5">',
        f'<div><b style="color:{color}">{escape(word)}</b> &nbsp; {escape(first)}</div>',
        *(f"<div>{escape(line)}</div>" for line in others),
    ]
    if items := [f"<li>{escape(reason)}</li>" for reason in reasons]:
        parts += ['<ul style="margin:4px 0">', *items, "</ul>"]
    return "\n".join([*parts, *table, "</div>"])


def states_table(states: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[str]:
    """Return the first sites of a state as a table."""
    rows = ['<table style="border-collapse:collapse;margin-top:6px">']
    rows.append("<tr>" + "".join(f'<th style="{_CELL}">{head}</th>' for head in ("site", "state")) + "</tr>")
    for name in islice(states, _SITES):
        first = escape(name) + (" (observed)" if name in evidence else "")
        cells = (first, escape(states[name]))
        rows.append("<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>")
    rows.append("</table>")
    if len(states) > _SITES:
        rows.append(f"<div>… and {len(states) - _SITES:,} more sites</div>")
    return rows


def marginals_table(marginals: SiteTable, mcse: SiteTable | None, evidence: Mapping[str, Any]) -> list[str]:
    """Return the marginals of the first sites as a table."""
    numbers = marginals.domains.numbers
    shown_as = "probability" if not numbers.any() else "value" if numbers.all() else "probability or value"
    columns = ("site", "state", shown_as, *(("error",) if mcse is not None else ()))
    heads = "".join(f'<th style="{_CELL}">{head}</th>' for head in columns)
    rows = ['<table style="border-collapse:collapse;margin-top:6px">', f"<tr>{heads}</tr>"]
    # Without a list of all names: there may be millions.
    free = (marginals.domains.names[k] for k in range(min(_SITES, marginals.domains.n_sites)))
    shown = list(islice((name for part in (free, evidence) for name in part), _SITES))
    for name in shown:
        number = marginals.is_number(name)
        texts = marginals.texts(name, mcse)
        states = list(marginals[name].items())
        if len(states) > _STATES:
            states = sorted(states, key=lambda state: -state[1])[:_STATES]
        for row, (label, p) in enumerate(states):
            value, sign, error = texts[label].partition("±")
            first = escape(name) + (" (observed)" if name in evidence else "")
            line = f' style="{_LINE}"' if row == 0 else ""
            rows.append(
                f"<tr{line}>"
                f'<td style="{_CELL}">{"" if row else first}</td>'
                f'<td style="{_CELL}">{escape(label)}</td>'
                f'<td style="{_CELL}">{"" if number else _bar(p)} {value}</td>'
                f'<td style="{_CELL}">{sign}{error}</td></tr>'
            )
        hidden = len(marginals[name]) - len(states)
        if hidden:
            rows.append(f'<tr><td></td><td style="{_CELL}" colspan="3">… {hidden} rarer states</td></tr>')
    rows.append("</table>")
    left = len(marginals) - len(shown)
    if left:
        rows.append(f"<div>… and {left:,} more sites</div>")
    return rows


def _bar(p: float) -> str:
    return (
        '<span style="display:inline-block;width:80px;background:rgba(128,128,128,.18)">'
        f'<span style="display:block;width:{80 * min(max(p, 0.0), 1.0):.0f}px;height:9px;'
        f'background:{_BAR}"></span></span>'
    )
