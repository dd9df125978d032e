"""Documents with their entities, and their formats: inline marks, columns, JSON and a page in colours."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gibbsite._common.arguments import checked
from gibbsite._common.wording import escaped, unknown
from gibbsite.applications.entities.documents import Document
from gibbsite.errors import ArgumentError
from gibbsite.formats.parsing.plain_json import write_json
from gibbsite.learn.crf.labels import Span, find_spans, write_spans

_COLORS = ("#8ecae6", "#ffd166", "#95d5b2", "#ffadad", "#cdb4db", "#f4a261", "#bde0fe", "#e9c46a")


@dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Attributes
    ----------
    start, end : int
        Its characters in the text of its document.
    label : str
        Its class.
    probability : float or None
        The probability that exactly these tokens are an entity of this class.
    error : float or None
        Standard error of the probability if it was sampled; 0 if it is exact.
    sentence, first, last : int
        Its sentence, and its tokens first, ..., last - 1 there.
    """

    start: int
    end: int
    label: str
    probability: float | None
    error: float | None
    sentence: int
    first: int
    last: int


@dataclass(frozen=True)
class Tagged:
    """A document with its entities.

    Attributes
    ----------
    name, text : str
        Of the document; tokens without text are joined by spaces.
    tokens, labels : lists by sentence
        The tokens and their labels, BIO.
    entities : list of Entity
        In their order.
    """

    name: str
    text: str
    tokens: list[list[str]]
    labels: list[list[str]]
    entities: list[Entity]


def assemble(
    document: Document, rows: Sequence[list[str]], spans: Sequence[Sequence[tuple[Span, float | None, float | None]]]
) -> Tagged:
    """Combine a document, the labels of its sentences, and their spans with probabilities and errors."""
    text, offsets = document.text, [sentence.offsets or [] for sentence in document.sentences]
    if text is None:
        text, offsets = _join(document)
    entities = [
        Entity(offsets[k][start][0], offsets[k][end - 1][1], label, p, error, k, start, end)
        for k, found in enumerate(spans)
        for (start, end, label), p, error in found
    ]
    labels = [write_spans(find_spans(row), len(row)) for row in rows]
    return Tagged(document.name, text, [sentence.tokens for sentence in document.sentences], labels, entities)


def _join(document: Document) -> tuple[str, list[list[tuple[int, int]]]]:
    """Return the tokens of a document as a text, a line per sentence, and their places in it."""
    parts: list[str] = []
    offsets: list[list[tuple[int, int]]] = []
    at = 0
    for sentence in document.sentences:
        places = []
        for token in sentence.tokens:
            places.append((at, at + len(token)))
            at += len(token) + 1
        offsets.append(places)
        parts.append(" ".join(sentence.tokens))
    return "\n".join(parts) + "\n", offsets


@checked
def render(tagged: Sequence[Tagged], form: str) -> str:
    """Return tagged documents in a format."""
    writers = {"inline": _inline, "tsv": _tsv, "json": _json, "html": _html}
    if form not in writers:
        raise ArgumentError(unknown("form", form, writers))
    return writers[form](tagged)


def _inline(tagged: Sequence[Tagged]) -> str:
    parts = []
    for one in tagged:
        text, at, out = one.text, 0, []
        for entity in one.entities:
            out += [text[at : entity.start], f"[{entity.label} {text[entity.start : entity.end]}]"]
            at = entity.end
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
    """Return a text for an HTML page, with control characters escaped."""
    return html.escape(escaped(text, keep="\n\r\t\u061c\u200e\u200f"))  # marks of text direction are kept


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
        for entity in one.entities:
            pieces.append(_escape(one.text[at : entity.start]))
            said, strength = "", 100
            if entity.probability is not None:
                said, strength = f" {entity.probability:.0%}", round(30 + 70 * entity.probability)
            shade = f"color-mix(in srgb, {color[entity.label]} {strength}%, #f4f4f4)"
            title = f"{entity.label}{said}" + (f" ± {entity.error:.1%}" if entity.error else "")
            pieces.append(
                f'<mark style="background:{shade}" title="{_escape(title)}">'
                f"{_escape(one.text[entity.start : entity.end])}<small>{_escape(entity.label)}{said}</small></mark>"
            )
            at = entity.end
        out.append("".join([*pieces, _escape(one.text[at:]), "</div>"]))
    out.append("</body></html>")
    return "\n".join(out) + "\n"
