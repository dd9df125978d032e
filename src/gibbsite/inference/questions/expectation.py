"""Means and standard deviations of functions of numeric labels."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import checked, describe
from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.inference.questions.asked import ask
from gibbsite.inference.questions.shown import Shown
from gibbsite.models import FactorGraph
from gibbsite.results.answer import Diagnostics
from gibbsite.results.joint import numeric

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class Expectation(Shown):
    """The mean of a function of labels.

    Attributes
    ----------
    text : str
        The function.
    mean, sd : float
        Mean and standard deviation.
    error : float
        Standard error of the mean, zero if it is exact; of sampled joints an upper bound.
    diagnostics : Diagnostics
        How far to trust it.

    Examples
    --------
    >>> import gibbsite as gs
    >>> die = gs.FactorGraph({"x": [1, 2, 3, 4, 5, 6]}, [("x", [1 / 6] * 6)])
    >>> print(gs.questions.compute_expectation(die, "x"))
    E[x] = 3.5, standard deviation 1.70783
    """

    text: str
    mean: float
    sd: float
    error: float
    diagnostics: Diagnostics

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer."""
        sign = f" +- {self.error:.2g}" if self.error > 0 else ""
        yield f"E[{self.text}] = {self.mean:.6g}{sign}, standard deviation {self.sd:.6g}"


@checked
def compute_expectation(
    model: FactorGraph, function: str | Mapping[str, Mapping[Any, float]], **how: Any
) -> Expectation:
    """Return mean and standard deviation of a function of the labels of some sites, given the evidence.

    Parameters
    ----------
    model : FactorGraph
        The model, with any evidence folded in.
    function : str or mapping
        An expression of sites whose labels are numbers, such as ``"2 * days + abs(cost - 3)"``, with + - * / ** and
        abs, exp, log, sqrt, min, max; or a mapping of sites to the number of each label, which are added up.
    **how
        Further arguments of :func:`ask`, for models that are sampled.

    Examples
    --------
    >>> import gibbsite as gs
    >>> asia = gs.example("asia").observe({"xray": "yes"})
    >>> cost = {"lung": {"yes": 100.0, "no": 0.0}, "tub": {"yes": 30.0, "no": 0.0}}
    >>> round(gs.questions.compute_expectation(asia, cost).mean, 3)
    51.643
    >>> pair = gs.FactorGraph({"a": [1, 2], "b": [0, 5]}, [(("a", "b"), [[1, 1], [1, 1]])])
    >>> print(gs.questions.compute_expectation(pair, "a * b"))
    E[a * b] = 3.75, standard deviation 4.14578
    """
    if isinstance(function, Mapping):
        return _add_up(model, function, how)
    try:
        tree = ast.parse(function.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise ArgumentError(f"The function {function!r} cannot be read; write it like 2 * A + B.") from None
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(_FUNCTIONS))
    if not names:
        raise ArgumentError(f"The function {function!r} names no site; write it like 2 * A + B.")
    axes = [_numbers(model, name) for name in names]
    grid = {
        name: axis.reshape([-1 if k == at else 1 for at in range(len(names))])
        for k, (name, axis) in enumerate(zip(names, axes, strict=True))
    }
    with np.errstate(all="ignore"):
        values = np.broadcast_to(_evaluate(tree, grid, function), [axis.size for axis in axes]).astype(float)
    answer = ask(model, joints=[names], **how)
    p, errors = answer.joint(*names), answer.joint_errors(*names)
    if not np.isfinite(values[p > 0]).all():
        raise ArgumentError(f"The function {function!r} has no value for some states that are possible.")
    values = np.where(p > 0, values, 0.0)
    mean = float((p * values).sum() / p.sum())
    sd = math.sqrt(max(float((p * (values - mean) ** 2).sum() / p.sum()), 0.0))
    return Expectation(function.strip(), mean, sd, float((errors * np.abs(values - mean)).sum()), answer.diagnostics)


def _add_up(model: FactorGraph, numbers: Mapping[str, Mapping[Any, float]], how: Mapping[str, Any]) -> Expectation:
    """Return the expectation of a sum of one number for each site, from the joints of pairs."""
    values: dict[str, Floats] = {}
    for site, of_states in numbers.items():
        labels = model.evidence_labels.get(site) or model.labels(site)
        known = {str(label): float(number) for label, number in of_states.items()}
        missing = [label for label in labels if str(label) not in known]
        if missing:
            raise ArgumentError(f"The numbers of the site {site!r} leave out {missing[0]!r}; name all.")
        values[site] = np.array([known[str(label)] for label in labels])
    if not values:
        raise ArgumentError("The function is about no site; name at least one.")
    names = list(values)
    pairs = [(one, other) for k, one in enumerate(names) for other in names[k + 1 :]]
    answer = ask(model, joints=[*((name,) for name in names), *pairs], **how)
    laws = {name: answer.joint(name) for name in names}
    means = {name: float(laws[name] @ values[name]) for name in names}
    square = sum(float(laws[name] @ (values[name] - means[name]) ** 2) for name in names)
    for one, other in pairs:
        joint = answer.joint(one, other)
        square += 2.0 * float((values[one] - means[one]) @ joint @ (values[other] - means[other]))
    error = sum(float(answer.joint_errors(name) @ np.abs(values[name] - means[name])) for name in names)
    text = " + ".join(names)
    return Expectation(text, sum(means.values()), math.sqrt(max(square, 0.0)), error, answer.diagnostics)


def _numbers(model: FactorGraph, name: str) -> Floats:
    labels = model.evidence_labels.get(name) or model.labels(name)
    if not numeric(labels):
        try:
            return np.array([float(label) for label in labels])
        except ValueError:
            raise ArgumentError(
                f"The labels of the site {name!r} are not numbers but {', '.join(map(str, labels[:6]))}; give the "
                "number of each label as a mapping."
            ) from None
    return np.array(labels, float)


def _evaluate(node: ast.AST, grid: Mapping[str, Floats], text: str) -> Any:
    """Evaluate an expression of arrays; nothing but arithmetic is allowed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.Name) and node.id in grid:
        return grid[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = (_evaluate(part, grid, text) for part in (node.left, node.right))
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.operand, grid, text))
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _FUNCTIONS
        and not node.keywords
    ):
        function = _FUNCTIONS[node.func.id]
        arguments = [_evaluate(part, grid, text) for part in node.args]
        if len(arguments) == function.nin:  # type: ignore[attr-defined]
            return function(*arguments)
    raise ArgumentError(
        f"The function {text!r} has the part {ast.unparse(node)!r}, got {describe(type(node).__name__)}; allowed are "
        "sites, numbers, + - * / **, and abs, exp, log, sqrt, min(a, b), max(a, b)."
    )
