"""The recogniser: learns entities from labelled documents, and marks them in text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arrays import Bytes, Floats
from gibbsite._common.boundary import Wanted, fits, one_of
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.entities.decoding import Skip, kernel_of, span_shares, visit
from gibbsite.applications.entities.documents import Document, Sentence, read_text
from gibbsite.applications.entities.extraction import Extractor, UserFunction
from gibbsite.applications.entities.links import classes_of, find_links, learn_links
from gibbsite.applications.entities.lists import WordLists
from gibbsite.applications.entities.template import parse_template, read_template
from gibbsite.applications.methods import ENTITIES
from gibbsite.applications.storage import read_file, write_file
from gibbsite.errors import ArgumentError, FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike, shortened
from gibbsite.learn.crf.chain import MOST_LABELS, Chain, Training, fit_chain, prune
from gibbsite.learn.crf.labels import (
    SCHEMES,
    allowed_moves,
    check_labels,
    check_scheme,
    find_spans,
    span_sets,
    write_spans,
)
from gibbsite.learn.crf.objective import Weights
from gibbsite.learn.crf.quasi_newton import minimise
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.learn.crf.structure import Structure
from gibbsite.sampling.executor import read_threads

_SHIPPED = Path(__file__).parent / "english.ner"
_HELD_OUT = 4  # one document of so many is kept from the chain that links are learnt with
_BATCH = 200_000  # tokens that are labelled together


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
        That exactly these tokens are an entity of this class.
    error : float or None
        Standard error of the probability where it was sampled; 0 where it is exact.
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


class EntityRecognizer:
    """Finds names in text with a conditional random field.

    Parameters
    ----------
    template : str
        "document" or "window", which come with the package, or a file (see :mod:`.template`).
    scheme : {"bio", "bioes", "io"}
        Labels of the chain.
    order : {1, 2}
        Length of its memory.
    l1, l2 : float
        Penalties, as in :class:`gibbsite.learn.ChainCRF`.
    min_count : int
        Features that occur less often are left out.
    links : bool
        Learn links between equal names of a document as well (a skip-chain).
    calibrate : bool
        Learn on a quarter of the documents, with a chain of the others, how right stated probabilities of
        entities are, and correct them.
    clusters : int
        Number of clusters of words to learn from the text; 0: none.
    gazetteers, cluster_files : sequence of paths
        Lists of phrases, and of words with their clusters.
    functions : mapping, optional
        Attributes of your own for the template: name -> function of (tokens of the sentence, position) that
        returns a text, a list of texts, a flag or None.
    iterations : int
        Most steps of the search.
    threads : int, optional
        The result does not depend on it.

    Examples
    --------
    >>> from gibbsite.applications import EntityRecognizer
    >>> from gibbsite.applications.entities.documents import Document, Sentence
    >>> told = Sentence(["Anna", "saw", "Rome", "."], ["B-PER", "O", "B-LOC", "O"])
    >>> recognizer = EntityRecognizer("window", l2=0.01).fit([Document("one", [told])])
    >>> [(e.label, e.start, e.end) for e in recognizer.tag("Anna saw Rome.").entities]
    [('PER', 0, 4), ('LOC', 9, 13)]
    """

    def __init__(
        self,
        template: str | PathLike = "document",
        *,
        scheme: str = "bio",
        order: int = 1,
        l1: float = 0.0,
        l2: float = 0.5,
        min_count: int = 1,
        links: bool = False,
        calibrate: bool = False,
        clusters: int = 0,
        gazetteers: Sequence[PathLike] = (),
        cluster_files: Sequence[PathLike] = (),
        functions: Mapping[str, UserFunction] | None = None,
        iterations: int = 100,
        threads: int | None = None,
    ) -> None:
        self.scheme = check_scheme(scheme)
        self.functions = dict(functions or {})
        self.template = read_template(template, self.functions)
        self.order, self.l1, self.l2, self.min_count = order, l1, l2, min_count
        self.links, self.clusters = links, clusters
        self.gazetteers, self.cluster_files = tuple(gazetteers), tuple(cluster_files)
        self.iterations, self.threads = iterations, read_threads(threads)
        self.chain: Chain | None = None
        self.extractor: Extractor | None = None
        self.link_weights: Floats | None = None
        self.calibrate = calibrate
        self.calibration = (1.0, 0.0)

    # ---- learning

    def fit(
        self, documents: Sequence[Document], watch: Callable[[str, int, float], bool] | None = None
    ) -> EntityRecognizer:
        """Learn from labelled documents.

        Parameters
        ----------
        documents : sequence of Document
            As :func:`gibbsite.applications.entities.read_columns` returns them.
        watch : function, optional
            Called with what is being learnt, the number of steps and the value; ends the search by returning True.
        """
        documents = [d for d in documents if d.n_tokens]
        if not documents:
            raise ModelError("there is nothing to learn from: the documents have no sentence.")
        for document in documents:
            for sentence in document.sentences:
                if sentence.labels is None:
                    raise ModelError(
                        f"the document {document.name!r} has no labels; give a token and its label a line."
                    )
        if self.links or self.calibrate:
            names = self._split(documents)
            half = [d for d, out in zip(documents, names, strict=True) if not out]
            rest = [d for d, out in zip(documents, names, strict=True) if out]
            if half and rest:
                chain, extractor, _ = self._learn(half, watch, "first chain")
                data = extractor.read(rest)
                if self.links:
                    codes = _codes(rest, chain.labels, self.scheme, unseen=True)
                    self.link_weights = learn_links(chain, data, codes, find_links(rest))
                if self.calibrate:
                    self.chain, self.extractor = chain, extractor
                    self.calibration = self._calibrate(rest)
        self.chain, self.extractor, self.training = self._learn(documents, watch, "chain")
        if self.links and self.link_weights is None:
            raise ModelError("links are learnt from several documents; there is one only.")
        return self

    def _calibrate(self, documents: Sequence[Document]) -> tuple[float, float]:
        """Return slope and intercept of the log-odds of being right, given those that were stated."""
        stated, right = [], []
        for document, one in zip(documents, self.tag_documents(documents, sweeps=200), strict=True):
            gold = [set(find_spans(sentence.labels or [])) for sentence in document.sentences]
            for entity in one.entities:
                stated.append(entity.probability or 0.0)
                right.append((entity.first, entity.last, entity.label) in gold[entity.sentence])
        odds, truth = log_odds(np.array(stated)), np.array(right, float)

        def loss(x: Floats) -> tuple[float, Floats]:
            z = x[0] * odds + x[1]
            gap = 1.0 / (1.0 + np.exp(-z)) - truth
            prior = np.array([x[0] - 1.0, x[1]])  # a few entities leave probabilities as they are
            value = float((np.logaddexp(0.0, z) - truth * z).sum() + 2.0 * prior @ prior)
            return value, np.array([gap @ odds, gap.sum()]) + 4.0 * prior

        slope, shift = minimise(loss, np.array([1.0, 0.0])).x.tolist()
        return (float(slope), float(shift)) if slope > 0.0 else (1.0, 0.0)

    @staticmethod
    def _split(documents: Sequence[Document]) -> list[bool]:
        return [k % _HELD_OUT == 0 for k in range(len(documents))]

    def _learn(
        self, documents: Sequence[Document], watch: Callable[[str, int, float], bool] | None, what: str
    ) -> tuple[Chain, Extractor, Training]:
        lists = WordLists()
        for path in self.gazetteers:
            lists.add_phrases(path)
        for path in self.cluster_files:
            lists.add_clusters(path)
        used = {name for line in parse_template(self.template, functions=self.functions) for name, _ in line.parts}
        if "lexicon" in used:
            lists.learn_lexicon(documents)
        if self.clusters and "cluster" in used:
            lists.learn_clusters(documents, self.clusters)
        extractor = Extractor(self.template, lists, functions=self.functions)
        data = extractor.read(documents, grow=True, learning=True)
        if self.min_count > 1:
            extractor.keep(np.bincount(data.feature, minlength=len(extractor.numbers)) >= self.min_count)
            data = extractor.read(documents, learning=True)
        rows = [write_spans(find_spans(s.labels or []), len(s.tokens), self.scheme) for s in _sentences(documents)]
        labels = sorted({label for row in rows for label in row}, key=lambda label: (label != "O", label))
        training = fit_chain(
            data,
            _codes(documents, labels, self.scheme),
            labels,
            len(extractor.numbers),
            scheme=self.scheme,
            order=self.order,
            l1=self.l1,
            l2=self.l2,
            iterations=self.iterations,
            threads=self.threads,
            watch=None if watch is None else lambda step, value: watch(what, step, value),
        )
        chain = training.chain
        if self.l1 > 0.0:
            chain, left = prune(chain)
            kept = np.zeros(len(extractor.numbers), bool)
            kept[left] = True
            extractor.keep(kept)
        return chain, extractor, training

    # ---- asking

    @property
    def _ready(self) -> tuple[Chain, Extractor]:
        if self.chain is None or self.extractor is None:
            raise ModelError("this recogniser has learnt nothing yet; call fit first, or load one.")
        return self.chain, self.extractor

    @property
    def classes(self) -> list[str]:
        """Names of the classes of entities."""
        return sorted({label[2:] for label in self._ready[0].labels if label != "O"})

    def features(self, documents: Sequence[Document]) -> Sequences:
        """Return the features of documents by number."""
        return self._ready[1].read(documents)

    def skip_of(self, documents: Sequence[Document]) -> Skip | None:
        """Return the links of documents; None where the model has none."""
        if self.link_weights is None:
            return None
        pairs = find_links(documents)
        return Skip(pairs, self.link_weights) if len(pairs) else None

    def factor_graph(self, documents: Sequence[Document]) -> Any:
        """Return the law of all labels, links included, as a model for any sampler: a site for each token."""
        from gibbsite.applications.entities.links import link_model

        skip = self.skip_of(documents)
        pairs = np.zeros((0, 2), np.int64) if skip is None else skip.pairs
        weights = np.zeros(1) if skip is None else skip.weights
        return link_model(self._ready[0], self.features(documents), pairs, weights)

    def tag(self, text: str, name: str = "", **how: Any) -> Tagged:
        """Mark the entities of a text; arguments as in :meth:`tag_documents`."""
        return self.tag_documents([read_text(text, name)], **how)[0]

    def tag_documents(
        self,
        documents: Sequence[Document],
        *,
        method: str | None = None,
        sweeps: int = 400,
        rng: int = 1,
        probabilities: bool = True,
    ) -> list[Tagged]:
        """Mark the entities of documents.

        Parameters
        ----------
        documents : sequence of Document
            The text.
        method : {"viterbi", "posterior", "gibbs", "herded", "blocks"}, optional
            The most probable labels of chains; the most probable label of each token; the best state that annealed
            Gibbs (linear temperatures from 1), herded Gibbs, or Gibbs with whole sentences as blocks visits. By default
            "viterbi", or "blocks" if the model has links, which Viterbi and "posterior" ignore.
        sweeps : int
            Of sampling.
        rng : int
            Seed.
        probabilities : bool
            Whether entities have probabilities: exact without links, otherwise shares of the visited states.

        Returns
        -------
        list of Tagged
            In the order of the documents.
        """
        chain, _ = self._ready
        method = method or ("viterbi" if self.link_weights is None else "blocks")
        if method not in ENTITIES:
            raise ArgumentError(unknown("method", method, ENTITIES))
        if isinstance(sweeps, bool) or not isinstance(sweeps, int) or sweeps < 1:
            raise ArgumentError(f"{argument('sweeps')} must be a whole number of at least 1, got {sweeps!r}.")
        found: list[Tagged] = []
        for batch in _batches(documents, 1 if self.link_weights is None else sweeps):
            found += self._tag(chain, batch, method, sweeps, rng, probabilities)
        return found

    def _tag(
        self, chain: Chain, documents: Sequence[Document], method: str, sweeps: int, rng: int, probabilities: bool
    ) -> list[Tagged]:
        data = self.features(documents)
        skip, states = None, None
        if not data.n_positions:
            codes = np.zeros(0, np.uint8)
        elif method == "viterbi":
            codes = chain.best(data, self.threads)[0]
        elif method == "posterior":
            codes = chain.marginals(data, self.threads)[0].argmax(axis=1).astype(np.uint8)
        else:
            skip = self.skip_of(documents)
            visited = visit(chain, data, skip, kernel_of(method, sweeps, data), sweeps, rng)
            codes, states = visited.best(data)[0], visited.states
            if skip is not None and probabilities and method == "gibbs":
                # annealed states say nothing about probabilities
                states = visit(chain, data, skip, kernel_of("plain", sweeps, data), sweeps, rng, codes).states
        names = [chain.labels[code] for code in codes.tolist()]
        begin = data.begin.tolist()
        rows = [names[a:b] for a, b in pairwise(begin)]
        asked = [(s, *span) for s, row in enumerate(rows) for span in find_spans(row)]
        chance: Any = [None] * len(asked)
        error: Any = [None] * len(asked)
        if probabilities and asked:
            if skip is None:
                chance, error = self._exact(chain, data, asked), np.zeros(len(asked))
            elif states is not None:
                kept = states[len(states) // 5 :]
                chance, error = span_shares(kept, data, chain.labels, asked)
            chance, error = self._corrected(chance, error)
        spans: dict[int, list[tuple[int, int, str, Any, Any]]] = {}
        for (s, low, high, name), p, e in zip(asked, chance, error, strict=True):
            spans.setdefault(s, []).append((low, high, name, p, e))
        found, at = [], 0
        for document in documents:
            found.append(_assemble(document, at, rows, spans))
            at += len(document.sentences)
        return found

    def _corrected(self, chance: Any, error: Any) -> tuple[Any, Any]:
        """Return probabilities as they proved right, and their errors on that scale."""
        slope, shift = self.calibration
        if (slope, shift) == (1.0, 0.0):
            return chance, error
        found = 1.0 / (1.0 + np.exp(-(slope * log_odds(chance) + shift)))
        steepness = slope * found * (1.0 - found) / np.clip(chance * (1.0 - chance), 1e-4, None)
        return found, error * np.minimum(steepness, 2.0)

    def _exact(self, chain: Chain, data: Sequences, asked: Sequence[tuple[int, int, int, str]]) -> Any:
        """Return the probabilities of spans given the features of their sentences."""
        classes = self.classes
        sets = np.array([span_sets(chain.labels, name, self.scheme) for name in classes])
        s, low, high = (np.array([one[k] for one in asked], np.int64) for k in range(3))
        pattern = np.array([classes.index(one[3]) for one in asked], np.int64)
        return chain.probabilities_of(data, s, low, high - low, pattern, sets)

    # ---- files

    def save(self, path: PathLike, compact: bool = False) -> None:
        """Write the recogniser to a file.

        Parameters
        ----------
        path : str or path
            The file.
        compact : bool
            Keep weights in 16 bits: half the size, and errors of a thousandth of a weight.
        """
        chain, extractor = self._ready
        lists = extractor.lists
        header = {
            "template": self.template,
            "functions": sorted(self.functions),
            "scheme": self.scheme,
            "order": self.order,
            "labels": list(chain.labels),
            "features": extractor.names,
            "phrases": {phrase: sorted(names) for phrase, names in lists.phrases.items()},
            "counts": lists.counts,
            "clusters": lists.clusters,
            "calibration": list(self.calibration),
            "links": None if self.link_weights is None else self.link_weights.tolist(),
        }
        weight, rest = chain.weights.split(chain.x)
        arrays = {
            "many": np.diff(chain.weights.start).astype(np.uint8),
            "label": chain.weights.label,
            "weight": weight.astype(np.float16 if compact else np.float32),
            "rest": rest,
        }
        write_file("ner", path, header, arrays)

    @staticmethod
    def load(path: PathLike, functions: Mapping[str, UserFunction] | None = None) -> EntityRecognizer:
        """Read a recogniser from a file.

        Parameters
        ----------
        path : str or path
            The file.
        functions : mapping, optional
            Attributes of your own that it was learnt with; they are not in the file.
        """
        header, arrays = read_file("ner", path, _HEADER, _expect)
        missing = sorted(set(header["functions"]) - set(functions or {}))
        if missing:
            raise ArgumentError(f"the model uses the function {missing[0]!r} as an attribute; give it in functions=.")
        recognizer = EntityRecognizer("window", scheme=header["scheme"], functions=functions)
        recognizer.template, recognizer.order = header["template"], header["order"]
        try:
            structure = _structure(header)
            phrases = {phrase: set(names) for phrase, names in header["phrases"].items()}
            lists = WordLists(phrases, header["counts"], header["clusters"])
            recognizer.extractor = Extractor(recognizer.template, lists, header["features"], functions)
        except ValueError as error:  # of the template; our own errors are such, too
            raise FormatError(f"the model is damaged: {shortened(str(error))}", str(path)) from None
        start = np.concatenate([[0], np.cumsum(arrays["many"], dtype=np.int64)])
        if start[-1] != len(arrays["label"]) or len(recognizer.extractor.numbers) != len(start) - 1:
            raise FormatError("the model is damaged: its weights belong to other features; train it again.", str(path))
        weights = Weights(start, np.ascontiguousarray(arrays["label"]), structure)
        x = np.concatenate([arrays["weight"].astype(np.float64), arrays["rest"]])
        recognizer.chain = Chain(tuple(header["labels"]), weights, x)
        slope, shift = header["calibration"]
        recognizer.calibration = float(slope), float(shift)
        links = header["links"]
        recognizer.link_weights = None if links is None else np.array(links, np.float64)
        if links is not None and len(links) != len(classes_of(header["labels"])[0]):
            raise FormatError("the model is damaged: its links belong to other classes; train it again.", str(path))
        return recognizer

    @staticmethod
    def shipped() -> EntityRecognizer:
        """Return the small recogniser for English that comes with the package: PER, LOC and ORG."""
        return EntityRecognizer.load(_SHIPPED)


# What a header must be; see gibbsite._common.boundary.fits.
_HEADER = {
    "template": str,
    "functions": [str],
    "scheme": one_of(*SCHEMES),
    "order": one_of(1, 2),
    "labels": lambda labels: fits(labels, [str]) and 0 < len(set(labels)) == len(labels) <= MOST_LABELS,
    "features": [str],
    "phrases": {str: [str]},
    "counts": {str: {str: int}},
    "clusters": {str: str},
    "calibration": lambda pair: fits(pair, [float]) and len(pair) == 2,
    "links": (None, [float]),
}


def _structure(header: dict[str, Any]) -> Structure:
    check_labels(header["labels"], header["scheme"])
    return Structure(*allowed_moves(header["labels"], header["scheme"]), order=header["order"])


def _expect(header: dict[str, Any]) -> dict[str, Wanted]:
    """Say which arrays belong to a header."""
    return {
        "many": Wanted(np.uint8, (len(header["features"]),)),
        "label": Wanted(np.uint8, ("weights",), high=len(header["labels"]) - 1),
        "weight": Wanted((np.float16, np.float32), ("weights",)),
        "rest": Wanted(np.float64, (_structure(header).size,)),
    }


def log_odds(p: Floats) -> Floats:
    """Return the log-odds of probabilities, those of 0 and 1 finite."""
    inside = np.clip(p, 1e-4, 1.0 - 1e-4)
    return np.log(inside / (1.0 - inside))


def _sentences(documents: Sequence[Document]) -> list[Sentence]:
    return [sentence for document in documents for sentence in document.sentences]


def _codes(documents: Sequence[Document], labels: Sequence[str], scheme: str, unseen: bool = False) -> Bytes:
    """Return the labels of documents as numbers; unseen classes are outside of all, if that is allowed."""
    number = {label: k for k, label in enumerate(labels)}
    known = {label[2:] for label in labels}
    found = []
    for sentence in _sentences(documents):
        spans = find_spans(sentence.labels or [])
        if unseen:
            spans = [span for span in spans if span.label in known]
        row = write_spans(spans, len(sentence.tokens), scheme)
        if unseen and any(label not in number for label in row):
            row = ["O"] * len(row)
        found += [number[label] for label in row]
    return np.array(found, np.uint8)


def _batches(documents: Sequence[Document], sweeps: int) -> list[list[Document]]:
    """Cut documents into lists that are labelled together."""
    found: list[list[Document]] = []
    size, most = 0, max(_BATCH // max(sweeps // 100, 1), 1)
    for document in documents:
        if not found or size + document.n_tokens > most:
            found.append([])
            size = 0
        found[-1].append(document)
        size += document.n_tokens
    return found


def _assemble(
    document: Document,
    at: int,
    rows: Sequence[list[str]],
    spans: Mapping[int, Sequence[tuple[int, int, str, Any, Any]]],
) -> Tagged:
    """Put a document and its labels together."""
    text, offsets = document.text, [sentence.offsets for sentence in document.sentences]
    if text is None:
        text, offsets = _join(document)
    entities, labels = [], []
    for k, sentence in enumerate(document.sentences):
        here = spans.get(at + k, ())
        labels.append(write_spans(find_spans(rows[at + k]), len(sentence.tokens)))
        place = offsets[k] or []
        entities += [
            Entity(
                place[low][0],
                place[high - 1][1],
                name,
                None if p is None else float(p),
                None if e is None else float(e),
                k,
                low,
                high,
            )
            for low, high, name, p, e in here
        ]
    return Tagged(document.name, text, [s.tokens for s in document.sentences], labels, entities)


def _join(document: Document) -> tuple[str, list[list[tuple[int, int]] | None]]:
    """Return a text made of the tokens of a document, and their places in it."""
    parts: list[str] = []
    offsets: list[list[tuple[int, int]] | None] = []
    at = 0
    for sentence in document.sentences:
        places = []
        for token in sentence.tokens:
            places.append((at, at + len(token)))
            at += len(token) + 1
        offsets.append(places)
        parts.append(" ".join(sentence.tokens))
    return "\n".join(parts) + "\n", offsets
