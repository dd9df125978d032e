"""Expressions and names of a program as text and as LaTeX."""

from __future__ import annotations

import re

from gibbsite.applications.bugs.language.parser import COMPARISON, PRECEDENCE, RANGE, precedence
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Number, Variable

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|upsilon|phi|chi|psi|"
    "omega|Gamma|Delta|Theta|Lambda|Xi|Pi|Sigma|Upsilon|Phi|Psi|Omega"
)
_ACCENTS = ("bar", "hat", "tilde")
_NEGATION, _PRODUCT, _POWER, _ATOM = PRECEDENCE["neg"], PRECEDENCE["*"], PRECEDENCE["^"], 99
_TIGHT = ("^", ":")
_RELATIONS = {
    "==": "=",
    "!=": r"\neq",
    "<": "<",
    "<=": r"\leq",
    ">": ">",
    ">=": r"\geq",
    "&&": r"\wedge",
    "||": r"\vee",
}
_FUNCTIONS = {
    name: rf"\{name}"
    for name in ("log", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "max", "min")
} | {
    "sum": r"\sum",
    "phi": r"\Phi",
    "probit": r"\Phi^{-1}",
    "loggam": r"\log\Gamma",
    "ilogit": r"\mathrm{logit}^{-1}",
    "icloglog": r"\mathrm{cloglog}^{-1}",
}


def unparse(expression: Expression | Empty) -> str:
    """Return an expression as text, with no more brackets than it needs.

    Examples
    --------
    >>> from gibbsite.applications.bugs.language.parser import parse_expression
    >>> unparse(parse_expression("(alpha+(beta*((x[i])-x.bar)))"))
    'alpha + beta * (x[i] - x.bar)'
    """
    return _text(expression)[0]


def _text(expression: Expression | Empty) -> tuple[str, int]:
    """Return an expression as text, and how tightly it binds."""
    match expression:
        case Empty():
            return "", _ATOM
        case Number(value, _, text):
            return text or plain_number(value), _NEGATION if value < 0 else _ATOM
        case Variable(name, indices):
            return name if indices is None else f"{name}[{_listed(indices)}]", _ATOM
        case Call("neg" | "!" as name, (inner,)):
            least = PRECEDENCE[name]
            return ("-" if name == "neg" else "!") + _within(inner, least), least
        case Call(name, (left, right)) if (level := precedence(name)) is not None:
            blank = "" if name in _TIGHT else " "
            before, after = _levels(level)
            return f"{_within(left, before)}{blank}{name}{blank}{_within(right, after)}", level
        case Call(name, arguments):
            return f"{name}({_listed(arguments)})", _ATOM


def _levels(level: int) -> tuple[int, int]:
    """Return how tightly the left and the right operand of an operator bind at least, without brackets."""
    if level == _POWER:
        return level + 1, _NEGATION
    return (level + 1 if level in (COMPARISON, RANGE) else level), level + 1


def _within(expression: Expression | Empty, least: int) -> str:
    text, level = _text(expression)
    return text if level >= least else f"({text})"


def _listed(parts: tuple[Expression | Empty, ...]) -> str:
    if len(parts) > 1 and all(isinstance(part, Empty) for part in parts):
        return "," * (len(parts) - 1)
    return ", ".join(map(unparse, parts)).removesuffix(" ")


def plain_number(value: float) -> str:
    """Return a number with the fewest digits that give it back, whole numbers without a point.

    Examples
    --------
    >>> plain_number(3.0), plain_number(0.1), plain_number(1e-30)
    ('3', '0.1', '1e-30')
    """
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(float(value))


def to_latex(expression: Expression | Empty) -> str:
    r"""Return an expression as LaTeX, for the mathematics mode.

    Examples
    --------
    >>> from gibbsite.applications.bugs.language.parser import parse_expression
    >>> print(to_latex(parse_expression("alpha[i] + beta.c * (x[j] - x.bar) / sqrt(tau)")))
    \alpha_{i} + \frac{\beta_{c} \, \left(x_{j} - \bar{x}\right)}{\sqrt{\tau}}
    """
    return _latex(expression)[0]


