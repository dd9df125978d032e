"""The functions of the BUGS language: of numbers, of arrays, and the links.

A function of numbers has an operation of the compiled evaluator (:mod:`.evaluator`) and a NumPy version, by which
expressions of data are computed when a model is built.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from gibbsite._common.arrays import Array, Floats
from gibbsite.applications.bugs.distributions import DISTRIBUTIONS, OTHER_NAMES


class Operation(IntEnum):
    """What an instruction of the evaluator does."""

    CONSTANT = 0
    LOAD = 1
    ELEMENT = 2
    OFFSET = 3
    FETCH = 4
    ADD = 5
    SUBTRACT = 6
    MULTIPLY = 7
    DIVIDE = 8
    POWER = 9
    NEGATE = 10
    EXP = 11
    LOG = 12
    SQRT = 13
    ABS = 14
    ILOGIT = 15
    LOGIT = 16
    PHI = 17
    PROBIT = 18
    CLOGLOG = 19
    ICLOGLOG = 20
    SIN = 21
    COS = 22
    TAN = 23
    ARCSIN = 24
    ARCCOS = 25
    ARCTAN = 26
    SINH = 27
    COSH = 28
    TANH = 29
    ARCSINH = 30
    ARCCOSH = 31
    ARCTANH = 32
    LOGGAM = 33
    LOGFACT = 34
    ROUND = 35
    TRUNC = 36
    STEP = 37
    EQUALS = 38
    GREATER = 39
    AT_LEAST = 40
    LESS = 41
    AT_MOST = 42
    DIFFER = 43
    AND = 44
    OR = 45
    NOT = 46
    CHOOSE = 47
    LOWER = 48
    LARGER = 49
    SUM = 50
    MEAN = 51
    PRODUCT = 52
    INNER = 53
    LEAST = 54
    MOST = 55
    SD = 56
    LOGDET = 57
    INTERPOLATE = 58
    RANKED = 59
    RANK = 60
    ORDER = 61
    DISTRIBUTION = 62


@dataclass(frozen=True)
class Function:
    """A function of numbers: its number of arguments, its operation, and its NumPy version.

    ``number`` says which one it is of the operations that are functions of a distribution.
    """

    arity: int
    operation: Operation
    compute: Callable[..., Any]
    number: int = -1


def _special(name: str) -> Callable[..., Any]:
    def compute(*arguments: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments)

    return compute


def _log_factorial(x: Any) -> Any:
    return _special("gammaln")(np.asarray(x) + 1.0)


def _logit(p: Any) -> Any:
    return np.log(p) - np.log1p(-np.asarray(p))


def _half_away(x: Any) -> Any:
    x = np.asarray(x, float)
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _truth(compare: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: compare(*arguments).astype(float)


def _equal(x: Any, y: Any) -> Array:
    """Return whether numbers are equal up to rounding, as the evaluator compares them."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    same: Array = np.abs(x - y) <= 1e-14 * np.maximum(np.abs(x), np.abs(y))
    return same


def _of_distribution(number: int) -> Callable[..., Any]:
    def compute(*arguments: Any) -> Any:
        from gibbsite.applications.bugs.compiled.quantiles import value_of

        given = np.broadcast_arrays(*(np.asarray(each, float) for each in arguments))
        rows = zip(*(each.ravel().tolist() for each in given), strict=True)
        found = [value_of(number, *row, *(0.0,) * (5 - len(row))) for row in rows]
        return np.array(found).reshape(given[0].shape)

    return compute


def _distribution_functions() -> dict[str, Function]:
    """Return the densities (d), distribution functions (p) and quantiles (q) of distributions of numbers."""
    found = {}
    for name, each in {**DISTRIBUTIONS, **{other: DISTRIBUTIONS[name] for other, name in OTHER_NAMES.items()}}.items():
        if each.scalar and each.parameters:
            for which, letter in enumerate("dpq"):
                number = 3 * each.code + which
                compute = _of_distribution(number)
                found[letter + name[1:]] = Function(1 + len(each.shapes), Operation.DISTRIBUTION, compute, number)
    return found


