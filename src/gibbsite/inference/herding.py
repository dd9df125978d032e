"""Herding of moments: states whose features have given means, chosen one after another without chance.

Welling's herding [1]_ keeps a weight for each feature and repeats two steps:

    x = argmax over states of <w, phi(x)>,    w <- w + mu - phi(x).

The sum of the features of T states is T mu + w_0 - w_T, so the distance of their mean from mu is |w_0 - w_T| / T. If mu
is the mean of phi under some distribution on finitely many states, the weights stay bounded, and the distance falls
like 1 / T, whereas that of random draws falls like its root. The maximum need not be exact: it suffices that
<w, phi(x)> >= <w, mu>, as an average state has. A step without that is counted as a miss. If the maximum is exact, a
miss proves that no distribution has the moments mu.

References
----------
.. [1] Welling, M. (2009). Herding dynamical weights to learn. ICML.
.. [2] Chen, Y., Welling, M. and Smola, A. (2010). Super-samples from kernel herding. UAI.
.. [3] Bach, F., Lacoste-Julien, S. and Obozinski, G. (2012). On the equivalence between herding and conditional
   gradient algorithms. ICML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gibbsite._common.arguments import check_integer, checked, describe
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite.errors import ArgumentError
from gibbsite.graphs.graph import compile_graph
from gibbsite.inference.exact.junction import predict_exact, solve_exact
from gibbsite.kernels.gibbs.uphill import go_uphill
from gibbsite.models import FactorGraph, TableFactors

SOLVERS = ("exact", "local")
_ROUNDING = 1e-9  # relative to the sizes of weights and features
_MOST_BITS = 12  # logarithm of the largest number of states that are enumerated
_MOST_ENTRIES = 2e5  # of the largest table of a junction tree up to which the maximum is exact by default


@dataclass(frozen=True)
class Herding:
    """States that herding has chosen.

    Attributes
    ----------
    states : array or list
        The states in their order: numbers of rows of a table, codes (steps, sites) of a model, or what the solver
        returned.
    errors : array
        Euclidean distances of the mean of the features from the moments, after 1, 2, ... steps.
    mean, moments : array
        The mean of the features over all steps, and the moments that it should have.
    start, weights : array
        The weights before the first and after the last step.
    misses : int
        Number of steps whose state had a smaller product of weights and features than the moments have. With none, the
        weights are bounded and errors fall like 1 / T.

    Examples
    --------
    >>> import numpy as np
    >>> import gibbsite as gs
    >>> found = gs.herd(np.eye(3), [0.5, 0.25, 0.25], steps=8)
    >>> np.bincount(found.states).tolist()
    [4, 2, 2]
    """

    states: Any
    errors: Floats
    mean: Floats
    moments: Floats
    start: Floats
    weights: Floats
    misses: int

    def summary(self) -> str:
        """Return what was found in one line."""
        steps = len(self.errors)
        missed = f"; {self.misses:,} steps without a good enough state" if self.misses else ""
        return f"Herding: {steps:,} states, distance of their mean from the moments {self.errors[-1]:.3g}{missed}"

    def __repr__(self) -> str:
        return self.summary()


class _Space(Protocol):
    """States with features."""

    @property
    def exact(self) -> bool:
        """Whether the maximum is exact."""

    def best(self, weights: Floats) -> tuple[Any, Floats]:
        """Return a state with a large product of weights and features, and its features."""

    def collect(self, states: list[Any]) -> Any:
        """Return the states as users see them."""


@checked
def herd(
    features: Any,
    moments: Any = None,
    *,
    steps: int = 1000,
    start: Any = None,
    solver: str | Callable[..., Any] | None = None,
) -> Herding:
    """Choose states whose features have given means, by herding.

    Parameters
    ----------
    features : array, FactorGraph or function
        An array (states, features) has the features of each state of a finite space. The features of a model are the
        configurations of the sites of each of its factors, whatever its weights are. A function returns the features of
        a state that ``solver`` has found.
    moments : array or list of arrays, optional
        The means that the features should have. For a model: the probabilities of the configurations, a table for each
        factor; or data, an array of state codes (rows, sites), whose frequencies are taken; or nothing, for the
        probabilities under the model itself, computed exactly.
    steps : int
        Number of states.
    start : array, optional
        The first weights, by default the moments.
    solver : {"exact", "local"} or function, optional
        How the best state of a model is found: exactly, by a junction tree, or by moving single sites uphill from the
        state before; by default exactly if its tables are small. For a function ``features``: a function of the weights
        that returns the state with the largest product of weights and features.

    Returns
    -------
    Herding
        With the states, and the error after each step.

    Raises
    ------
    ArgumentError
        If no distribution has the moments, which an exact solver finds out.

    See Also
    --------
    HerdedGibbs : Herding of all conditionals of a model, which needs no maximum.

    References
    ----------
    Welling (2009), Herding dynamical weights to learn.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((3, 3), coupling=0.3)
    >>> found = gs.herd(model, steps=500)
    >>> found.states.shape, bool(found.errors[-1] < 0.05)
    ((500, 9), True)
    """
    steps = check_integer("steps", steps, 1)
    if isinstance(features, FactorGraph):
        space: _Space = _Model(features, solver)
        target = _read_tables(space, features, moments)
    else:
        if moments is None:
            raise ArgumentError(f"Give the means that the features should have as {argument('moments')}.")
        target = read_reals(moments, "moments")
        if target.ndim != 1 or not target.size or not np.isfinite(target).all():
            raise ArgumentError(f"{argument('moments')} must be a list of finite numbers, got shape {target.shape}.")
        space = _make_space(features, solver, target)
    weights = target.copy() if start is None else read_reals(start, "start").copy()
    if weights.shape != target.shape or not np.isfinite(weights).all():
        raise ArgumentError(
            f"{argument('start')} must have {target.size} finite numbers, one for each feature, got shape "
            f"{weights.shape}."
        )
    return _run(space, target, weights, steps)


def _run(space: _Space, target: Floats, weights: Floats, steps: int) -> Herding:
    first, total = weights.copy(), np.zeros(target.size)
    states, errors, misses = [], np.empty(steps), 0
    for t in range(steps):
        state, found = space.best(weights)
        scale = np.abs(weights) @ (np.abs(found) + np.abs(target))
        if weights @ (found - target) < -_ROUNDING * (1.0 + scale):
            if space.exact:
                raise ArgumentError(
                    f"No distribution has these {argument('moments')}: after {t} steps, every state has a smaller "
                    "product of weights and features than they have. Check that they are means of the features."
                )
            misses += 1
        total += found
        weights += target - found
        states.append(state)
        errors[t] = np.sqrt(np.square(target - total / (t + 1)).sum())
    return Herding(space.collect(states), errors, total / steps, target, first, weights, misses)


@dataclass
class _Rows:
    """A finite space: the features of each state."""

    table: Floats
    exact: bool = True

    def best(self, weights: Floats) -> tuple[int, Floats]:
        at = int((self.table @ weights).argmax())
        return at, self.table[at]

    def collect(self, states: list[Any]) -> Ints:
        return np.array(states, np.int64)


@dataclass
class _Given:
    """A space of the user: a function that computes features, and one that finds the best state."""

    features: Callable[..., Any]
    solver: Callable[..., Any]
    size: int
    exact: bool = False

    def best(self, weights: Floats) -> tuple[Any, Floats]:
        state = self.solver(weights.copy())
        found = read_reals(self.features(state), "the features of a state")
        if found.shape != (self.size,) or not np.isfinite(found).all():
            raise ArgumentError(
                f"The features of a state must be {self.size} finite numbers, as many as {argument('moments')} has, "
                f"got shape {found.shape}."
            )
        return state, found

    def collect(self, states: list[Any]) -> list[Any]:
        return states


def _make_space(features: Any, solver: Any, target: Floats) -> _Space:
    if callable(features):
        if not callable(solver):
            raise ArgumentError(
                f"{argument('features')} is a function, so {argument('solver')} must be a function of the weights that "
                "returns the best state."
            )
        return _Given(features, solver, target.size)
    if solver is not None:
        raise ArgumentError(f"{argument('solver')} is for models and functions; the best row of a table is computed.")
    table = read_reals(features, "features")
    if table.ndim != 2 or not len(table) or table.shape[1] != target.size or not np.isfinite(table).all():
        raise ArgumentError(
            f"{argument('features')} must be an array of finite numbers of shape (states, {target.size}), a column for "
            f"each of the {argument('moments')}, got shape {table.shape}."
        )
    return _Rows(table)


class _Model:
    """The space of a model: the features are the configurations of the sites of each factor."""

    def __init__(self, model: FactorGraph, solver: Any) -> None:
        if solver is not None and solver not in SOLVERS:
            raise ArgumentError(unknown("solver", solver, SOLVERS))
        scopes: dict[tuple[int, ...], None] = {}
        groups: Any = model.groups
        for group in groups:
            scopes |= dict.fromkeys(tuple(scope) for scope in group.scopes.tolist())
        if not scopes:
            raise ArgumentError("The model has no factors, so there are no features.")
        self.scopes: list[tuple[int, ...]] = list(scopes)
        cards = model.cards.astype(np.int64)
        self.shapes = [tuple(cards[list(scope)].tolist()) for scope in self.scopes]
        self.begin = np.concatenate([[0], np.cumsum([int(np.prod(shape)) for shape in self.shapes])])
        self.by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, shape in enumerate(self.shapes):
            self.by_shape.setdefault(shape, []).append(k)
        groups = [
            TableFactors([self.scopes[k] for k in of], np.zeros((len(of), *shape)), name=str(number))
            for number, (shape, of) in enumerate(self.by_shape.items())
        ]
        self.model = FactorGraph({str(k): card for k, card in enumerate(cards.tolist())}, groups=groups)
        self.exact = solver == "exact" or (solver is None and predict_exact(self.model).largest <= _MOST_ENTRIES)
        self.strides = [np.cumprod([1, *shape[:0:-1]])[::-1] for shape in self.shapes]
        self.state: Array = np.zeros(model.n_sites, np.int64)
        self.every: tuple[Ints, Ints] | None = None  # all states, and the cells of their features
        if self.exact and np.log2(cards).sum() <= _MOST_BITS:
            states = np.indices(tuple(cards.tolist())).reshape(model.n_sites, -1).T.astype(np.int64)
            self.every = states, np.stack([self._cells(states, k) for k in range(len(self.scopes))], axis=1)

    def _cells(self, states: Array, k: int) -> Ints:
        """Return the place of the feature that each state has of a scope."""
        return np.asarray(self.begin[k] + states[:, list(self.scopes[k])] @ self.strides[k])

    def best(self, weights: Floats) -> tuple[Ints, Floats]:
        if self.every is not None:
            states, cells = self.every
            self.state = states[int(weights[cells].sum(axis=1).argmax())]
            return self.state, self.count(self.state[None])
        tables = {
            str(number): np.stack([weights[self.begin[k] : self.begin[k + 1]].reshape(shape) for k in of])
            for number, (shape, of) in enumerate(self.by_shape.items())
        }
        model = self.model.reweight(**tables)
        if self.exact:
            self.state = np.asarray(solve_exact(model, task="MAP").assignment_codes, np.int64)
        else:
            graph = compile_graph(model)
            x = self.state.astype(graph.state_dtype)
            go_uphill(graph.arrays, x, np.zeros(int(graph.cards.max())))
            self.state = x.astype(np.int64)
        return self.state, self.count(self.state[None])

    def count(self, states: Array) -> Floats:
        """Return the mean features of some states."""
        found = np.zeros(self.begin[-1])
        for k in range(len(self.scopes)):
            np.add.at(found, self._cells(states, k), 1.0 / len(states))
        return found

    def collect(self, states: list[Any]) -> Ints:
        return np.array(states, np.int64)


def _read_tables(space: Any, model: FactorGraph, moments: Any) -> Floats:
    """Return the moments of a model: given tables, frequencies of data, or its own probabilities."""
    if moments is None:
        exact = solve_exact(model)
        return np.concatenate([exact.joint(*scope).ravel() for scope in space.scopes])
    if isinstance(moments, Sequence) and not isinstance(moments, str) and len(moments) == len(space.scopes):
        tables = [read_reals(table, "a table of moments") for table in moments]
        for k, (table, shape) in enumerate(zip(tables, space.shapes, strict=True)):
            if table.shape != shape or not abs(table.sum() - 1.0) < 1e-6 or (table < 0.0).any():
                raise ArgumentError(
                    f"Table {k} of {argument('moments')} must have the shape {shape}, no negative numbers, and the sum "
                    f"1; got shape {table.shape} and sum {table.sum():g}."
                )
        return np.concatenate([table.ravel() for table in tables])
    data = np.asarray(moments)
    if data.ndim != 2 or data.shape[1] != model.n_sites or not len(data) or not np.issubdtype(data.dtype, np.integer):
        raise ArgumentError(
            f"{argument('moments')} of a model must be a table for each of its {len(space.scopes)} different scopes, "
            f"or an array of state codes of shape (rows, {model.n_sites}), got {describe(moments)}."
        )
    if (data < 0).any() or (data >= model.cards).any():
        raise ArgumentError(f"{argument('moments')} has state codes outside the states of the sites.")
    return np.asarray(space.count(data.astype(np.int64)))
