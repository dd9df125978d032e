"""Results in notebooks: the verdict and the first sites as a small self-contained piece of HTML."""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gibbsite.result.result import Result

_SITES, _STATES = 10, 8
# Colours that read on light and on dark pages; everything else is inherited from the page.
_GOOD, _BAD, _BAR = "#2a9d5c", "#d1495b", "#5b8fd9"
_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"
_LINE = "border-top:1px solid rgba(128,128,128,.35)"


def result_html(result: Result) -> str:
    """Return a result as HTML.

    Parameters
    ----------
    result : Result
        The result.

    Returns
    -------
    str
        One ``<div>`` with inline styles only; all names and labels are escaped.

    Examples
    --------
    >>> import gibbsite as gs
    >>> result = gs.sample(gs.ising_grid((2, 2)), sweeps=1000, rng=1, progress=False)
    >>> "converged" in result_html(result)
    True
    """
    verdict = result.diagnostics
    color = _GOOD if verdict.converged else _BAD
    parts = [
        '<div style="line-height:1.5">',
        f'<div><b style="color:{color}">{verdict.word.lower()}</b> &nbsp; {escape(repr(result))}</div>',
        f"<div>{escape(verdict.figures())}</div>",
    ]
    reasons = [*verdict.reasons, *(["interrupted: this is what there was"] * result.interrupted)]
    reasons += [f"note: {remark}" for remark in result.remarks]
    reasons += [result.report_line()] * bool(result.report)
    if reasons:
        parts.append('<ul style="margin:4px 0">')
        parts += [f"<li>{escape(reason)}</li>" for reason in reasons]
        parts.append("</ul>")
    if result.n_marginal:
        parts += _table(result)
    parts.append("</div>")
    return "\n".join(parts)


def _table(result: Result) -> list[str]:
    numbers = result.domains.numbers
    shown_as = "probability" if not numbers.any() else "value" if numbers.all() else "probability or value"
    heads = "".join(f'<th style="{_CELL}">{head}</th>' for head in ("site", "state", shown_as, "error"))
    rows = ['<table style="border-collapse:collapse;margin-top:6px">', f"<tr>{heads}</tr>"]
    # Without a list of all names: there may be millions.
    free = (result.domains.names[k] for k in range(min(_SITES, result.domains.n_sites)))
    shown = list(islice((name for part in (free, result.evidence) for name in part), _SITES))
    for name in shown:
        number = result.marginals.is_number(name)
        texts = result.marginals.texts(name, result.mcse)
        states = list(result.marginals[name].items())
        if len(states) > _STATES:
            states = sorted(states, key=lambda state: -state[1])[:_STATES]
        for row, (label, p) in enumerate(states):
            value, sign, error = texts[label].partition("±")
            first = escape(name) + (" (observed)" if name in result.evidence else "")
            line = f' style="{_LINE}"' if row == 0 else ""
            rows.append(
                f"<tr{line}>"
                f'<td style="{_CELL}">{"" if row else first}</td>'
                f'<td style="{_CELL}">{escape(str(label))}</td>'
                f'<td style="{_CELL}">{"" if number else _bar(p)} {value}</td>'
                f'<td style="{_CELL}">{sign}{error}</td></tr>'
            )
        hidden = len(result.marginals[name]) - len(states)
        if hidden:
            rows.append(f'<tr><td></td><td style="{_CELL}" colspan="3">… {hidden} rarer states</td></tr>')
    rows.append("</table>")
    left = len(result.marginals) - len(shown)
    if left:
        rows.append(f"<div>… and {left:,} more sites</div>")
    return rows


def _bar(p: float) -> str:
    return (
        '<span style="display:inline-block;width:80px;background:rgba(128,128,128,.18)">'
        f'<span style="display:block;width:{80 * min(max(p, 0.0), 1.0):.0f}px;height:9px;'
        f'background:{_BAR}"></span></span>'
    )
