"""Tables of numbers: rows that are sequences of one position, checked by scikit-learn where it is there."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

from gibbsite.errors import ModelError
from gibbsite.models.reals import read_reals


def is_table(X: Any) -> bool:
    """Tell whether X is a table of numbers, and no list of sequences."""
    if hasattr(X, "__array__") or hasattr(X, "toarray"):
        return True
    first = X[0] if isinstance(X, list | tuple) and X else None
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], int | float)


def _has_sklearn() -> bool:
    return importlib.util.find_spec("sklearn") is not None


def not_fitted(table: bool) -> type[Exception]:
    """Return the error about an estimator that has learnt nothing; that of scikit-learn for its tables."""
    if not table or not _has_sklearn():
        return ModelError
    from sklearn.exceptions import NotFittedError

    found: type[Exception] = NotFittedError
    return found


def read_table(X: Any, y: Any = None) -> tuple[Any, Any]:
    """Return a table of finite numbers, and a label for each row where there are labels."""
    if _has_sklearn():
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import check_array, check_X_y

        if y is None:
            return check_array(X), None
        table, target = check_X_y(X, y)
        check_classification_targets(target)
        return table, target
    table = read_reals(X, "X")
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ModelError(f"X must have shape (rows, features) and finite numbers, got {table.shape}.")
    target = None if y is None else np.asarray(y)
    if target is not None and target.shape != table.shape[:1]:
        raise ModelError(f"there are {len(table)} rows and labels of shape {target.shape}.")
    return table, target
