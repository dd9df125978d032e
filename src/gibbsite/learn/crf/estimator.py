"""A conditional random field on chains as a scikit-learn-style estimator."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, check_list, check_number
from gibbsite._common.wording import unknown
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.learn.crf.chain import Chain, fit_chain
from gibbsite.learn.crf.decoding import METHODS, decode
from gibbsite.learn.crf.given import make_chain, read_given
from gibbsite.learn.crf.sequences import Vocabulary, read_labels
from gibbsite.learn.estimators import Parameters, is_table, not_fitted, read_table
from gibbsite.sampling.executor import read_threads


class ChainCRF(Parameters):
    """Conditional random field on chains, which labels sequences of any kind and is trained by maximum likelihood.

    Parameters
    ----------
    order : {1, 2}
        Whether weights belong to pairs of neighbouring labels, or to triples as well.
    l1, l2 : float
        Penalties: l1 times the sum of absolute weights (which makes many of them zero), l2 times the sum of squares.
    scheme : {"bio", "bioes", "io"}, optional
        Labelling scheme of spans; forbidden transitions have probability zero. By default all are allowed.
    min_count : int
        Features that occur less often are dropped.
    all_states, all_pairs : bool
        Whether features have weights for all labels, and whether all allowed pairs of labels have weights, instead
        of only those that occur in the data.
    boundaries, bias : bool
        Whether the first and the last label have weights, and whether each label has a weight of its own.
    iterations : int
        Largest number of steps of the optimiser.
    tolerance, flatness : float
        Stop if the norm of the gradient, relative to that of the weights, is below ``tolerance``, or if ten steps
        decrease the value by less than the share ``flatness``.
    threads : int, optional
        Number of threads, at most four; the result does not depend on it.

    Attributes
    ----------
    classes_ : array
        The labels.
    chain_ : Chain
        The weights; ``chain_.factor_graph(...)`` is a model for every sampler of gibbsite.
    vocabulary_ : Vocabulary
        The features.
    n_iter_ : int
        Number of steps of the optimiser.

    Notes
    -----
    A sequence is a list of positions; a position is a list of names of features, or a mapping from names to
    numbers, flags or texts. An array (positions, features) of numbers is also a sequence. If ``X`` is a single array
    with one label for each row, each row is a sequence of one position, and the model is logistic regression.

    Examples
    --------
    >>> import gibbsite as gs
    >>> X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"], ["sleeps"]], [["the"], ["dog"], ["barks"]]]
    >>> y = [["D", "N", "V"]] * 3
    >>> crf = gs.learn.ChainCRF(l2=0.1).fit(X, y)
    >>> crf.predict([[["a"], ["cat"], ["barks"]]])
    [['D', 'N', 'V']]
    >>> crf.predict_proba([[["a"], ["cat"]]])[0].shape
    (2, 3)
    """

    _estimator_type = "classifier"

    def __init__(
        self,
        order: int = 1,
        l1: float = 0.0,
        l2: float = 1.0,
        scheme: str | None = None,
        min_count: int = 1,
        all_states: bool = True,
        all_pairs: bool = True,
        boundaries: bool = True,
        bias: bool = True,
        iterations: int = 200,
        tolerance: float = 1e-4,
        flatness: float = 1e-6,
        threads: int | None = 1,
    ) -> None:
        self.order = order
        self.l1 = l1
        self.l2 = l2
        self.scheme = scheme
        self.min_count = min_count
        self.all_states = all_states
        self.all_pairs = all_pairs
        self.boundaries = boundaries
        self.bias = bias
        self.iterations = iterations
        self.tolerance = tolerance
        self.flatness = flatness
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "chain_")

    def fit(self, X: Any, y: Any) -> ChainCRF:
        """Learn from sequences and their labels.

        Parameters
        ----------
        X : list of sequences
            The features of every position.
        y : list of lists of labels
            The labels of every position.
        """
        for name in ("l1", "l2", "tolerance", "flatness"):
            check_number(name, getattr(self, name), zero=True)
        flat, rows, labels = self._read_both(X, y)
        words = Vocabulary()
        sequences = words.read(rows, grow=True, bias=bool(self.bias))
        if not sequences.n_positions:
            raise ModelError("X has no data: all sequences are empty.")
        known = read_labels(labels, sequences)
        if self.min_count > 1:
            often = np.bincount(sequences.feature, minlength=len(words)) >= self.min_count
            words = Vocabulary(name for name, keep in zip(words.names, often, strict=True) if keep)
            sequences = words.read(rows, bias=bool(self.bias))
        named = np.unique(np.array([label for row in known for label in row]))
        number = {label: k for k, label in enumerate(named.tolist())}
        if flat and len(number) < 2:
            raise ModelError("y has only one class; a classifier needs at least 2 classes.")
        codes = np.array([number[label] for row in known for label in row], np.uint8)
        full = np.concatenate([[True], np.diff(sequences.begin) > 0])  # without empty sequences
        training = fit_chain(
            type(sequences)(sequences.begin[full], sequences.first, sequences.feature, sequences.value),
            codes,
            [str(label) for label in number],
            len(words),
            scheme=self.scheme,
            order=self.order,
            l1=self.l1,
            l2=self.l2,
            all_states=self.all_states,
            all_pairs=self.all_pairs,
            boundaries=self.boundaries,
            iterations=self.iterations,
            tolerance=self.tolerance,
            flatness=self.flatness,
            threads=read_threads(self.threads),
        )
        self.classes_ = named
        self.vocabulary_, self.chain_ = words, training.chain
        self.n_iter_, self._flat = training.minimum.iterations, flat
        self.log_likelihood_ = training.chain.log_likelihood(sequences, codes)
        if flat:
            self.n_features_in_ = int(np.asarray(X).shape[1])
        return self

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        transitions: Any = None,
        *,
        labels: Any = None,
        first: Any = None,
        last: Any = None,
        scheme: str | None = None,
        joint: str | None = None,
    ) -> ChainCRF:
        """Return a model with given weights, for example to decode a model of other software by sampling.

        Parameters
        ----------
        weights : mapping or path
            The weights of features and labels, as a mapping ``{feature: {label: number}}`` or
            ``{(feature, label): number}``. Or the name of a file with a model of CRFsuite as text (the output of
            ``crfsuite dump``, or of ``Tagger.dump`` of python-crfsuite), which has transitions and labels, too.
        transitions : mapping, optional
            ``{(label, next label): number}`` or ``{label: {next label: number}}``; -inf forbids a transition, and those
            that are not given have the weight zero.
        labels : list of str, optional
            All labels in their order; by default those that have weights, sorted.
        first, last : mapping, optional
            Weights of the first and the last label of a sequence.
        scheme : {"bio", "bioes", "io"}, optional
            Labelling scheme, which forbids some transitions.
        joint : str, optional
            What stands between name and value in the names of features whose values are texts: by default ":" for
            files, as in python-crfsuite, otherwise "=".

        Examples
        --------
        >>> import gibbsite as gs
        >>> weights = {"cat": {"N": 2.0}, "sleeps": {"V": 1.0, "N": 0.5}}
        >>> crf = gs.learn.ChainCRF.from_weights(weights, {("N", "V"): 1.0, ("N", "N"): -1.0})
        >>> crf.predict([[["cat"], ["sleeps"]]], method="herded", sweeps=50)
        [['N', 'V']]
        """
        given = read_given(weights, transitions, labels, (first, last))
        crf = cls(bias=False, boundaries=first is not None or last is not None, scheme=scheme)
        crf.chain_ = make_chain(given, first, last, scheme)
        crf.classes_ = np.array(given.labels)
        of_file = isinstance(weights, str | PathLike)
        crf.vocabulary_ = Vocabulary(given.attributes, (":" if of_file else "=") if joint is None else joint)
        crf.n_iter_, crf._flat = 0, False
        return crf

    def predict(self, X: Any, *, method: str = "viterbi", sweeps: int = 400, rng: int = 1) -> Any:
        """Return labels of every sequence, by default the most probable ones.

        Parameters
        ----------
        X : list of sequences
            The features of every position.
        method : {"viterbi", "posterior", "gibbs", "herded", "blocks"}
            The most probable labels of a sequence; the most probable label of each position; or the best labels that
            are visited by annealed Gibbs sampling (temperatures falling linearly from 1), by herded Gibbs sampling, or
            by Gibbs sampling of whole sequences.
        sweeps : int
            Number of sweeps of sampling.
        rng : int
            Seed of sampling.
        """
        if not isinstance(method, str) or method not in METHODS:
            raise ArgumentError(unknown("method", method, METHODS))
        sweeps, rng = check_integer("sweeps", sweeps, 1), check_integer("rng", rng, 0)
        sequences, flat = self._read(X)
        codes = decode(self._chain, sequences, method, sweeps, rng, read_threads(self.threads))
        named = self.classes_[codes]
        if flat:
            return named
        return [part.tolist() for part in np.split(named, sequences.begin[1:-1])[: len(sequences)]]

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of labels at every position, an array (positions, labels) per sequence."""
        sequences, flat = self._read(X)
        found = self._chain.marginals(sequences, read_threads(self.threads))[0]
        return found if flat else np.split(found, sequences.begin[1:-1])[: len(sequences)]

    def predict_best(self, X: Any, best: int = 5) -> list[list[tuple[list[Any], float]]]:
        """Return the most probable labellings of every sequence in order, with their probabilities.

        Examples
        --------
        >>> import gibbsite as gs
        >>> crf = gs.learn.ChainCRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> [labels for labels, p in crf.predict_best([[["a"], ["b"]]], best=2)[0]][0]
        ['x', 'y']
        """
        best = check_integer("best", best, 1, 100_000)
        sequences, _ = self._read(X)
        log_z = self._chain.marginals(sequences)[1]
        return [
            [(self.classes_[row].tolist(), float(np.exp(value - log_z[s]))) for row, value in zip(*found, strict=True)]
            for s, found in enumerate(self._chain.several_best(sequences, best))
        ]

    def log_probability(self, X: Any, y: Any) -> Any:
        """Return the logarithm of the probability of given labels of every sequence.

        Examples
        --------
        >>> import gibbsite as gs
        >>> crf = gs.learn.ChainCRF.from_weights({"a": {"x": 1.0, "y": 1.0}})
        >>> crf.log_probability([[["a"], ["a"]]], [["x", "y"]]).round(4).tolist()
        [-1.3863]
        """
        sequences, _ = self._read(X)
        number = {label: k for k, label in enumerate(self.classes_.tolist())}
        rows = read_labels(check_list("y", y, "lists of labels"), sequences)
        wrong = next((label for row in rows for label in row if label not in number), None)
        if wrong is not None:
            raise ModelError(f"y has the label {wrong!r}, which the model does not have.")
        codes = np.array([number[label] for row in rows for label in row], np.uint8)
        return self._chain.score(sequences, codes) - self._chain.marginals(sequences)[1]

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy, the share of positions whose predicted label is correct."""
        X = X if is_table(X) else check_list("X", X, "sequences")
        found, y = self.predict(X), check_list("y", y, "labels")
        if isinstance(found, np.ndarray):
            if len(found) != len(y):
                raise ModelError(f"X has {len(found)} rows, but y has {len(y)} labels; give equally many.")
            return float((found == np.asarray(y)).mean())
        pairs = [
            (a, b)
            for one, two in zip(found, read_labels(y, self._read(X)[0]), strict=True)
            for a, b in zip(one, two, strict=True)
        ]
        if not pairs:
            raise ModelError("X has no positions.")
        return float(np.mean([a == b for a, b in pairs]))

    @property
    def _chain(self) -> Chain:
        return self.chain_

    def _read_both(self, X: Any, y: Any) -> tuple[bool, Any, Any]:
        """Read data; return whether X is a single array of rows, then the sequences, then their labels."""
        if y is None:
            raise ModelError("requires y to be passed, but the target y is None.")
        if not is_table(X):
            return False, check_list("X", X, "sequences"), check_list("y", y, "lists of labels")
        table, target = read_table(X, y)
        return True, table[:, None, :], target[:, None].tolist()

    def _read(self, X: Any) -> tuple[Any, bool]:
        flat = is_table(X)
        if not hasattr(self, "chain_"):
            raise not_fitted(flat)("this ChainCRF is not fitted; call fit first.")
        if flat:
            X = read_table(X)[0]
            if X.shape[1] != getattr(self, "n_features_in_", X.shape[1]):
                raise ModelError(
                    f"X has {X.shape[1]} features, but ChainCRF is expecting {self.n_features_in_} features as input"
                )
            X = X[:, None, :]
        return self.vocabulary_.read(X, bias=bool(self.bias)), flat
