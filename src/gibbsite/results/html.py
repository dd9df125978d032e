"""Marginals and states in notebooks: tables of the first sites as pieces of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from gibbsite._common.html import CELL, escape, grid
from gibbsite.results.rows import mean_and_sd
from gibbsite.results.wording import in_words

if TYPE_CHECKING:
    from gibbsite.results.table import SiteTable

_SITES, _STATES = 10, 8
_BAR = "#5b8fd9"  # a colour that reads on light and on dark pages
_LINE = "border-top:1px solid rgba(128,128,128,.35)"


def states_table(states: Mapping[str, Any], evidence: Mapping[str, Any]) -> list[str]:
    """Return the first sites of a state as a table."""
    shown = list(islice(states, _SITES))
    rows = [(name + " (observed)" * (name in evidence), states[name]) for name in shown]
    return grid(("site", "state"), rows, len(states) - len(shown), "sites")


def marginals_table(
    marginals: SiteTable, mcse: SiteTable | None, evidence: Mapping[str, Any], probabilities: bool = True
) -> list[str]:
    """Return the marginals of the first sites as a table, or other numbers of each state of theirs."""
    numbers = marginals.domains.numbers
    shown_as = "probability" if not numbers.any() else "value" if numbers.all() else "probability or value"
    shown_as = shown_as if probabilities else "value"
    columns = ("site", "state", shown_as, *(("error",) if mcse is not None else ()))
    heads = "".join(f'<th style="{CELL}">{head}</th>' for head in columns)
    rows = ['<table style="border-collapse:collapse;margin-top:6px">', f"<tr>{heads}</tr>"]
    # Without a list of all names: there may be millions.
    free = (marginals.domains.names[k] for k in range(min(_SITES, marginals.domains.n_sites)))
    shown = list(islice((name for part in (free, evidence) for name in part), _SITES))
    for name in shown:
        number = marginals.is_number(name) or not probabilities
        texts = marginals.texts(name, mcse)
        if not probabilities:
            texts = {label: in_words(value) for label, value in marginals[name].items()}
        states = list(marginals[name].items())
        if len(states) > _STATES:
            states = sorted(states, key=lambda state: -state[1])[:_STATES]
        for row, (label, p) in enumerate(states):
            value, sign, error = texts[label].partition("±")
            first = escape(name) + (" (observed)" if name in evidence else "")
            line = f' style="{_LINE}"' if row == 0 else ""
            rows.append(
                f"<tr{line}>"
                f'<td style="{CELL}">{"" if row else first}</td>'
                f'<td style="{CELL}">{escape(label)}</td>'
                f'<td style="{CELL}">{"" if number else _bar(p)} {value}</td>'
                + (f'<td style="{CELL}">{sign}{error}</td></tr>' if mcse is not None else "</tr>")
            )
        hidden = len(marginals[name]) - len(states)
        if hidden:
            both = mean_and_sd(marginals[name])
            also = "" if both is None else f"; mean {in_words(both[0])}, standard deviation {in_words(both[1])}"
            rows.append(f'<tr><td></td><td style="{CELL}" colspan="3">… {hidden} rarer states{also}</td></tr>')
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
