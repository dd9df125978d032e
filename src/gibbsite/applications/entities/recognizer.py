"""The recogniser: it learns entities from labelled documents and marks them in text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked
from gibbsite._common.arrays import Bytes, Floats
from gibbsite._common.boundary import Wanted, fits, one_of
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.entities.calibration import NO_CORRECTION, compare, correct, learn_correction
from gibbsite.applications.entities.decoding import Skip, span_probabilities, span_shares, visit
from gibbsite.applications.entities.documents import Document, Sentence, read_text
from gibbsite.applications.entities.extraction import Extractor, UserFunction
from gibbsite.applications.entities.links import classes_of, find_links, learn_links, link_model
from gibbsite.applications.entities.lists import WordLists
from gibbsite.applications.entities.tagged import Tagged, assemble
from gibbsite.applications.entities.template import parse_template, read_template
from gibbsite.applications.storage import read_file, write_file
from gibbsite.errors import ArgumentError, FormatError, ModelError
from gibbsite.formats.parsing.text import PathLike, shortened
from gibbsite.learn.crf.chain import MOST_LABELS, Chain, Training, Weights, fit_chain, prune
from gibbsite.learn.crf.decoding import METHODS, kernel_of
from gibbsite.learn.crf.labels import SCHEMES, allowed_moves, check_labels, check_scheme, find_spans, write_spans
from gibbsite.learn.crf.sequences import Sequences
from gibbsite.learn.crf.structure import Structure
from gibbsite.sampling.executor import read_threads

_SHIPPED = Path(__file__).parent / "english.ner"
_HELD_OUT = 4  # every fourth document is held out from the chain with which links and calibration are learnt
_BATCH = 200_000  # largest number of tokens that are labelled together


@checked
class EntityRecognizer:
    """Finds names in text with a conditional random field.

    Parameters
    ----------
    template : str
        "document" or "window", which come with the package, or a file (see :mod:`.template`).
    scheme : {"bio", "bioes", "io"}
        Labelling scheme.
    order : {1, 2}
        Order of the Markov chain of labels.
    l1, l2 : float
        Penalties, as in :class:`gibbsite.learn.ChainCRF`.
    min_count : int
        Features that occur less often are dropped.
    links : bool
        Also learn links between equal names of a document (a skip-chain).
    calibrate : bool
        Calibrate the probabilities of entities on a quarter of the documents, with a chain learnt from the others.
    clusters : int
        Number of word clusters to learn from the text; none by default.
    gazetteers, cluster_files : sequence of paths
        Lists of phrases, and of words with their clusters.
    functions : mapping, optional
        User-defined attributes for the template: name -> function of (tokens of the sentence, position) that
        returns a text, a list of texts, a flag or None.
    iterations : int
        Largest number of steps of the optimiser.
    threads : int, optional
        Number of threads; the result does not depend on it.

    Examples
    --------
    >>> from gibbsite.applications import EntityRecognizer
    >>> from gibbsite.applications.entities.documents import Document, Sentence
    >>> labelled = Sentence(["Anna", "saw", "Rome", "."], ["B-PER", "O", "B-LOC", "O"])
    >>> recognizer = EntityRecognizer("window", l2=0.01).fit([Document("one", [labelled])])
    >>> [(e.label, e.start, e.end) for e in recognizer.tag("Anna saw Rome.").entities]
    [('PER', 0, 4), ('LOC', 9, 13)]
    """

    @checked
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
        if functions is not None and not all(map(callable, functions.values())):
            raise ArgumentError(
                f"{argument('functions')} must be a mapping from names to functions, got {functions!r:.80}."
            )
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
        self.calibration = NO_CORRECTION

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
            Called with what is being learnt, the step and the value; the search stops if it returns True.
        """
        documents = [d for d in documents if d.n_tokens]
        if not documents:
            raise ModelError("there is nothing to learn from: the documents have no sentence.")
        for document in documents:
            if any(sentence.labels is None for sentence in document.sentences):
                raise ModelError(
                    f"the document {document.name!r} has no labels; give a token and its label in each line."
                )
        rest = documents[::_HELD_OUT]
        half = [document for k, document in enumerate(documents) if k % _HELD_OUT]
        if (self.links or self.calibrate) and half:
            chain, extractor, _ = self._learn(half, watch, "first chain")
            if self.links:
                codes = _codes(rest, chain.labels, self.scheme, unseen=True)
                self.link_weights = learn_links(chain, extractor.read(rest), codes, find_links(rest))
            if self.calibrate:
                self.chain, self.extractor = chain, extractor
                self.calibration = learn_correction(*compare(rest, self.tag_documents(rest, sweeps=200)))
        self.chain, self.extractor, self.training = self._learn(documents, watch, "chain")
        if self.links and self.link_weights is None:
            raise ModelError("links are learnt from at least two documents, but there is only one.")
        return self

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
            raise ModelError("this recogniser has not been trained; call fit, or load a trained one.")
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
        """Return the distribution of all labels, links included, as a model with a site for each token."""
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
            The most probable labels of each sentence; the most probable label of each token; or the best state
            visited by annealed Gibbs sampling (temperatures falling linearly from 1), by herded Gibbs sampling, or by
            Gibbs sampling of whole sentences. By default "viterbi", or "blocks" if the model has links, which
            "viterbi" and "posterior" ignore.
        sweeps : int
            Number of sweeps of sampling.
        rng : int
            Seed.
        probabilities : bool
            Compute probabilities of entities: exact without links, otherwise relative frequencies in the samples.

        Returns
        -------
        list of Tagged
            In the order of the documents.
        """
        chain, _ = self._ready
        method = method or ("viterbi" if self.link_weights is None else "blocks")
        if method not in METHODS:
            raise ArgumentError(unknown("method", method, METHODS))
        sweeps = check_integer("sweeps", sweeps, 1)
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
                # states of an annealed chain are not samples of the model
                states = visit(chain, data, skip, kernel_of("plain", sweeps, data), sweeps, rng, codes).states
        names = [chain.labels[code] for code in codes.tolist()]
        rows = [names[a:b] for a, b in pairwise(data.begin.tolist())]
        spans: list[list[Any]] = [find_spans(row) for row in rows]
        asked = [(s, *span) for s, row in enumerate(spans) for span in row]
        numbers: Any = [(None, None)] * len(asked)
        if probabilities and asked:
            if states is None or skip is None:
                p, error = span_probabilities(chain, data, asked, self.scheme), np.zeros(len(asked))
            else:
                p, error = span_shares(states[len(states) // 5 :], data, chain.labels, asked)
            numbers = zip(*(each.tolist() for each in correct(p, error, self.calibration)), strict=True)
        of_spans = iter(numbers)
        spans = [[(span, *next(of_spans)) for span in row] for row in spans]
        ends = np.cumsum([0, *(len(document.sentences) for document in documents)]).tolist()
        return [
            assemble(document, rows[a:b], spans[a:b])
            for document, (a, b) in zip(documents, pairwise(ends), strict=True)
        ]

    # ---- files

    def save(self, path: PathLike, compact: bool = False) -> None:
        """Write the recogniser to a file.

        Parameters
        ----------
        path : str or path
            The file.
        compact : bool
            Store weights in 16 bits: half the size, with relative errors of about 0.001.
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
            The user-defined attributes that it was trained with, which are not stored in the file.
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
        except ValueError as error:  # such as an error in the template
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


# The pattern of a header; see gibbsite._common.boundary.fits.
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
    """Return the arrays that belong to a header."""
    return {
        "many": Wanted(np.uint8, (len(header["features"]),)),
        "label": Wanted(np.uint8, ("weights",), high=len(header["labels"]) - 1),
        "weight": Wanted((np.float16, np.float32), ("weights",)),
        "rest": Wanted(np.float64, (_structure(header).size,)),
    }


def _sentences(documents: Sequence[Document]) -> list[Sentence]:
    return [sentence for document in documents for sentence in document.sentences]


def _codes(documents: Sequence[Document], labels: Sequence[str], scheme: str, unseen: bool = False) -> Bytes:
    """Return the labels of documents as numbers; with ``unseen``, unknown classes count as outside."""
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
    """Divide documents into lists that are labelled together."""
    found: list[list[Document]] = []
    size, most = 0, max(_BATCH // max(sweeps // 100, 1), 1)
    for document in documents:
        if not found or size + document.n_tokens > most:
            found.append([])
            size = 0
        found[-1].append(document)
        size += document.n_tokens
    return found
