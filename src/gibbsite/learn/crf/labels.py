"""Labels of spans in the schemes BIO, BIOES and IO.

``B-X`` begins a span of class X, ``I-X`` continues it, ``E-X`` ends it, ``S-X`` is a span of one position, and ``O`` is
outside all spans. BIO has only ``B``, ``I`` and ``O``, and IO has only ``I`` and ``O``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, ModelError

SCHEMES = ("bio", "bioes", "io")
_PREFIXES = {"bio": "BI", "bioes": "BIES", "io": "I"}


class Span(NamedTuple):
    """Positions start, ..., end - 1 with their class."""

    start: int
    end: int
    label: str


def check_scheme(scheme: str) -> str:
    """Return the name of a scheme; refuse others."""
    if scheme not in SCHEMES:
        raise ArgumentError(unknown("scheme", scheme, SCHEMES))
    return scheme


def check_labels(labels: Sequence[str], scheme: str) -> None:
    """Refuse labels that a scheme does not have."""
    for label in labels:
        if split_label(label)[0] not in "O" + _PREFIXES[scheme]:
            raise ModelError(f"{label!r} is no label of the scheme {scheme}.")


def split_label(label: str) -> tuple[str, str]:
    """Return the letter of a label and its class."""
    if label == "O":
        return "O", ""
    letter, dash, name = label.partition("-")
    if not dash or not name or letter not in "BIES" or len(letter) != 1:
        raise ModelError(f'the label {label!r} is neither "O" nor a class after "B-", "I-", "E-" or "S-".')
    return letter, name


def find_fault(labels: Sequence[str], scheme: str = "bio") -> tuple[int, str] | None:
    """Return the first position whose label violates a scheme, with a description; None if all labels are valid."""
    check_scheme(scheme)
    before = "O"
    for at, label in enumerate(labels):
        try:
            letter, name = split_label(label)
        except ModelError as error:
            return at, str(error).rstrip(".")
        if letter not in "O" + _PREFIXES[scheme]:
            return at, f"{label!r} is no label of the scheme {scheme}"
        if not follows(before, label, scheme):
            if letter in "IE" and split_label(before) not in (("B", name), ("I", name)):
                return (at, f"{label!r} follows {before!r}, but only 'B-{name}' or 'I-{name}' may precede it")
            return at, f"{label!r} follows {before!r}, whose span has not ended"
        before = label
    if scheme == "bioes" and before[0] in "BI":
        return len(labels) - 1, f"the last label is {before!r}, whose span has not ended"
    return None


def follows(before: str, label: str, scheme: str) -> bool:
    """Return whether a label may follow another; "O" also stands for the beginning of a sequence."""
    if scheme == "io":
        return True
    (first, old), (second, new) = split_label(before), split_label(label)
    goes_on = second in "IE"
    if goes_on:
        return first in "BI" and old == new
    return not (scheme == "bioes" and first in "BI")


def allowed_moves(labels: Sequence[str], scheme: str | None) -> tuple[Bools, Bools, Bools]:
    """Return which labels may follow which, which may come first, and which last."""
    n = len(labels)
    if scheme is None:
        return np.ones((n, n), bool), np.ones(n, bool), np.ones(n, bool)
    check_scheme(scheme)
    pairs = np.array([[follows(a, b, scheme) for b in labels] for a in labels]).reshape(n, n)
    begins = np.array([follows("O", b, scheme) for b in labels])
    ends = np.array([scheme != "bioes" or split_label(a)[0] not in "BI" for a in labels])
    return pairs, begins, ends


def find_spans(labels: Sequence[str]) -> list[Span]:
    """Return the spans of a sequence of labels of any scheme, as defined by the scoring program of CoNLL-2000."""
    spans: list[Span] = []
    start, old_letter, old = 0, "O", ""
    for at, label in enumerate([*labels, "O"]):
        letter, name = split_label(label)
        goes_on = letter in "IE" and name == old and old_letter in "BI"
        if old_letter != "O" and not goes_on:
            spans.append(Span(start, at, old))
        if not goes_on:
            start = at
        old_letter, old = letter, name
    return spans


def write_spans(spans: Sequence[Span], length: int, scheme: str = "bio") -> list[str]:
    """Return the labels of spans that do not overlap."""
    labels = ["O"] * length
    for start, end, name in spans:
        for at in range(start, end):
            letter = "I" if scheme == "io" or at > start else "B"
            if scheme == "bioes" and at == end - 1:
                letter = "S" if at == start else "E"
            labels[at] = f"{letter}-{name}"
    return labels


def span_sets(labels: Sequence[str], name: str, scheme: str) -> Bools:
    """Return the labels that a span of a class allows: before it, alone, first, inside, last, and after it."""
    split = [split_label(label) for label in labels]

    def having(letter: str) -> list[bool]:
        return [each == (letter, name) for each in split]

    anything, inside = [True] * len(labels), having("I")
    others = [not good for good in inside]
    if scheme == "bio":
        sets = [anything, having("B"), having("B"), inside, inside, others]
    elif scheme == "bioes":
        sets = [anything, having("S"), having("B"), inside, having("E"), anything]
    else:
        sets = [others, inside, inside, inside, inside, others]
    return np.array(sets)
