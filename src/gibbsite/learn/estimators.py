"""Conventions of scikit-learn: parameters of estimators by name, checks of tables, and the error before fitting."""

from __future__ import annotations

import importlib.util
import inspect
from typing import Any, Self

import numpy as np

from gibbsite._common.reals import read_reals
from gibbsite.errors import IncompatibleError, ModelError


class Parameters:
    """Base class of estimators, whose parameters are attributes named after the arguments of the constructor."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r}; the parameters are {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = inspect.signature(type(self)).parameters
        given = {name: repr(value) for name, value in self.get_params().items()}
        changed = [f"{name}={text}" for name, text in given.items() if text != repr(default[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"


def is_table(X: Any) -> bool:
    """Return whether X is a table of numbers rather than a list of sequences."""
    if hasattr(X, "__array__") or hasattr(X, "toarray"):
        return True
    first = X[0] if isinstance(X, list | tuple) and X else None
    return isinstance(first, list | tuple) and bool(first) and isinstance(first[0], int | float)


def _has_sklearn() -> bool:
    return importlib.util.find_spec("sklearn") is not None


def not_fitted(table: bool) -> type[Exception]:
    """Return the type of the error of an estimator that is not fitted, which is that of scikit-learn for tables."""
    if not table or not _has_sklearn():
        return ModelError
    from sklearn.exceptions import NotFittedError

    found: type[Exception] = NotFittedError
    return found


def read_table(X: Any, y: Any = None) -> tuple[Any, Any]:
    """Return a table of finite numbers, and the label of each row if there are labels."""
    if _has_sklearn():
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import check_array, check_X_y

        try:
            if y is None:
                return check_array(X), None
            table, target = check_X_y(X, y)
            check_classification_targets(target)
        except ValueError as error:
            raise ModelError(str(error)) from None
        except TypeError as error:
            raise IncompatibleError(str(error)) from None
        return table, target
    table = read_reals(X, "X")
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ModelError(f"X must have shape (rows, features) and finite numbers, got {table.shape}.")
    target = None if y is None else np.asarray(y)
    if target is not None and target.shape != table.shape[:1]:
        raise ModelError(f"X has {len(table)} rows, but y has the shape {target.shape}; give one label for each row.")
    return table, target
