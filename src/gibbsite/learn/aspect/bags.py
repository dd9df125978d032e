"""Documents as bags of tokens, each with one word of every kind.

Text has one kind of words. A patch of an image may have three, for its texture, its colour and its place, which are
independent given the topic of the patch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gibbsite._common.arguments import describe, is_iterable, is_numeric
from gibbsite._common.arrays import Floats, Ints
from gibbsite.errors import ArgumentError, IncompatibleError, ModelError


class Bags(NamedTuple):
    """Tokens of documents, one document after the other."""

    first: Ints  # (documents + 1,): where the tokens of a document begin
    words: Ints  # (tokens, kinds): words, numbered from 0 in each kind
    times: Floats  # (tokens,): how often a token occurs
    width: int  # number of words of a table of counts; 0 if documents were given as lists

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.first.size - 1

    @property
    def kinds(self) -> int:
        """Number of kinds of words."""
        return int(self.words.shape[1])

    @property
    def document(self) -> Ints:
        """The document of every token."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.first))


def is_counts(X: Any) -> bool:
    """Return whether X is a table (documents, words) of counts rather than a list of documents."""
    if hasattr(X, "tocsr") or hasattr(X, "__array__"):
        return hasattr(X, "tocsr") or np.asarray(X).ndim != 3
    # words are whole numbers, so lists of floats are counts
    rows = X[0] if isinstance(X, list | tuple) and X else None
    return isinstance(rows, list | tuple) and bool(rows) and isinstance(rows[0], float)


def read_bags(X: Any) -> Bags:
    """Return documents as bags: a table (documents, words) of counts, or a list of documents.

    ``X`` has counts (possibly lists of floats), or the words of every document, (tokens,) or (tokens, kinds).
    """
    if is_counts(X):
        return _from_counts(X)
    if isinstance(X, str | bytes) or not is_iterable(X):
        raise ArgumentError(f"X must be a table of counts or a list of documents, got {describe(X)}.")
    return _from_lists(X)


def _from_counts(X: Any) -> Bags:
    """Read a table of counts; its error messages are those that scikit-learn's checks of estimators expect."""
    import scipy.sparse as sparse

    X = X if sparse.issparse(X) else np.asarray(X)
    if X.dtype.kind == "c":
        raise ModelError("Complex data not supported: X must be a table of counts.")
    if not sparse.issparse(X):
        if X.ndim != 2:
            raise ModelError(
                f"X must have shape (documents, words), got {X.shape}. Reshape your data, for example with "
                "X.reshape(1, -1) if it is a single document."
            )
        if X.dtype.kind not in "biuf":
            try:
                X = X.astype(np.float64)
            except (TypeError, ValueError):
                raise IncompatibleError("X is a table of counts: argument must be a string or a number.") from None
    rows = sparse.csr_array(X, dtype=np.float64)
    rows.sum_duplicates()
    documents, words = rows.shape
    for what, many in (("sample", documents), ("feature", words)):
        if many == 0:
            raise ModelError(f"Found array with 0 {what}(s) (shape={rows.shape}) while a minimum of 1 is required.")
    if not np.isfinite(rows.data).all():
        raise ModelError("X has counts that are NaN or infinity; give finite counts.")
    if (rows.data < 0).any():
        raise ModelError("Negative values in data passed to AspectModel: X must be a table of counts.")
    rows.eliminate_zeros()
    return Bags(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64)[:, None], rows.data.astype(np.float64), words
    )


def _from_lists(X: Sequence[Any]) -> Bags:
    """Read a list with the word numbers of every document."""
    parts: list[Ints] = []
    for number, document in enumerate(X):
        if not is_numeric(document):
            raise ArgumentError(f"document {number} must be a list of word numbers, got {describe(document)}.")
        array = np.asarray(document)
        if array.size == 0:
            array = np.zeros((0, 1), np.int64)
        if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
            raise ModelError(
                f"document {number} must be an array (tokens,) or (tokens, kinds) of word numbers, got "
                f"{array.dtype} of shape {array.shape}."
            )
        parts.append((array if array.ndim == 2 else array[:, None]).astype(np.int64))
    if not parts:
        raise ModelError("X has no documents; give at least one.")
    kinds = {part.shape[1] for part in parts if len(part)}
    if len(kinds) > 1:
        raise ModelError(f"tokens of documents have {min(kinds)} and {max(kinds)} kinds of words; give equally many.")
    many = kinds.pop() if kinds else 1
    words = np.concatenate([part if len(part) else np.zeros((0, many), np.int64) for part in parts])
    if words.size and words.min() < 0:
        raise ModelError(f"words are numbered from 0, got {words.min()}.")
    first = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    return Bags(first, words, np.ones(len(words)), 0)