_O = Operation
_ONE: dict[str, tuple[Operation, Callable[..., Any]]] = {
    "neg": (_O.NEGATE, np.negative),
    "exp": (_O.EXP, np.exp),
    "log": (_O.LOG, np.log),
    "sqrt": (_O.SQRT, np.sqrt),
    "abs": (_O.ABS, np.abs),
    "ilogit": (_O.ILOGIT, _special("expit")),
    "logit": (_O.LOGIT, _logit),
    "phi": (_O.PHI, _special("ndtr")),
    "probit": (_O.PROBIT, _special("ndtri")),
    "cloglog": (_O.CLOGLOG, lambda p: np.log(-np.log1p(-np.asarray(p)))),
    "icloglog": (_O.ICLOGLOG, lambda x: -np.expm1(-np.exp(x))),
    "sin": (_O.SIN, np.sin),
    "cos": (_O.COS, np.cos),
    "tan": (_O.TAN, np.tan),
    "arcsin": (_O.ARCSIN, np.arcsin),
    "arccos": (_O.ARCCOS, np.arccos),
    "arctan": (_O.ARCTAN, np.arctan),
    "sinh": (_O.SINH, np.sinh),
    "cosh": (_O.COSH, np.cosh),
    "tanh": (_O.TANH, np.tanh),
    "arcsinh": (_O.ARCSINH, np.arcsinh),
    "arccosh": (_O.ARCCOSH, np.arccosh),
    "arctanh": (_O.ARCTANH, np.arctanh),
    "loggam": (_O.LOGGAM, _special("gammaln")),
    "logfact": (_O.LOGFACT, _log_factorial),
    "round": (_O.ROUND, _half_away),
    "trunc": (_O.TRUNC, np.trunc),
    "step": (_O.STEP, _truth(lambda x: np.asarray(x) >= 0.0)),
    "!": (_O.NOT, _truth(lambda x: np.asarray(x) == 0.0)),
}
_TWO: dict[str, tuple[Operation, Callable[..., Any]]] = {
    "+": (_O.ADD, np.add),
    "-": (_O.SUBTRACT, np.subtract),
    "*": (_O.MULTIPLY, np.multiply),
    "/": (_O.DIVIDE, np.divide),
    "^": (_O.POWER, np.power),
    "equals": (_O.EQUALS, _truth(_equal)),
    ">": (_O.GREATER, _truth(np.greater)),
    ">=": (_O.AT_LEAST, _truth(np.greater_equal)),
    "<": (_O.LESS, _truth(np.less)),
    "<=": (_O.AT_MOST, _truth(np.less_equal)),
    "!=": (_O.DIFFER, _truth(np.not_equal)),
    "&&": (_O.AND, _truth(np.logical_and)),
    "||": (_O.OR, _truth(np.logical_or)),
}

#: Functions of numbers by name.
FUNCTIONS: dict[str, Function] = {
    **{name: Function(1, *given) for name, given in _ONE.items()},
    **{name: Function(2, *given) for name, given in _TWO.items()},
    **_distribution_functions(),
    "ifelse": Function(3, _O.CHOOSE, lambda c, a, b: np.where(np.asarray(c) != 0.0, a, b)),
}

#: Other names of functions.
SYNONYMS = {
    "pow": "^",
    "**": "^",
    "==": "equals",
    "lgamma": "loggam",
    "lfactorial": "logfact",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "fabs": "abs",
    "pnorm01": "phi",
    "Phi": "phi",
    "logistic": "ilogit",
}

#: The function that turns a linear predictor into the value of a variable, by the name of the link.
INVERSE_LINKS = {"log": "exp", "logit": "ilogit", "probit": "phi", "cloglog": "icloglog"}


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays: np.array([function(*rows) for rows in zip(*arrays, strict=True)], float)


@dataclass(frozen=True)
class Reduction:
    """A function that makes a number of arrays: how many arrays, its operation, and its NumPy version.

    The NumPy version takes arrays (instances, entries) and returns an array (instances,). ``leading`` is the number of
    arguments before the arrays that are numbers.
    """

    arrays: int
    operation: Operation
    compute: Callable[..., Any]
    leading: int = 0


def _logdet(rows: Floats) -> Array:
    size = round(rows.shape[1] ** 0.5)
    found: Floats = np.linalg.slogdet(rows.reshape(-1, size, size))[1]
    return found


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(1, _O.SUM, lambda a: a.sum(axis=1)),
    "mean": Reduction(1, _O.MEAN, lambda a: a.mean(axis=1)),
    "prod": Reduction(1, _O.PRODUCT, lambda a: a.prod(axis=1)),
    "inprod": Reduction(2, _O.INNER, lambda a, b: (a * b).sum(axis=1)),
    "min": Reduction(1, _O.LEAST, lambda a: a.min(axis=1)),
    "max": Reduction(1, _O.MOST, lambda a: a.max(axis=1)),
    "sd": Reduction(1, _O.SD, lambda a: a.std(axis=1, ddof=1)),
    "logdet": Reduction(1, _O.LOGDET, _logdet),
    "interp.lin": Reduction(2, _O.INTERPOLATE, _over(np.interp), leading=1),
    "sort.at": Reduction(1, _O.RANKED, _over(lambda k, a: np.sort(a)[int(k) - 1]), leading=1),
    "rank.at": Reduction(1, _O.RANK, _over(lambda k, a: np.argsort(np.argsort(a, kind="stable"))[int(k) - 1] + 1), 1),
    "order.at": Reduction(1, _O.ORDER, _over(lambda k, a: np.argsort(a, kind="stable")[int(k) - 1] + 1), leading=1),
}

#: Functions whose value is an array, which variables on the left side of a relation take.
ARRAY_FUNCTIONS = ("inverse", "t", "%*%", "c", "rep", "sort", "rank", "order", "mexp", "seq", "dim")
