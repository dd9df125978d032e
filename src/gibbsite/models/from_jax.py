"""Functions written with JAX: how they are told, called with double precision, and differentiated.

JAX is imported only where a function uses it (``pip install gibbsite[jax]``).
"""

from __future__ import annotations

import types
from typing import Any


def is_jax(function: Any) -> bool:
    """Tell whether a function is JAX's own, made by ``jax.jit`` and so on, or uses JAX."""
    if _of_jax(type(function)) or _of_jax(function):
        return True
    inner = getattr(function, "func", function)  # of functools.partial
    if not isinstance(inner, types.FunctionType):
        return False
    used = [inner.__globals__.get(name) for name in inner.__code__.co_names]
    cells = [cell.cell_contents for cell in inner.__closure__ or ()]
    return any(_of_jax(thing) for thing in (*used, *cells))


def _of_jax(thing: Any) -> bool:
    if isinstance(thing, types.ModuleType):
        home: Any = thing.__name__
    else:
        home = getattr(thing, "__module__", None) or ""
    return isinstance(home, str) and home.partition(".")[0] in ("jax", "jaxlib")


class JaxFunction:
    """A function of JAX, or its gradient, as a function of NumPy arrays: compiled, with double precision.

    Parameters
    ----------
    inner : callable
        The function as the user gave it.
    derivative : bool
        Take its gradient with respect to the first argument.
    """

    def __init__(self, inner: Any, derivative: bool = False) -> None:
        self.inner, self.derivative = inner, derivative
        name = getattr(inner, "__name__", type(inner).__name__)
        self.__name__ = f"gradient of {name}" if derivative else name
        self._ready: Any = None

    def __call__(self, *arrays: Any) -> Any:
        """Return what JAX returns for arrays of NumPy."""
        import jax

        with _double(jax):
            if self._ready is None:
                self._ready = jax.jit(jax.grad(self.inner) if self.derivative else self.inner)
            return self._ready(*(jax.numpy.asarray(array) for array in arrays))

    @property
    def digest(self) -> str:
        """Hash of what it does."""
        from gibbsite._numba.foreign import digest_of

        return f"{digest_of(getattr(self.inner, '__wrapped__', self.inner))}{self.derivative}"


def _double(jax: Any) -> Any:
    """Return a context in which numbers are doubles; its place has changed between versions of JAX."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()
