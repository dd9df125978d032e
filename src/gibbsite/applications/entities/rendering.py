"""Tagged text for people and programs: inline marks, columns, JSON and a page in colours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gibbsite._common.wording import escaped
from gibbsite.formats.parsing.plain_json import write_json

if TYPE_CHECKING:
    from gibbsite.applications.entities.recognizer import Entity, Tagged

_COLORS = ("#8ecae6", "#ffd166", "#95d5b2", "#ffadad", "#cdb4db", "#f4a261", "#bde0fe", "#e9c46a")


def render(tagged: Sequence[Tagged], form: str) -> str:
    """Return tagged documents in a format."""
    return {"inline": _inline, "tsv": _tsv, "json": _json, "html": _html}[form](tagged)


def _places(one: Tagged) -> list[tuple[int, int, Entity]]:
    return [(e.start, e.end, e) for e in one.entities]


def _inline(tagged: Sequence[Tagged]) -> str:
    parts = []
    for one in tagged:
        text, at, out = one.text, 0, []
        for start, end, entity in _places(one):
            out += [text[at:start], f"[{entity.label} {text[start:end]}]"]
            at = end
        parts.append("".join([*out, text[at:]]))
    return "".join(parts)


def _tsv(tagged: Sequence[Tagged]) -> str:
    lines = []
    for one in tagged:
        lines += [f"-DOCSTART-\t{one.name}", ""]
        for tokens, labels in zip(one.tokens, one.labels, strict=True):
            lines += [f"{token}\t{label}" for token, label in zip(tokens, labels, strict=True)]
            lines.append("")
    return "\n".join(lines) + "\n"


def _json(tagged: Sequence[Tagged]) -> str:
    documents: list[dict[str, Any]] = [
        {
            "name": one.name,
            "text": one.text,
            "entities": [
                {
                    "start": e.start,
                    "end": e.end,
                    "text": one.text[e.start : e.end],
                    "label": e.label,
                    "probability": e.probability,
                    "error": e.error,
                }
                for e in one.entities
            ],
        }
        for one in tagged
    ]
    return write_json({"documents": documents}) + "\n"


_STYLE = "\n".join(
    (
        ":root { color-scheme: light dark; }",
        "body { font: 17px/1.9 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }",
        "h2 { font: 600 1rem sans-serif; margin: 2rem 0 .5rem; }",
        ".text { white-space: pre-wrap; overflow-wrap: anywhere; }",
        "mark { color: #111; padding: .12em .3em; border-radius: .3em; }",
        "mark small { font: 600 .62em sans-serif; margin-left: .45em; opacity: .75; }",
        ".key { font: .85rem sans-serif; display: flex; gap: .8rem; flex-wrap: wrap; }",
    )
)


def _escape(text: str) -> str:
    """Return a text for a page; control characters, which pages must not hold, are written out."""
    return html.escape(escaped(text, keep="\n\r\t\u061c\u200e\u200f"))  # texts may run from right to left


def _html(tagged: Sequence[Tagged]) -> str:
    labels = sorted({e.label for one in tagged for e in one.entities})
    color = {label: _COLORS[k % len(_COLORS)] for k, label in enumerate(labels)}
    out = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8"><title>Named entities</title>']
    out.append(f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>')
    out.append('<p class="key">')
    out += [f'<mark style="background:{color[label]}">{_escape(label)}</mark>' for label in labels]
    out.append("<span>probability of the whole entity behind its class; pale: uncertain</span></p>")
    for one in tagged:
        if one.name:
            out.append(f"<h2>{_escape(one.name)}</h2>")
        pieces, at = ['<div class="text">'], 0
        for start, end, entity in _places(one):
            pieces.append(_escape(one.text[at:start]))
            said, strength = "", 100
            if entity.probability is not None:
                said, strength = f" {entity.probability:.0%}", round(30 + 70 * entity.probability)
            shade = f"color-mix(in srgb, {color[entity.label]} {strength}%, #f4f4f4)"
            title = f"{entity.label}{said}" + (f" ± {entity.error:.1%}" if entity.error else "")
            pieces.append(
                f'<mark style="background:{shade}" title="{_escape(title)}">'
                f"{_escape(one.text[start:end])}<small>{_escape(entity.label)}{said}</small></mark>"
            )
            at = end
        out.append("".join([*pieces, _escape(one.text[at:]), "</div>"]))
    out.append("</body></html>")
    return "\n".join(out) + "\n"
