"""Numbered features of the tokens of documents, as a template defines them.

Attributes of words are computed once for each word, and every value is looked up once for each offset; the remaining
work for each token is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arrays import Bools, Ints, Ints32
from gibbsite._numba.jit import Integer, compiled_loop, inlined
from gibbsite.applications.entities.attributes import DOCUMENT, WORD, Values, match_phrases, read_values
from gibbsite.applications.entities.documents import Document
from gibbsite.applications.entities.lists import WordLists
from gibbsite.applications.entities.template import Line, parse_template
from gibbsite.learn.crf.sequences import Sequences


class Column(NamedTuple):
    """An attribute at an offset."""

    key: Ints32  # (tokens,): key of the values of a token: its word, or the token itself
    first: Ints  # (keys + 1,): where the values of a key begin
    value: Ints32  # numbers of values; 0 and 1 stand for positions before and after the sentence
    number: Ints32  # (values,): the feature of each value; -1 if there is none
    offset: int  # position relative to the token


@inlined
def _place(t: Integer, low: Integer, high: Integer, offset: Integer) -> Integer:
    """Return the token at an offset, or -1 before and -2 after the sentence."""
    at = t + offset
    return -1 if at < low else -2 if at >= high else at


@compiled_loop
def count(column: Column, begin: Ints, many: Ints) -> None:
    """Add the number of features of a column to the count of every token."""
    for s in range(begin.size - 1):
        for t in range(begin[s], begin[s + 1]):
            at = _place(t, begin[s], begin[s + 1], column.offset)
            if at < 0:
                many[t] += column.number[-1 - at] >= 0
            else:
                key = column.key[at]
                for k in range(column.first[key], column.first[key + 1]):
                    many[t] += column.number[column.value[k]] >= 0


@compiled_loop
def fill(column: Column, begin: Ints, cursor: Ints, feature: Ints32) -> None:
    """Write the features of a column; the cursor of a token is the position of its next feature."""
    for s in range(begin.size - 1):
        for t in range(begin[s], begin[s + 1]):
            at = _place(t, begin[s], begin[s + 1], column.offset)
            if at < 0:
                here = column.number[-1 - at]
                if here >= 0:
                    feature[cursor[t]] = here
                    cursor[t] += 1
            else:
                key = column.key[at]
                for k in range(column.first[key], column.first[key + 1]):
                    here = column.number[column.value[k]]
                    if here >= 0:
                        feature[cursor[t]] = here
                        cursor[t] += 1


_EDGES = ("<s>", "</s>")
_MOST_WORDS = 1 << 20  # largest number of words whose attributes are kept

UserFunction = Callable[[Sequence[str], int], Any]


@dataclass
class _Attribute:
    """Numbered values of an attribute, and the values of all keys so far."""

    values: dict[str, int] = field(default_factory=lambda: {edge: k for k, edge in enumerate(_EDGES)})
    lengths: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    def add(self, values: Values) -> None:
        """Append the values of a key."""
        if not values:
            self.lengths.append(0)
            return
        before = len(self.codes)
        self.codes += [self.values.setdefault(value, len(self.values)) for value in values]
        self.lengths.append(len(self.codes) - before)

    def arrays(self) -> tuple[Ints, Ints32]:
        """Return where the values of each key begin, and their numbers."""
        first = np.zeros(len(self.lengths) + 1, np.int64)
        np.cumsum(self.lengths, out=first[1:])
        return first, np.array(self.codes, np.int32)


class Extractor:
    """Turns documents into sequences of features.

    ``template`` is the text of a template; ``lists`` holds gazetteers, lexicon and clusters; ``names`` are the known
    features in the order of their numbers; ``functions`` are further attributes, name -> function of (tokens of the
    sentence, position).
    """

    def __init__(
        self,
        template: str,
        lists: WordLists,
        names: Iterable[str] = (),
        functions: Mapping[str, UserFunction] | None = None,
    ) -> None:
        self.functions = dict(functions or {})
        self.lines = parse_template(template, functions=self.functions)
        self.lists = lists
        self.numbers = {name: k for k, name in enumerate(names)}
        self._forget()

    def _forget(self) -> None:
        self._words: dict[str, int] = {}
        used = {name for line in self.lines for name, _ in line.parts}
        self._of_words = {name: _Attribute() for name in used if name in WORD or name == "cluster"}
        self._of_tokens = used - self._of_words.keys()
        self._arrays: dict[str, tuple[Ints, Ints32]] = {}
        self._found: dict[Line, Ints32] = {}

    @property
    def names(self) -> list[str]:
        """Known features, by number."""
        return list(self.numbers)

    def read(self, documents: Sequence[Document], *, grow: bool = False, learning: bool = False) -> Sequences:
        """Return the features of all tokens; each sentence is a sequence.

        ``grow`` adds unknown features. With ``learning``, the documents are those from which the lexicon was learnt,
        and the counts for the words of a document leave that document out.
        """
        sentences = [sentence.tokens for document in documents for sentence in document.sentences]
        begin = np.zeros(len(sentences) + 1, np.int64)
        np.cumsum([len(tokens) for tokens in sentences], out=begin[1:])
        words = [word for tokens in sentences for word in tokens]
        keys = self._word_keys(words)
        own = np.arange(len(words), dtype=np.int32)
        here: dict[str, tuple[Ints32, _Attribute, Any]] = {}
        for name, attribute in self._of_words.items():
            here[name] = keys, attribute, self._arrays[name]
        for name in self._of_tokens:
            attribute = _Attribute()
            for values in self._token_values(name, documents, learning):
                attribute.add(values)
            here[name] = own, attribute, attribute.arrays()
        columns = [self._column(line, here, begin, grow) for line in self.lines]
        many = np.zeros(len(words), np.int64)
        for column in columns:
            count(column, begin, many)
        first = np.zeros(len(words) + 1, np.int64)
        np.cumsum(many, out=first[1:])
        feature, cursor = np.zeros(int(first[-1]), np.int32), first[:-1].copy()
        for column in columns:
            fill(column, begin, cursor, feature)
        return Sequences(begin, first, feature, np.zeros(0))

    def keep(self, kept: Bools) -> None:
        """Keep some features and drop the others."""
        names = [name for name, keep in zip(self.numbers, kept.tolist(), strict=True) if keep]
        self.numbers = {name: k for k, name in enumerate(names)}
        self._found = {}

    def _word_keys(self, words: Sequence[str]) -> Ints32:
        """Return the number of each word, and compute the attributes of new words."""
        if len(self._words) > _MOST_WORDS:
            self._forget()
        known = self._words
        before = len(known)
        keys = np.fromiter((known.setdefault(w, len(known)) for w in words), np.int32, len(words))
        if len(known) > before or not self._arrays:
            new = list(known)[before:]
            for name, attribute in self._of_words.items():
                function = self.lists.cluster_of if name == "cluster" else WORD[name]
                for word in new:
                    attribute.add(function(word))
                self._arrays[name] = attribute.arrays()
        return keys

    def _token_values(self, name: str, documents: Sequence[Document], learning: bool) -> Iterable[Values]:
        """Yield the values of an attribute for every token of all documents."""
        for number, document in enumerate(documents):
            if name in DOCUMENT:
                for row in DOCUMENT[name](document):
                    yield from row
                continue
            for sentence in document.sentences:
                if name == "gazetteer":
                    yield from match_phrases(sentence.tokens, self.lists.phrases, self.lists.longest)
                elif name == "lexicon":
                    yield from self.lists.lexicon_of(sentence.tokens, number if learning else None)
                else:
                    function = self.functions[name]
                    for t in range(len(sentence.tokens)):
                        yield read_values(function(sentence.tokens, t), f"the function {name!r}")

    def _column(self, line: Line, here: dict[str, tuple[Any, _Attribute, Any]], begin: Ints, grow: bool) -> Column:
        """Return the column of a line of the template."""
        if len(line.parts) > 1:
            return self._joined(line, here, begin, grow)
        ((name, offset),) = line.parts
        keys, attribute, (first, value) = here[name]
        is_kept = name in self._of_words
        number = self._found.get(line, np.zeros(0, np.int32)) if is_kept else np.zeros(0, np.int32)
        if len(number) < len(attribute.values):
            used, title = list(attribute.values)[len(number) :], line.name
            found = self._look_up((f"{title}={value}" for value in used), len(used), grow)
            number = np.concatenate([number, found])
            if is_kept:
                self._found[line] = number
        return Column(keys, first, value, number, offset)

    def _look_up(self, names: Iterable[str], many: int, grow: bool) -> Ints32:
        known = self.numbers
        if grow:
            return np.fromiter((known.setdefault(name, len(known)) for name in names), np.int32, many)
        return np.fromiter((known.get(name, -1) for name in names), np.int32, many)

    def _joined(self, line: Line, here: dict[str, tuple[Any, _Attribute, Any]], begin: Ints, grow: bool) -> Column:
        """Return the column of a conjunction of attributes, with the first value of each."""
        n = int(begin[-1])
        low, high = np.repeat(begin[:-1], np.diff(begin)), np.repeat(begin[1:], np.diff(begin))
        code = np.zeros(n, np.int64)
        sizes = []
        for name, offset in line.parts:
            keys, attribute, (first, value) = here[name]
            at = np.arange(n) + offset
            inside = np.clip(at, 0, max(n - 1, 0))
            there = first[keys[inside]] < first[keys[inside] + 1] if n else np.zeros(0, bool)
            codes = np.where(there, value[np.minimum(first[keys[inside]], max(len(value) - 1, 0))], -1)
            codes = np.where(at < low, 0, np.where(at >= high, 1, codes))
            sizes.append(len(attribute.values) + 1)
            code = code * sizes[-1] + codes + 1
        unique, key = np.unique(code, return_inverse=True)
        texts, left = [], unique.copy()
        for (name, _), size in zip(reversed(line.parts), reversed(sizes), strict=True):
            values = ["", *here[name][1].values]
            texts.append([values[k] for k in (left % size).tolist()])
            left //= size
        title = line.name
        names = [f"{title}=" + "|".join(reversed(parts)) for parts in zip(*texts, strict=True)]
        found = self._look_up(names, len(names), grow)
        number = np.concatenate([np.full(2, -1, np.int32), found])
        first = np.arange(len(unique) + 1, dtype=np.int64)
        return Column(key.astype(np.int32).ravel(), first, np.arange(2, len(unique) + 2, dtype=np.int32), number, 0)
