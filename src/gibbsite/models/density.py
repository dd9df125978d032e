"""Models given by a log-density, a function of a vector of numbers that is known up to a constant."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gibbsite._common.arguments import checked, describe
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite.errors import ModelError
from gibbsite.models.base import Model
from gibbsite.models.domain import Domains, Interval, make_domains


class Density(Model, ABC):
    """A log-density on a box of numbers, given by functions."""

    __slots__ = ()

    @checked
    def __init__(self, dim: int, bounds: Any, names: Sequence[str] | None) -> None:
        super().__init__(_read_box(dim, bounds, names))

    def _place(self, x: Any) -> Floats:
        """Return a place given by its coordinates."""
        place = read_reals(x, "a place")
        if place.shape != (self.n_sites,):
            raise ModelError(f"a place must be {self.n_sites} numbers, got an array of shape {place.shape}.")
        return place

    @property
    @abstractmethod
    def has_gradient(self) -> bool:
        """Whether there is a gradient."""

    def _inside(self, place: Floats) -> bool:
        low, high = self.domains.bounds
        return bool(((place >= low) & (place <= high)).all())


class LogDensity(Density):
    """A density on vectors of numbers, given by its logarithm up to a constant; immutable.

    Parameters
    ----------
    fn : callable
        ``fn(x) -> number`` for an array x of ``dim`` numbers; minus infinity where the density is zero. Functions
        that Numba can compile run at full speed (decorated with ``numba.njit`` or not); other functions are
        called in Python. The gradient of a function written with JAX is derived.
    grad : callable, optional
        ``grad(x) -> array (dim,)``, the gradient of ``fn``. It is compared with finite differences at random
        points before a run. Methods that need a gradient refuse to run without one.
    dim : int
        Number of coordinates.
    bounds : (low, high), optional
        Numbers or arrays (dim,) between which coordinates must lie; the density is zero outside.
    names : sequence of str, optional
        Names of the coordinates; "0", "1", ... by default.

    See Also
    --------
    ContinuousModel : A density given by factors.
    DataDensity : A sum over rows of data.

    Notes
    -----
    Compiled code keeps the values that global variables and closures had when it was compiled.

    Examples
    --------
    >>> banana = LogDensity(
    ...     lambda x: -(x[0] ** 2) / 10 - x[1] ** 4 / 10 - 2 * (x[1] - x[0] ** 2) ** 2,
    ...     lambda x: np.array([
    ...         -x[0] / 5 + 8 * x[0] * (x[1] - x[0] ** 2),
    ...         -2 * x[1] ** 3 / 5 - 4 * (x[1] - x[0] ** 2),
    ...     ]),
    ...     dim=2,
    ...     names=["x", "y"],
    ... )
    >>> banana
    LogDensity(2 sites, with gradient)
    >>> banana.log_potential([1.0, 1.0])
    -0.2
    """

    __slots__ = ("function", "gradient")

    @checked
    def __init__(
        self,
        fn: Any,
        grad: Any = None,
        *,
        dim: int,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(dim, bounds, names)
        self.function, self.gradient = read_pair(fn, grad, "a log-density")

    def _content(self) -> Iterator[Any]:
        yield from self._domains.content()
        yield from _digests(self.function, self.gradient)

    @property
    def has_gradient(self) -> bool:
        """Whether there is a gradient, given or derived."""
        return self.gradient is not None

    def log_potential(self, x: npt.ArrayLike) -> float:
        """Return the log-density at a place."""
        place = self._place(x)
        return float(self.function(place)) if self._inside(place) else -np.inf

    def __repr__(self) -> str:
        return f"LogDensity({self.n_sites:,} sites, {'with' if self.has_gradient else 'without'} gradient)"


class DataDensity(Density):
    """A density that is a prior times a likelihood of many independent rows of data; immutable.

    Its logarithm is ``prior(theta) + sum of likelihood(theta, row) over the rows``. Methods that take
    minibatches (:class:`SGLD`) look at some of the rows at a time.

    Parameters
    ----------
    prior : callable or None
        ``prior(theta) -> number``, the log-prior; None for a flat one.
    likelihood : callable
        ``likelihood(theta, row) -> number``, the log-likelihood of one row (an array).
    data : float array (rows, columns) or (rows,)
        The data.
    prior_grad, likelihood_grad : callable, optional
        Gradients with respect to theta, of the same arguments. Checked as those of :class:`LogDensity`.
    dim, bounds, names
        As in :class:`LogDensity`.

    Examples
    --------
    >>> model = DataDensity(
    ...     None,
    ...     lambda theta, row: -0.5 * (row[0] - theta[0]) ** 2,
    ...     np.arange(10.0),
    ...     likelihood_grad=lambda theta, row: np.array([row[0] - theta[0]]),
    ...     dim=1,
    ... )
    >>> model
    DataDensity(1 site, 10 rows, with gradient)
    >>> model.log_potential([4.5])
    -41.25
    """

    __slots__ = ("data", "likelihood", "likelihood_gradient", "prior", "prior_gradient")

    @checked
    def __init__(
        self,
        prior: Any,
        likelihood: Any,
        data: npt.ArrayLike,
        *,
        prior_grad: Any = None,
        likelihood_grad: Any = None,
        dim: int,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(dim, bounds, names)
        self.prior: Any = None
        self.prior_gradient: Any = None
        if prior is not None:
            self.prior, self.prior_gradient = read_pair(prior, prior_grad, "the prior")
        self.likelihood, self.likelihood_gradient = read_pair(likelihood, likelihood_grad, "the likelihood")
        self.data = _read_rows(data)

    def _content(self) -> Iterator[Any]:
        yield from self._domains.content()
        yield from _digests(self.prior, self.prior_gradient, self.likelihood, self.likelihood_gradient)
        yield f"{self.data.shape}".encode()
        yield self.data.tobytes()

    @property
    def has_gradient(self) -> bool:
        """Whether likelihood and prior both have a gradient."""
        return self.likelihood_gradient is not None and (self.prior is None or self.prior_gradient is not None)

    @property
    def n_rows(self) -> int:
        """Number of rows of the data."""
        return len(self.data)

    def log_potential(self, x: npt.ArrayLike) -> float:
        """Return the log-density at a place; row by row, in Python."""
        place = self._place(x)
        if not self._inside(place):
            return -np.inf
        total = 0.0 if self.prior is None else float(self.prior(place))
        return total + float(sum(float(self.likelihood(place, row)) for row in self.data))

    def __repr__(self) -> str:
        n = self.n_sites
        said = "with" if self.has_gradient else "without"
        return f"DataDensity({n:,} site{'s' * (n != 1)}, {self.n_rows:,} rows, {said} gradient)"


def read_pair(function: Any, gradient: Any, what: str) -> tuple[Any, Any]:
    """Return a function and its gradient for calls with NumPy arrays; the gradient of a JAX function is derived."""
    for given in (function,) if gradient is None else (function, gradient):
        if not callable(given):
            raise ModelError(f"{what} must be a function, got {given!r}.")
    if is_jax(function):
        derived = JaxFunction(function, derivative=True) if gradient is None else gradient
        function, gradient = JaxFunction(function), derived
    if gradient is not None and is_jax(gradient):
        gradient = JaxFunction(gradient)
    return function, gradient


def _digests(*functions: Any) -> Iterator[bytes]:
    """Yield hashes of functions."""
    from gibbsite._numba.foreign import digest_of

    for function in functions:
        if isinstance(function, JaxFunction):
            yield function.digest.encode()
        else:
            yield b"-" if function is None else digest_of(function).encode()


_MOST_COORDINATES = 10_000_000


def _read_box(dim: int, bounds: Any, names: Sequence[str] | None) -> Domains:
    if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
        raise ModelError(f"dim must be a whole number of at least 1, got {dim!r}.")
    if dim > _MOST_COORDINATES:
        raise ModelError(f"dim must be at most {_MOST_COORDINATES:,}, got {describe(dim)}.")
    listed = [str(k) for k in range(dim)] if names is None else list(names)
    if len(listed) != dim:
        raise ModelError(f"names must have one entry for each of the {dim} coordinates, got {len(listed)}.")
    if bounds is None:
        return make_domains(listed, states=Interval())
    try:
        low, high = (np.broadcast_to(np.asarray(part, float), (dim,)) for part in bounds)
    except (TypeError, ValueError):
        raise ModelError(
            f"bounds must be (low, high), each a number or an array of {dim} numbers, got {bounds!r}."
        ) from None
    return make_domains({name: Interval(float(low[k]), float(high[k])) for k, name in enumerate(listed)})


def _read_rows(data: npt.ArrayLike) -> Floats:
    try:
        rows = np.ascontiguousarray(np.asarray(data, float))
    except (TypeError, ValueError, OverflowError):
        raise ModelError("data must be an array of numbers (rows, columns).") from None
    rows = rows[:, None] if rows.ndim == 1 else rows
    if rows.ndim != 2 or not rows.size:
        raise ModelError(f"data must be an array (rows, columns) with at least one of each, got {rows.shape}.")
    if not np.isfinite(rows).all():
        row = int(np.argwhere(~np.isfinite(rows))[0, 0])
        raise ModelError(f"row {row} of the data has an entry that is not a number.")
    rows.setflags(write=False)
    return rows


# ---- functions written with JAX, which is imported only where a function uses it (the extra "jax")


def is_jax(function: Any) -> bool:
    """Return whether a function comes from JAX, for example from ``jax.jit``, or uses JAX."""
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
    """A function of JAX as a function of NumPy arrays, or its gradient with respect to the first argument.

    It is compiled, with double precision.
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
        """Hash of the function, and whether this is its gradient."""
        from gibbsite._numba.foreign import digest_of

        return f"{digest_of(getattr(self.inner, '__wrapped__', self.inner))}{self.derivative}"


def _double(jax: Any) -> Any:
    """Return a context with double precision, which versions of JAX have in different modules."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()
