"""Parameters of an estimator as scikit-learn asks for them: all arguments of the constructor, by name."""

from __future__ import annotations

import inspect
from typing import Any, Self


class Parameters:
    """Reads and changes attributes that are named as the arguments of the constructor are."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change some parameters."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r}; there are {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = inspect.signature(type(self)).parameters
        given = {name: repr(value) for name, value in self.get_params().items()}
        changed = [f"{name}={text}" for name, text in given.items() if text != repr(default[name].default)]
        return f"{type(self).__name__}({', '.join(changed)})"
