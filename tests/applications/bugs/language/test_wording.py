"""Expressions are written so that they are read as the same expression again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.applications.bugs.language.parser import PRECEDENCE, parse_expression
from gibbsite.applications.bugs.language.syntax import Call, Empty, Expression, Number, Variable
from gibbsite.applications.bugs.language.wording import name_to_latex, plain_number, to_latex, unparse

NAMES = st.sampled_from(["x", "alpha", "mu.beta", "x_y", "T", "x.bar", "N1"])
BINARY = st.sampled_from([name for name in PRECEDENCE if name not in ("neg", "!")] + ["%o%"])
LEAVES = st.one_of(
    st.floats(0, 1e300).map(Number), st.integers(0, 99).map(lambda n: Number(float(n))), NAMES.map(Variable)
)


def _larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    index = st.one_of(inner, st.just(Empty()))
    return st.one_of(
        st.tuples(BINARY, inner, inner).map(lambda parts: Call(parts[0], parts[1:])),
        st.tuples(st.sampled_from(["neg", "!"]), inner).map(lambda parts: Call(parts[0], parts[1:])),
        st.tuples(NAMES, st.lists(inner, max_size=3)).map(lambda parts: Call(parts[0], tuple(parts[1]))),
        st.tuples(NAMES, st.lists(index, min_size=1, max_size=3)).map(
            lambda parts: Variable(parts[0], tuple(parts[1]))
        ),
    )


@settings(max_examples=1000, deadline=None)
@given(st.recursive(LEAVES, _larger, max_leaves=12))
def test_written_expressions_are_read_back(expression: Expression) -> None:
    text = unparse(expression)
    assert parse_expression(text) == expression
    assert unparse(parse_expression(text)) == text
    latex = to_latex(expression)
    assert latex.count("{") == latex.count("}") and latex.count(r"\left") == latex.count(r"\right")


@pytest.mark.parametrize(
    "text",
    [
        "alpha + beta * (x[i] - x.bar)",
        "a - (b - c) - d",
        "a / (b / c) / d",
        "(-a)^b",
        "-a^b",
        "a^b^c",
        "(a^b)^c",
        "2^-1",
        "a * -b",
        "a + (!b)",
        "1:N - 1",
        "1:(N - 1)",
        "x[, 2]",
        "x[]",
        "x[,]",
        "x[1:3,]",
        "A %*% t(B[i,])",
        "(a > b) == (c > d)",
        "!a == b && c",
        "pow(x, -2)",
        "1.0E-3 * x",
    ],
)
def test_brackets_are_minimal(text: str) -> None:
    assert unparse(parse_expression(text)) == text


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("tau.c", r"\tau_{c}"),
        ("mu.beta[2]", r"\mu_{\beta,2}"),
        ("Y[i,j]", "Y_{i,j}"),
        ("x.bar", r"\bar{x}"),
        ("y_hat[i]", r"\hat{y}_{i}"),
        ("alpha0", r"\alpha_{0}"),
        ("sigma", r"\sigma"),
        ("age", r"\mathrm{age}"),
        ("Sigma[1:2,]", r"\Sigma_{1{:}2,\cdot}"),
        ("a/b", r"\frac{a}{b}"),
        ("(a+b)/2*c", r"\frac{a + b}{2} \, c"),
        ("a*(b+c)", r"a \, \left(b + c\right)"),
        ("a*-b", r"a \, \left(-b\right)"),
        ("a - -b", r"a - \left(-b\right)"),
        ("2*3", r"2 \cdot 3"),
        ("sqrt(tau)", r"\sqrt{\tau}"),
        ("pow(sigma, -2)", r"\sigma^{-2}"),
        ("exp(-x)", r"\exp\left(-x\right)"),
        ("step(x-1)", r"\mathbf{1}\left(x - 1 \geq 0\right)"),
        ("a >= b", r"a \geq b"),
        ("t(X) %*% y", r"X^{\top} \, y"),
        ("1.0E-3", "0.001"),
        ("2e-20^2", r"\left(2 \times 10^{-20}\right)^{2}"),
    ],
)
def test_latex(text: str, latex: str) -> None:
    assert to_latex(parse_expression(text)) == latex


def test_latex_is_accepted_by_a_renderer() -> None:
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    for text in ("alpha[i] + beta.c * (x[j] - x.bar) / sqrt(tau)", "!a && b <= 2", "ilogit(x[,2])", "phi(x %*% y)"):
        parser.parse(f"${to_latex(parse_expression(text))}$")


def test_numbers_are_short() -> None:
    assert [plain_number(value) for value in (3.0, -2.0, 0.1, 1e-30, 1e22)] == ["3", "-2", "0.1", "1e-30", "1e+22"]
    assert name_to_latex("x.y_z", "1") == "x_{y,z,1}"
