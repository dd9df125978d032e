"""Labelled files: a token and its label per line, an empty line between sentences.

Two formats are read. Columns separated by tabs have the token first and its label second (others are ignored). Columns
separated by spaces, as of the CoNLL shared tasks, have the label last. ``-DOCSTART-`` opens a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from gibbsite._common.arguments import checked
from gibbsite._common.notice import warn_user
from gibbsite.applications.entities.documents import Document, Sentence
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import PathLike, load, shortened
from gibbsite.learn.crf.labels import find_fault, find_spans, write_spans

_START = "-DOCSTART-"
_MOST_TOKEN = 1000  # characters
_RARE = 1e-3  # largest share of sentences whose labels may violate BIO


@checked
def read_columns(
    path: PathLike, *, labelled: bool | None = None, classes: Mapping[str, str] | None = None, scheme: str | None = None
) -> list[Document]:
    """Read a file of tokens in columns, plain or gzip.

    Parameters
    ----------
    path : str or path
        The file; ``"-"`` is standard input.
    labelled : bool, optional
        Require a label in every line (True) or ignore labels (False); by default the first line decides.
    classes : mapping, optional
        New names of classes; an empty name drops the class.
    scheme : {"bio", "bioes", "iob1", "io"}, optional
        Labelling scheme of the file; by default BIO, or BIOES if there are labels E- or S-.

    Returns
    -------
    list of Document
        With labels converted to BIO.

    Raises
    ------
    FormatError
        With file and line.
    """
    source = load(path)
    text = source.decoded()
    documents: list[Document] = []
    tokens: list[str] = []
    labels: list[str] = []
    lines: list[int] = []
    width: int | None = None

    def close() -> None:
        if not tokens:
            return
        if not documents:
            documents.append(Document(source.name))
        known = list(labels) if len(labels) == len(tokens) else None
        documents[-1].sentences.append(Sentence(list(tokens), known, None, lines[0]))
        tokens.clear()
        labels.clear()
        lines.clear()

    for number, line in enumerate(text.split("\n"), 1):
        line = line.rstrip("\r")
        if not line.strip(" \t"):
            close()
            continue
        columns = line.split("\t") if "\t" in line else line.split(" ")
        columns = columns if "\t" in line else [each for each in columns if each]
        if columns[0] == _START:
            close()
            documents.append(Document(columns[1] if "\t" in line and len(columns) > 1 else f"{len(documents) + 1}"))
            continue
        if len(columns[0]) > _MOST_TOKEN:
            raise FormatError(
                f"a token of {len(columns[0]):,} characters; expected a token and its label in each line.",
                source.name,
                number,
            )
        if width is None:
            width = len(columns)
            if labelled is None:
                labelled = width > 1
        if labelled and len(columns) < 2:
            raise FormatError(
                f"{shortened(repr(line))} has no label; expected a token, a tab and its label.", source.name, number
            )
        if labelled and len(columns) != width:
            raise FormatError(
                f"{len(columns)} columns, but earlier lines have {width}; expected the same number in every line.",
                source.name,
                number,
            )
        if not columns[0].strip():  # a character that was lost in a conversion
            columns[0] = "\ufffd"
        tokens.append(columns[0])
        lines.append(number)
        if labelled:
            labels.append(columns[1] if "\t" in line else columns[-1])
    close()
    if not any(document.sentences for document in documents):
        raise FormatError("the file has no sentence; expected a token in each line.", source.name)
    if labelled:
        _normalise(documents, source.name, classes or {}, scheme)
    return [document for document in documents if document.sentences]


def _normalise(documents: Iterable[Document], name: str, classes: Mapping[str, str], given: str | None) -> None:
    """Convert all labels to BIO and rename classes; refuse labels that follow no scheme."""
    sentences = [sentence for document in documents for sentence in document.sentences]
    scheme = _find_scheme([sentence.labels or [] for sentence in sentences], given)
    if scheme is None:
        _judge_faults(sentences, name, given or "bio")
    for sentence in sentences:
        labels = sentence.labels or []
        if scheme != "bio" or classes:
            spans = [s._replace(label=classes.get(s.label, s.label)) for s in find_spans(labels)]
            sentence.labels = write_spans([s for s in spans if s.label], len(labels))


def _judge_faults(sentences: list[Sentence], name: str, scheme: str) -> None:
    """Refuse labels that violate BIO; a few of them in a large file only give a warning, as in scoring programs."""
    if any(label[:1] in "ES" for s in sentences for label in s.labels or []) and scheme == "bio":
        scheme = "bioes"
    find = _iob1_fault if scheme == "iob1" else partial(find_fault, scheme=scheme)
    faults = [(s, fault) for s in sentences if (fault := find(s.labels or [])) is not None]
    if not faults:
        raise FormatError(f"the labels do not follow the scheme {scheme}; give another scheme.", name)
    sentence, (at, said) = faults[0]
    line = sentence.line + at
    if scheme != "bio" or len(faults) > _RARE * len(sentences) or "neither" in said:
        raise FormatError(f"{said}; correct the label, or name the scheme.", name, line)
    warn_user(
        f"{name}:{line}: {said}; {len(faults)} of {len(sentences):,} sentences break BIO; such a label is "
        "taken for the beginning of an entity."
    )


def _find_scheme(rows: list[list[str]], given: str | None) -> str | None:
    """Return the scheme that all labels follow, the given one or BIO or BIOES; None if they do not."""
    letters = {label[:1] for row in rows for label in row}
    scheme = given or ("bioes" if letters & {"E", "S"} else "bio")
    if scheme == "iob1":
        return scheme if all(_iob1_fault(row) is None for row in rows) else None
    return scheme if all(find_fault(row, scheme) is None for row in rows) else None


def _iob1_fault(row: list[str]) -> tuple[int, str] | None:
    """Return the first position whose label violates IOB1, and the fault; None if there is none.

    In IOB1, B is used only where a span directly follows another one of the same class; elsewhere it is accepted.
    """
    for at, label in enumerate(row):
        if label != "O" and (len(label) < 3 or label[:2] not in ("B-", "I-")):
            return at, f"{label!r} is not a label of the scheme iob1"
    return None


def read_classes(given: Iterable[str]) -> dict[str, str]:
    """Return names of classes from "OLD=NEW"; an empty new name drops a class."""
    found = {}
    for item in given:
        old, equals, new = item.partition("=")
        if not equals or not old:
            raise ArgumentError(f"a class is renamed as OLD=NEW, got {item!r}.")
        found[old] = new
    return found


def read_all(paths: Iterable[PathLike], **how: Any) -> list[Document]:
    """Read some files of labelled tokens."""
    read: Callable[..., list[Document]] = read_columns
    return [document for path in paths for document in read(path, **how)]
