"""Lists of words: gazetteers, a lexicon learnt from labels, and clusters that are given or learnt."""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gibbsite.applications.entities.attributes import Values
from gibbsite.applications.entities.documents import Document
from gibbsite.errors import FormatError
from gibbsite.formats.parsing.text import PathLike, load
from gibbsite.learn.crf.labels import split_label

_CONTEXT, _DIMENSIONS = 400, 40  # number of context words, and of dimensions of word vectors


@dataclass
class WordLists:
    """Gazetteers, lexicon and clusters."""

    phrases: dict[str, set[str]] = field(default_factory=dict)  # phrase in lower case -> the lists that contain it
    # word -> class (or "O") -> number of training documents in which the word has this label
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)  # word in lower case -> cluster
    _own: list[dict[str, set[str]]] = field(default_factory=list, repr=False)

    @property
    def longest(self) -> int:
        """Number of words of the longest phrase."""
        return max((phrase.count(" ") + 1 for phrase in self.phrases), default=0)

    def cluster_of(self, word: str) -> Values:
        """Return the cluster of a word."""
        found = self.clusters.get(word.lower())
        return () if found is None else (found,)

    def lexicon_of(self, tokens: Sequence[str], document: int | None) -> Iterable[Values]:
        """Yield the labels of capitalised words in other documents."""
        own = self._own[document] if document is not None and document < len(self._own) else {}
        for token in tokens:
            counts = self.counts.get(token)
            if counts is None:
                yield ()
                continue
            mine = own.get(token, ())
            left = {name: many - (name in mine) for name, many in counts.items()}
            total = sum(left.values())
            if total <= 0:
                yield ()
                continue
            size = "1" if total == 1 else "few" if total < 5 else "many"
            yield tuple(
                f"{name} {'all' if many == total else 'most' if 2 * many > total else 'some'} of {size}"
                for name, many in sorted(left.items())
                if many > 0
            )

    def learn_lexicon(self, documents: Sequence[Document]) -> None:
        """Count the documents in which each capitalised word has each class."""
        counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._own = []
        for document in documents:
            own: dict[str, set[str]] = defaultdict(set)
            for sentence in document.sentences:
                for token, label in zip(sentence.tokens, sentence.labels or (), strict=True):
                    if token[:1].isupper():
                        own[token].add(split_label(label)[1] or "O")
            for token, names in own.items():
                for name in names:
                    counts[token][name] += 1
            self._own.append(dict(own))
        self.counts = {word: dict(found) for word, found in counts.items() if set(found) != {"O"} or found["O"] > 1}

    def add_phrases(self, path: PathLike) -> None:
        """Read a gazetteer: the name of a list, a tab and a phrase per line."""
        for first, second in _read_pairs(path, "the name of a list, a tab and a phrase"):
            self.phrases.setdefault(" ".join(second.lower().split()), set()).add(first)

    def add_clusters(self, path: PathLike) -> None:
        """Read clusters: a word, a tab and its cluster per line."""
        for first, second in _read_pairs(path, "a word, a tab and its cluster"):
            self.clusters[first.lower()] = second

    def learn_clusters(self, documents: Sequence[Document], clusters: int) -> None:
        """Cluster words by their neighbours in text, without labels.

        The vector of a word is its positive pointwise mutual information with the most frequent words before and
        after it, reduced to a few dimensions.
        """
        self.clusters = _cluster(documents, clusters, 1)


def _read_pairs(path: PathLike, what: str) -> Iterable[tuple[str, str]]:
    source = load(path)
    for number, line in enumerate(source.decoded().splitlines(), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise FormatError(f"expected {what}, got {line!r:.80}.", source.name, number)
        yield parts[0], parts[1]


def _cluster(documents: Sequence[Document], clusters: int, rng: int) -> dict[str, str]:
    from scipy.cluster.vq import kmeans2
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import svds

    rows = [[t.lower() for t in s.tokens] for d in documents for s in d.sentences]
    often = Counter(word for row in rows for word in row)
    context = {word: k for k, (word, _) in enumerate(often.most_common(_CONTEXT))}
    words = {word: k for k, word in enumerate(w for w, many in often.items() if many > 2)}
    if len(words) <= max(clusters, _DIMENSIONS) or len(context) <= _DIMENSIONS:
        return {}
    at: list[int] = []
    near: list[int] = []
    for row in rows:
        for before, behind in pairwise(row):
            if behind in words and before in context:
                at.append(words[behind])
                near.append(context[before])
            if before in words and behind in context:
                at.append(words[before])
                near.append(len(context) + context[behind])
    shape = (len(words), 2 * len(context))
    table: Any = coo_matrix((np.ones(len(at)), (at, near)), shape=shape).tocsr()
    total = table.sum()
    left, right = np.asarray(table.sum(axis=1)).ravel(), np.asarray(table.sum(axis=0)).ravel()
    cells = table.tocoo()
    gain = np.log(cells.data * total / (left[cells.row] * right[cells.col]))
    kept = gain > 0.0
    table = coo_matrix((gain[kept], (cells.row[kept], cells.col[kept])), shape=shape).tocsr()
    stream = np.random.default_rng(rng)
    u, s, _ = svds(table, k=_DIMENSIONS, v0=stream.normal(size=min(shape)))
    points = u * np.sqrt(s)
    norm = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(norm > 0.0, norm, 1.0)
    start = points[stream.choice(len(points), clusters, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about empty clusters, which are harmless
        _, label = kmeans2(points, start, iter=20, minit="matrix", missing="warn", rng=rng)
    return {word: str(label[k]) for word, k in words.items()}
