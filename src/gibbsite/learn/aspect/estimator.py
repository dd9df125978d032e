"""Aspect models (PLSA) as a scikit-learn-style estimator [1]_ [2]_.

References
----------
.. [1] Hofmann, T. (2001). Unsupervised learning by probabilistic latent semantic analysis. Machine Learning
   42, 177-196.
.. [2] Verbeek, J. and Triggs, B. (2007). Region classification with Markov field aspect models. CVPR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_list, check_number, describe, is_number, is_numeric
from gibbsite._common.arrays import Array, Bools, Floats, Ints
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.learn.aspect.bags import Bags, is_counts, read_bags
from gibbsite.learn.aspect.maximisation import Ascent, Aspects, climb, fit_mixtures, make_tokens, start_words
from gibbsite.learn.estimators import Parameters, not_fitted
from gibbsite.sampling.plan import read_entropy


class AspectModel(Parameters):
    """Probabilistic latent semantic analysis: documents as mixtures of topics, fitted by EM.

    Every token of a document has a topic and a word of each kind; kinds are independent given the topic. If the classes
    that occur in each document are known, the topics are these classes.

    Parameters
    ----------
    topics : int
        Number of topics, if no classes are given.
    background : int
        Number of topics besides the given classes that every document may have.
    smoothing : float or (float, float)
        Pseudocounts of topics in documents and of words in topics; the Dirichlet priors have these parameters plus one.
    starts : int
        Number of starts of EM, of which the best is kept.
    iterations : int
        Largest number of iterations from each start.
    tolerance : float
        EM stops when the relative increase of the objective is below this.
    rng : int, Generator or SeedSequence, optional
        Seed of the starts.

    Attributes
    ----------
    classes_ : array
        The topics: given classes, then numbers of background topics; otherwise numbers.
    words_ : tuple of float arrays (topics, words)
        Probabilities of words given topics, of each kind.
    components_ : float array (topics, words of all kinds)
        The same tables side by side.
    mixtures_ : float array (documents, topics)
        Probabilities of topics in the training documents.
    values_ : list of float
        Log-likelihood plus log-priors before every iteration of the best start; it never decreases.
    n_iter_ : int
        Number of iterations of the best start.

    Notes
    -----
    Documents are given as a table (documents, words) of counts, which may be sparse, or as a list with the numbers of
    the words of every document: an array (tokens,), or (tokens, kinds) if tokens have several kinds of words.

    References
    ----------
    Hofmann (2001), Machine Learning 42. Verbeek and Triggs (2007), CVPR, for known classes of whole
    documents.

    Examples
    --------
    >>> import gibbsite as gs
    >>> counts = [[4, 3, 0, 0], [2, 5, 0, 1], [0, 0, 6, 2], [1, 0, 3, 4]]
    >>> model = gs.learn.AspectModel(topics=2, rng=1).fit(np.array(counts))
    >>> model.transform(np.array([[0, 0, 9, 9]])).max() > 0.9
    np.True_

    Two known classes of whole documents:

    >>> documents = [[0, 0, 1, 2], [0, 1, 1, 3], [2, 3, 3]]
    >>> model = gs.learn.AspectModel().fit(documents, [["sky", "sea"], ["sky", "sea"], ["sea"]])
    >>> [model.classes_[p.argmax(axis=1)].tolist() for p in model.posterior([[0, 3]])]
    [['sky', 'sea']]
    """

    def __init__(
        self,
        topics: int = 10,
        background: int = 0,
        smoothing: float | tuple[float, float] = 0.01,
        starts: int = 1,
        iterations: int = 200,
        tolerance: float = 1e-5,
        rng: Any = 0,
    ) -> None:
        self.topics = topics
        self.background = background
        self.smoothing = smoothing
        self.starts = starts
        self.iterations = iterations
        self.tolerance = tolerance
        self.rng = rng

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(sparse=True, positive_only=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "words_")

    def fit(self, X: Any, y: Any = None, *, sizes: Iterable[int] | None = None) -> AspectModel:
        """Learn from documents.

        Parameters
        ----------
        X : table of counts, or list of documents
            See the notes of the class.
        y : sequence of collections of classes, or of one class for each document, optional
            The classes that occur in each document.
        sizes : sequence of int, optional
            Number of words of each kind; by default, the largest word that occurs is the last one.
        """
        smoothing, starts = self._smoothing(), check_integer("starts", self.starts, 1)
        iterations = check_integer("iterations", self.iterations, 1)
        tolerance = check_number("tolerance", self.tolerance, zero=True)
        bags = read_bags(X)
        offsets = self._read_sizes(bags, sizes)
        classes, allowed = self._read_classes(y, bags.n_documents)
        tokens = make_tokens(bags, offsets, allowed)
        alike = np.array([(allowed == allowed[:, [a]]).all(axis=0).sum() > 1 for a in range(allowed.shape[1])])
        streams = np.random.SeedSequence(read_entropy(self.rng)).spawn(starts)
        best: Ascent | None = None
        for number, stream in enumerate(streams):
            noisy = alike if number == 0 else np.ones_like(alike)
            beta = start_words(bags, offsets, allowed, noisy, np.random.default_rng(stream))
            start = Aspects(allowed / allowed.sum(axis=1, keepdims=True), beta)
            found = climb(tokens, start, allowed, offsets, smoothing, iterations=iterations, tolerance=tolerance)
            if best is None or found.values[-1] > best.values[-1]:
                best = found
        assert best is not None
        self._keep(classes, offsets, best.aspects.beta)
        self.mixtures_, self.values_, self.n_iter_ = best.aspects.theta, best.values, len(best.values) - 1
        if bags.width:
            self.n_features_in_ = int(offsets[-1])
        return self

    def transform(self, X: Any, y: Any = None) -> Floats:
        """Return the probabilities of topics in documents, an array (documents, topics).

        Parameters
        ----------
        X : table of counts, or list of documents
            Documents without unknown words.
        y : sequence of collections of classes, optional
            The classes that occur in each document, if known.
        """
        return self._mix(X, y)[1]

    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """Learn from documents, and return the probabilities of their topics, computed as for new documents."""
        return self.fit(X, y).transform(X)

    def log_weights(self, X: Any, y: Any = None) -> list[Floats]:
        """Return log(P(topic | document) P(words | topic)) of all tokens, (tokens, topics) for a document.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.learn.AspectModel(topics=2, rng=1).fit([[0, 0, 1], [2, 2, 2]])
        >>> [part.shape for part in model.log_weights([[0, 2], [1]])]
        [(2, 2), (1, 2)]
        """
        bags, mixtures, log_words = self._mix(X, y)
        with np.errstate(divide="ignore"):
            weights = np.log(mixtures)[bags.document] + log_words
        return np.split(weights, bags.first[1:-1])

    def posterior(self, X: Any, y: Any = None) -> list[Floats]:
        """Return the probabilities of the topics of tokens, an array (tokens, topics) for every document.

        The tokens of a table of counts are the words that occur, in increasing order.
        """
        found = []
        for weights in self.log_weights(X, y):
            p = np.exp(weights - weights.max(axis=1, keepdims=True))
            found.append(p / p.sum(axis=1, keepdims=True))
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a token, with mixtures fitted to the documents."""
        total, count = 0.0, 0.0
        bags = read_bags(X)
        for weights, low, high in zip(self.log_weights(X), bags.first[:-1], bags.first[1:], strict=True):
            if len(weights):
                most = weights.max(axis=1)
                each = most + np.log(np.exp(weights - most[:, None]).sum(axis=1))
                total += float(bags.times[low:high] @ each)
                count += float(bags.times[low:high].sum())
        if not count:
            raise ModelError("X has no tokens.")
        return total / count

    # ---- parts

    def _keep(self, classes: Array, offsets: Ints, beta: Floats) -> None:
        """Store topics and probabilities of words."""
        self.classes_, self._offsets = classes, offsets
        self.components_ = np.ascontiguousarray(beta.T)
        self.words_ = tuple(np.split(self.components_, offsets[1:-1], axis=1))

    @classmethod
    def from_words(cls, words: Iterable[Any], classes: Iterable[Any], **params: Any) -> AspectModel:
        """Return a model with given probabilities of words, (topics, words) for every kind.

        Examples
        --------
        >>> import gibbsite as gs
        >>> model = gs.learn.AspectModel.from_words([[[0.9, 0.1], [0.2, 0.8]]], ["day", "night"])
        >>> model.classes_.tolist()
        ['day', 'night']
        """
        names, given = check_list("classes", classes, "names"), check_list("words", words, "tables")
        shapes = {np.shape(table)[:1] if is_numeric(table) and np.ndim(table) == 2 else () for table in given}
        if shapes != {(len(names),)} or not names:
            raise ArgumentError(
                f"{argument('words')} must be tables of numbers with a row for each class, one table for each kind of "
                f"words, got {describe(words)}."
            )
        if not all(isinstance(one, Hashable) for one in names):
            raise ArgumentError(f"{argument('classes')} must be a list of names, got {describe(classes)}.")
        model, tables = cls(**params), [np.asarray(table, np.float64) for table in given]
        offsets = np.concatenate([[0], np.cumsum([table.shape[1] for table in tables])]).astype(np.int64)
        model._keep(np.asarray(names), offsets, np.ascontiguousarray(np.hstack(tables).T))
        return model

    def _smoothing(self) -> tuple[float, float]:
        pair = self.smoothing if isinstance(self.smoothing, tuple | list) else (self.smoothing,) * 2
        if len(pair) != 2 or not all(is_number(one) and 0.0 <= one < np.inf for one in pair):
            raise ArgumentError(
                f"{argument('smoothing')} must be a number of at least 0, or two, got {self.smoothing!r}."
            )
        return float(pair[0]), float(pair[1])

    def _read_sizes(self, bags: Bags, sizes: Iterable[int] | None) -> Ints:
        """Return where the words of each kind begin."""
        if sizes is None:
            seen = bags.words.max(axis=0, initial=0) + 1
            counts = np.array([bags.width]) if bags.width else seen
        else:
            counts = np.array(
                [check_integer("sizes", size, 1, 10_000_000) for size in check_list("sizes", sizes, "numbers")]
            )
            if counts.shape != (bags.kinds,):
                raise ArgumentError(
                    f"{argument('sizes')} must have an entry for each of {bags.kinds} kinds of words, got "
                    f"{counts.size}."
                )
            self._check_words(bags, counts)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @staticmethod
    def _check_words(bags: Bags, counts: Array) -> None:
        if bags.words.shape[0] and (bags.words.max(axis=0) >= counts).any():
            kind = int(np.argmax(bags.words.max(axis=0) >= counts))
            raise ModelError(
                f"X has word {bags.words[:, kind].max()} of kind {kind}, but its words are 0 to {counts[kind] - 1}."
            )

    def _read_classes(self, y: Any, documents: int) -> tuple[Array, Bools]:
        """Return the topics, and which of them each document may have."""
        free = check_integer("background", self.background, 0)
        if y is None:
            many = check_integer("topics", self.topics, 1)
            return np.arange(many + free), np.ones((documents, many + free), bool)
        sets = _read_sets(y, documents)
        named = sorted({one for each in sets for one in each}, key=lambda one: (str(type(one)), one))
        if not named and not free:
            raise ModelError("no document has a class; name some, or leave y out.")
        number = {one: k for k, one in enumerate(named)}
        allowed = np.zeros((documents, len(named) + free), bool)
        allowed[:, len(named) :] = True
        for d, each in enumerate(sets):
            if not each and not free:
                raise ModelError(f"document {d} has no class; leave it out, or allow background topics.")
            allowed[d, [number[one] for one in each]] = True
        names = [*named, *(f"background {k}" for k in range(free))] if free else named
        return np.array(names), allowed

    def _mix(self, X: Any, y: Any = None) -> tuple[Bags, Floats, Floats]:
        """Return documents, mixtures of topics fitted to them, and log-probabilities of words of tokens."""
        if not hasattr(self, "words_"):
            raise not_fitted(is_counts(X))("this AspectModel is not fitted; call fit first.")
        bags = read_bags(X)
        counts = np.diff(self._offsets)
        if bags.width and bags.width != counts[0]:
            raise ModelError(f"X has {bags.width} features, but AspectModel is expecting {counts[0]} features as input")
        if bags.kinds != counts.size and bags.words.shape[0]:
            raise ModelError(f"tokens have {bags.kinds} kinds of words, but {counts.size} were learnt.")
        if bags.kinds != counts.size:
            bags = bags._replace(words=np.zeros((0, counts.size), np.int64))
        self._check_words(bags, counts)
        allowed = np.ones((bags.n_documents, self.classes_.size), bool)
        if y is not None:
            sets = _read_sets(y, bags.n_documents)
            allowed = np.array([[one in each for one in self.classes_.tolist()] for each in sets], bool)
            if not allowed.any(axis=1).all():
                d = int(np.argmin(allowed.any(axis=1)))
                raise ModelError(f"document {d} has no class that occurred in fit.")
        log_words = np.zeros((len(bags.words), self.classes_.size))
        with np.errstate(divide="ignore"):
            for kind, table in enumerate(self.words_):
                log_words += np.log(table.T)[bags.words[:, kind]]
        if np.isneginf(np.where(allowed[bags.document], log_words, -np.inf)).all(axis=1).any():
            raise ModelError("X has words that no topic has; fit with smoothing above 0.")
        mixtures = fit_mixtures(
            bags,
            log_words,
            allowed,
            self._smoothing()[0],
            iterations=check_integer("iterations", self.iterations, 1),
            tolerance=0.01 * float(self.tolerance),
        )
        return bags, mixtures, log_words


def _read_sets(y: Any, documents: int) -> list[list[Any]]:
    """Return the classes of every document as lists."""
    rows = check_list("y", np.asarray(y).tolist() if hasattr(y, "__array__") else y, "classes of documents")
    if len(rows) != documents:
        raise ModelError(f"X has {documents} documents, but y has classes of {len(rows)}; give equally many.")
    return [list(row) if isinstance(row, list | tuple | set | frozenset) else [row] for row in rows]