def name_to_latex(name: str, *indices: str) -> str:
    r"""Return the name of a variable as LaTeX, with texts as its indices.

    Examples
    --------
    >>> print(name_to_latex("tau.c"), name_to_latex("mu.beta", "2"), name_to_latex("x.bar"), name_to_latex("theta0"))
    \tau_{c} \mu_{\beta,2} \bar{x} \theta_{0}
    """
    words = [word for part in re.split(r"[._]+", name) if part for word in re.findall(r"[A-Za-z]+|[0-9]+", part)]
    letter = _word(words[0])
    below: list[str] = []
    for word in words[1:]:
        if word in _ACCENTS and not below:
            letter = rf"\{word}{{{letter}}}"
        else:
            below.append(_word(word))
    below.extend(indices)
    return f"{letter}_{{{','.join(below)}}}" if below else letter


def _word(word: str) -> str:
    if _GREEK.fullmatch(word):
        return f"\\{word}"
    return word if len(word) == 1 or word.isdigit() else rf"\mathrm{{{word}}}"


def _latex(expression: Expression | Empty) -> tuple[str, int]:
    """Return an expression as LaTeX, and how tightly it binds."""
    match expression:
        case Empty():
            return r"\cdot", _ATOM
        case Number(value):
            return _latex_number(value)
        case Variable(name, indices):
            return name_to_latex(name, *map(to_latex, indices or ())), _ATOM
        case Call("neg" | "!" as name, (inner,)):
            least = PRECEDENCE[name]
            return ("-" if name == "neg" else r"\neg ") + _bracketed(inner, least), least
        case Call("/", (left, right)):
            return rf"\frac{{{to_latex(left)}}}{{{to_latex(right)}}}", _PRODUCT
        case Call("^" | "pow", (left, right)):
            return f"{_bracketed(left, _POWER + 1)}^{{{to_latex(right)}}}", _POWER
        case Call(name, (left, right)) if (level := precedence(name)) is not None:
            return _latex_operator(name, left, right, level), level
        case Call(name, arguments):
            return _latex_call(name, arguments)


def _latex_operator(name: str, left: Expression | Empty, right: Expression | Empty, level: int) -> str:
    before, after = _levels(level)
    first, second = _bracketed(left, before), _bracketed(right, after)
    if second.startswith("-") and level > COMPARISON:
        second = rf"\left({second}\right)"
    if name in ("*", "%*%"):
        sign = r"\cdot" if second[0].isdigit() else r"\,"
    elif name == ":":
        return f"{first}{{:}}{second}"
    elif name.startswith("%"):
        sign = rf"\mathbin{{\mathrm{{{re.sub('[^A-Za-z0-9]', '', name) or 'op'}}}}}"
    else:
        sign = _RELATIONS.get(name, name)
    return f"{first} {sign} {second}"


def _latex_call(name: str, arguments: tuple[Expression | Empty, ...]) -> tuple[str, int]:
    match name, arguments:
        case "sqrt", (inner,):
            return rf"\sqrt{{{to_latex(inner)}}}", _ATOM
        case "abs", (inner,):
            return rf"\left|{to_latex(inner)}\right|", _ATOM
        case "t", (inner,):
            return rf"{_bracketed(inner, _POWER + 1)}^{{\top}}", _POWER
        case "inverse", (inner,):
            return f"{_bracketed(inner, _POWER + 1)}^{{-1}}", _POWER
        case "equals", (left, right):
            return rf"\mathbf{{1}}\left({to_latex(left)} = {to_latex(right)}\right)", _ATOM
        case "step", (inner,):
            return rf"\mathbf{{1}}\left({to_latex(inner)} \geq 0\right)", _ATOM
    inside = ", ".join(map(to_latex, arguments))
    shown = _FUNCTIONS.get(name) or rf"\mathrm{{{re.sub('[._]+', '.', name)}}}"
    return rf"{shown}\left({inside}\right)", _ATOM


def _bracketed(expression: Expression | Empty, least: int) -> str:
    text, level = _latex(expression)
    return text if level >= least else rf"\left({text}\right)"


def _latex_number(value: float) -> tuple[str, int]:
    mantissa, _, exponent = plain_number(value).partition("e")
    if not exponent:
        return mantissa.replace("inf", r"\infty"), _NEGATION if value < 0 else _ATOM
    power = f"10^{{{int(exponent)}}}"
    if mantissa == "1":
        return power, _POWER
    return rf"{mantissa} \times {power}", _PRODUCT
