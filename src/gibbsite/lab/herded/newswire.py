"""Labelled news for the experiments with entities: real where it is at hand, otherwise made up here."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gibbsite.applications.entities.columns import read_all
from gibbsite.applications.entities.documents import Document, Sentence

_TRAIN, _DEV = "ner/worldwide-newswire/train.tsv.gz", "ner/worldwide-newswire/devtest.tsv.gz"
_TEST = ("ner/ieer/APW_19980314.tsv.gz", "ner/ieer/APW_19980429.tsv.gz", "ner/ieer/NYT_19980315.tsv.gz")
_NAMES = ("Jordan", "Chelsea", "Madison", "Lincoln", "Carter", "Wayne", "Houston", "Sydney", "Paris", "Austin")
_FRAMES = (
    ("the mayor {P} spoke in {L} .", "PL"),
    ("{P} said that {L} was quiet .", "PL"),
    ("{O} Corp. opened offices near {L} .", "OL"),
    ("Mr. {P} works for {O} Inc. now .", "PO"),
    ("rain fell on {L} and {L} .", "LL"),
    ("{P} met {P} yesterday .", "PP"),
    ("{P} came .", "P"),
    ("{L} waits .", "L"),
    ("they praised {O} .", "O"),
    ("they praised {P} .", "P"),
)
_CLASSES = {"P": "PERSON", "L": "LOCATION", "O": "ORGANIZATION"}


class News(NamedTuple):
    """Documents to learn from, to try out, and to test, and where they are from."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    source: str


def make_news(documents: int, seed: int) -> list[Document]:
    """Make up news in which names are ambiguous, but mean the same all through a document."""
    rng = np.random.default_rng(seed)
    found = []
    for d in range(documents):
        names = rng.permutation(_NAMES)
        owned = {"P": names[:3], "L": names[3:6], "O": names[6:8]}
        sentences = []
        for k in rng.integers(0, len(_FRAMES), 6):
            tokens: list[str] = []
            labels: list[str] = []
            for word in _FRAMES[k][0].split():
                kind = word[1:2] if word.startswith("{") else ""
                tokens.append(str(rng.choice(owned[kind])) if kind else word)
                labels.append(f"B-{_CLASSES[kind]}" if kind else "O")
            sentences.append(Sentence(tokens, labels))
        found.append(Document(f"made up {d}", sentences))
    return found


def find_news(quick: bool) -> News:
    """Return real news from the folder that ``GIBBSITE_DATA`` names; without it, news that are made up."""
    folder = os.environ.get("GIBBSITE_DATA")
    if folder and all((Path(folder) / name).exists() for name in (_TRAIN, _DEV, *_TEST)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # four sentences of the training text break BIO
            train, dev = (read_all([Path(folder) / name]) for name in (_TRAIN, _DEV))
        test = read_all([Path(folder) / name for name in _TEST])
        if quick:
            train, dev, test = train[::8], dev[::8], test[::8]
        return News(train, dev, test, "worldwide-newswire, IE-ER")
    many = 40 if quick else 200
    return News(make_news(many, 1), make_news(many // 2, 2), make_news(many // 2, 3), "made up")
