"""Chains whose weights are given instead of learnt: as mappings, or as the text dump of a model of CRFsuite.

A dump has sections. ``LABELS`` and ``ATTRIBUTES`` number the names, ``TRANSITIONS`` has lines such as
``(1) O --> B-PER: 0.69``, and ``STATE_FEATURES`` lines such as ``(0) w=Rome --> B-LOC: 2.1``. What is not listed has
the weight zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from gibbsite._common.arguments import describe, is_iterable
from gibbsite._common.arrays import Floats
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import load
from gibbsite.learn.crf.chain import MOST_LABELS, Chain, Weights
from gibbsite.learn.crf.labels import allowed_moves, check_labels, check_scheme
from gibbsite.learn.crf.structure import Structure

Table = dict[tuple[str, str], float]

_SECTION = re.compile(r"([A-Z_]+) = \{\Z")
_NAME = re.compile(r"\s*\d+: (.*)\Z")
_WEIGHT = re.compile(r"\s*\(\d+\) (.*): (\S+)\Z")
_ARROW = " --> "
_LARGEST = 1e100


@dataclass
class GivenWeights:
    """Weights by name."""

    features: Table = field(default_factory=dict)  # (feature, label) -> weight
    transitions: Table = field(default_factory=dict)  # (label, label) -> weight
    labels: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)  # names of features, some of which may have no weight


def read_dump(path: str | PathLike[str]) -> GivenWeights:
    """Read the text dump of a first-order model of CRFsuite."""
    source = load(path)
    found, section = GivenWeights(), ""
    seen: set[str] = set()
    for number, line in enumerate(source.decoded().splitlines(), 1):
        if not line.strip():
            continue
        if opened := _SECTION.match(line):
            section = opened[1]
            seen.add(section)
        elif line.strip() == "}" and section:
            section = ""
        elif section in ("LABELS", "ATTRIBUTES"):
            name = _NAME.match(line)
            if name is None:
                raise FormatError(f"expected a number, a colon and a name, got {line!r:.80}.", source.name, number)
            (found.labels if section == "LABELS" else found.attributes).append(name[1])
        elif section in ("TRANSITIONS", "STATE_FEATURES"):
            entry = _read_weight(line, found.labels)
            if entry is None:
                raise FormatError(
                    f"expected two names with ' --> ' between them, the second one of the labels, a colon and a "
                    f"number, got {line!r:.80}.",
                    source.name,
                    number,
                )
            if section == "TRANSITIONS" and entry[0] not in found.labels:
                raise FormatError(f"the transition is from {entry[0]!r}, which is no label.", source.name, number)
            table = found.transitions if section == "TRANSITIONS" else found.features
            table[entry[:2]] = entry[2]
        elif not section:
            raise FormatError(
                f"expected a section such as 'LABELS = {{', got {line!r:.80}; give the text that CRFsuite dumps, "
                "not its model.",
                source.name,
                number,
            )
    missing = sorted({"LABELS", "STATE_FEATURES"} - seen)
    if missing:
        raise FormatError(
            f"there is no section {missing[0]}; give the text that CRFsuite dumps, not its model.", source.name
        )
    if not found.labels:
        raise FormatError("the model has no labels.", source.name)
    return found


def _read_weight(line: str, labels: Sequence[str]) -> tuple[str, str, float] | None:
    """Return what a line of weights says: two names and a number; names may have arrows and colons themselves."""
    entry = _WEIGHT.match(line)
    if entry is None:
        return None
    try:
        weight = float(entry[2])
    except ValueError:
        return None
    at = entry[1].find(_ARROW)
    while at >= 0:
        if entry[1][at + len(_ARROW) :] in labels and abs(weight) <= _LARGEST:
            return entry[1][:at], entry[1][at + len(_ARROW) :], weight
        at = entry[1].find(_ARROW, at + 1)
    return None


def read_given(weights: Any, transitions: Any, labels: Any, boundaries: Sequence[Any]) -> GivenWeights:
    """Read weights from mappings, or from the path of a dump."""
    if isinstance(weights, str | PathLike):
        if transitions is not None or labels is not None:
            raise ArgumentError(
                f"A dump has transitions and labels of its own; leave {argument('transitions')} and "
                f"{argument('labels')} out."
            )
        return read_dump(weights)
    found = GivenWeights(
        _read_table("weights", weights), _read_table("transitions", {} if transitions is None else transitions)
    )
    used = [b for _, b in found.features] + [name for pair in found.transitions for name in pair]
    used += [str(name) for given in boundaries if isinstance(given, Mapping) for name in given]
    if labels is None:
        found.labels = sorted(set(used))
    else:
        if not is_iterable(labels) or isinstance(labels, str) or not all(isinstance(name, str) for name in labels):
            raise ArgumentError(f"{argument('labels')} must be a list of names, got {describe(labels)}.")
        found.labels = list(labels)
        if len(set(found.labels)) < len(found.labels):
            raise ArgumentError(f"{argument('labels')} has a name twice.")
        if unknown := sorted(set(used) - set(found.labels)):
            raise ArgumentError(f"There are weights for {unknown[0]!r}, which is not in {argument('labels')}.")
    found.attributes = list(dict.fromkeys(name for name, _ in found.features))
    return found


def _read_table(name: str, given: Any) -> Table:
    """Read weights by pairs of names, or by one name and then another."""
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"{argument(name)} must be a mapping from pairs of names to numbers, got {describe(given)}."
        )
    found: Table = {}
    for key, value in given.items():
        inner = value.items() if isinstance(value, Mapping) else None
        entries: Iterable[Any] = [(key, value)] if inner is None else (((key, label), each) for label, each in inner)
        for pair, weight in entries:
            if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(each, str) for each in pair)):
                raise ArgumentError(f"{argument(name)} has the key {describe(pair)}; expected a pair of names.")
            found[pair] = _read_number(name, pair, weight)
    return found


def _read_number(name: str, key: Any, given: Any) -> float:
    forbidden = name == "transitions" and given == -np.inf
    if isinstance(given, bool) or not isinstance(given, int | float | np.floating | np.integer):
        raise ArgumentError(f"{argument(name)} has {describe(given)} for {key!r}; expected a number.")
    if not abs(float(given)) <= _LARGEST and not forbidden:
        raise ArgumentError(f"{argument(name)} has {given!r} for {key!r}; expected a number up to {_LARGEST:g}.")
    return float(given)


def make_chain(given: GivenWeights, first: Any, last: Any, scheme: str | None) -> Chain:
    """Return the chain with given weights; ``first`` and ``last`` are weights of the first and the last label."""
    labels = given.labels
    if not 1 <= len(labels) <= MOST_LABELS:
        raise ArgumentError(f"a chain has 1 to {MOST_LABELS} labels, got {len(labels)}.")
    number = {label: k for k, label in enumerate(labels)}
    if scheme is not None:
        check_labels(labels, check_scheme(scheme))
    pairs, begins, ends = allowed_moves(labels, scheme)
    moves = np.zeros(pairs.shape)
    for (a, b), weight in given.transitions.items():
        moves[number[a], number[b]] = weight
    pairs = pairs & (moves > -np.inf)
    edges = [_read_boundary(name, each, number) for name, each in (("first", first), ("last", last))]
    structure = Structure(pairs, begins, ends, 1, first is not None or last is not None)
    place = {name: k for k, name in enumerate(given.attributes)}
    entries = sorted((place[feature], number[label], weight) for (feature, label), weight in given.features.items())
    at = np.array([entry[0] for entry in entries], np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(place)))]).astype(np.int64)
    own = np.array([entry[2] for entry in entries], np.float64)
    x = np.concatenate([own, moves[pairs], *(edges if structure.boundaries else [])])
    layout = Weights(start, np.array([entry[1] for entry in entries], np.uint8), structure)
    return Chain(tuple(labels), layout, x)


def _read_boundary(name: str, given: Any, number: dict[str, int]) -> Floats:
    found = np.zeros(len(number))
    if given is None:
        return found
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{argument(name)} must be a mapping from labels to numbers, got {describe(given)}.")
    for label, weight in given.items():
        if label not in number:
            raise ArgumentError(f"{argument(name)} has a weight for {label!r}, which is no label.")
        found[number[label]] = _read_number(name, label, weight)
    return found
