"""Programs in the BUGS language are read as JAGS reads them, and refused with line and column."""

from __future__ import annotations

import time

import pytest

from gibbsite.applications.bugs.language.parser import parse, parse_expression
from gibbsite.applications.bugs.language.syntax import Call, Empty, Logical, Loop, Number, Place, Stochastic, Variable
from gibbsite.errors import ModelError

RATS = """
var x[T], Y[N, T], mu[N,T], tau.c;  # declarations
data { T.half <- T / 2 }
model
{
  /* growth
     curves */
  for (i in 1:N) {
    for (j in 1:T) {
      Y[i,j] ~ dnorm(mu[i,j], tau.c)
      mu[i, j] <- alpha[i] + beta[i] * (x[j] - x.bar);
    }
    logit(p[i]) = alpha[i]
    beta[i] ~ dnorm(0, 1.0E-3)T(0,)
  }
  tau.c ~ dgamma(.001, 1e6); sigma <- 1 / sqrt(tau.c)
}
"""


def x(name: str) -> Variable:
    return Variable(name)


def test_a_program_with_all_parts() -> None:
    program = parse(RATS)
    assert [(one.name, one.dimensions) for one in program.declarations] == [
        ("x", (x("T"),)),
        ("Y", (x("N"), x("T"))),
        ("mu", (x("N"), x("T"))),
        ("tau.c", ()),
    ]
    assert program.data == (Logical(x("T.half"), Call("/", (x("T"), Number(2.0)))),)
    loop, tau, sigma = program.model
    assert isinstance(loop, Loop) and loop.counter == "i" and loop.range == Call(":", (Number(1.0), x("N")))
    inner, p, beta = loop.body
    assert isinstance(inner, Loop) and len(inner.body) == 2
    assert inner.body[0] == Stochastic(
        Variable("Y", (x("i"), x("j"))), Call("dnorm", (Variable("mu", (x("i"), x("j"))), x("tau.c")))
    )
    assert p == Logical(Variable("p", (x("i"),)), Variable("alpha", (x("i"),)), "logit")
    assert isinstance(beta, Stochastic) and (beta.bounded, beta.lower, beta.upper) == ("T", Number(0.0), None)
    assert tau == Stochastic(x("tau.c"), Call("dgamma", (Number(0.001), Number(1e6))))
    assert sigma == Logical(x("sigma"), Call("/", (Number(1.0), Call("sqrt", (x("tau.c"),)))))


def test_places_are_lines_and_columns() -> None:
    loop = parse(RATS).model[0]
    assert isinstance(loop, Loop) and loop.at == Place(8, 3)
    inner = loop.body[0]
    assert isinstance(inner, Loop)
    relation = inner.body[0]
    assert isinstance(relation, Stochastic)
    assert (relation.at, relation.distribution.at) == (Place(10, 7), Place(10, 16))
    windows = "\ufeff" + RATS.replace("\n", "\r\n")
    assert parse(windows) == parse(RATS) == parse(RATS.replace("\n", "\r"))
    assert parse(windows).model[0].at == Place(8, 3)
    assert parse(RATS.replace("  ", "\t")) == parse(RATS)


# The same numbers are what JAGS 4.3 gives for these expressions.
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2^3^2", "2^(3^2)"),
        ("2**3", "2^3"),
        ("-2^2", "-(2^2)"),
        ("2^-1^2", "2^(-(1^2))"),
        ("2^-a*b", "(2^(-a))*b"),
        ("1:N-1", "(1:N)-1"),
        ("1:3*2-1", "((1:3)*2)-1"),
        ("-1:3", "(-1):3"),
        ("2:3^2", "2:(3^2)"),
        ("-a%*%b", "(-a)%*%b"),
        ("a*b%*%c", "a*(b%*%c)"),
        ("8/2/2*3-1-1", "((((8/2)/2)*3)-1)-1"),
        ("2*-2+1", "(2*(-2))+1"),
        ("1+2>2", "(1+2)>2"),
        ("a>1&&b||c", "((a>1)&&b)||c"),
        ("a||b&&c", "a||(b&&c)"),
        ("!a==b&&c", "(!(a==b))&&c"),
        ("1+!a&&b", "(1+(!a))&&b"),
        ("+3-+2", "3-2"),
        ("1:3==1:3", "(1:3)==(1:3)"),
    ],
)
def test_precedence_is_that_of_r(text: str, same: str) -> None:
    assert parse_expression(text) == parse_expression(same)


def test_operators_are_functions() -> None:
    assert parse_expression("-a - !b") == Call("-", (Call("neg", (x("a"),)), Call("!", (x("b"),))))
    for name in ("+", "-", "*", "/", "^", ":", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "%*%", "%/%"):
        assert parse_expression(f"a {name} b") == Call(name, (x("a"), x("b")))


def test_indices() -> None:
    assert parse_expression("x[]") == Variable("x", (Empty(),))
    assert parse_expression("x[,2]") == Variable("x", (Empty(), Number(2.0)))
    assert parse_expression("x[,]") == Variable("x", (Empty(), Empty()))
    assert parse_expression("x[g[i]+1, 1:K]") == Variable(
        "x", (Call("+", (Variable("g", (x("i"),)), Number(1.0))), Call(":", (Number(1.0), x("K"))))
    )


@pytest.mark.parametrize("number", ["1.0E-3", ".5", "1e6", "2.", "1.e1", "7E+2", "0"])
def test_numbers(number: str) -> None:
    found = parse_expression(number)
    assert found == Number(float(number)) and isinstance(found, Number) and found.text == number


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ("T(0,)", ("T", "0", None)),
        (" T ( , 1 )", ("T", None, "1")),
        ("T(,)", ("T", None, None)),
        ("I(a, b)", ("I", "a", "b")),
        ("C(a, )", ("I", "a", None)),
        ("%_% I(0,)", ("I", "0", None)),
        ("", (None, None, None)),
    ],
)
def test_bounds(bounds: str, found: tuple[str | None, ...]) -> None:
    (relation,) = parse(f"model {{ y ~ dnorm(mu, tau){bounds} }}").model
    assert isinstance(relation, Stochastic) and relation.bounded == found[0]
    assert [relation.lower, relation.upper] == [None if one is None else parse_expression(one) for one in found[1:]]


def test_letters_of_bounds_are_names_elsewhere() -> None:
    program = parse("model { y ~ dnorm(0, 1) T <- 2 z ~ dnorm(0, T) I ~ dflat() C[1] <- T[2] + I }")
    assert [getattr(one, "bounded", None) for one in program.model] == [None] * 5
    assert [one.target.name for one in program.model if not isinstance(one, Loop)] == ["y", "T", "z", "I", "C"]


def test_habits_of_old_programs() -> None:
    assert len(parse("model line; { a <- 1;; b = 2; }").model) == 2
    assert len(parse("model{a<-1 b<-2 c~dflat()}").model) == 3
    assert parse("model { for (i in x) { } }").model == (Loop("i", x("x"), ()),)
    assert parse("model { a <- 1 } # no line break at the end").model
    assert parse("# first\nmodel\n\n{ a <- f(b,\n c) }").model


REFUSED = [
    ("", "Line 1, column 1: expected model { with the relations of the model, found the end of the text."),
    ("data { a <- 1 }", "Line 1, column 16: expected model {"),
    ("model {\n a <- 1\n", "Line 3, column 1: expected a closing brace } for the brace { of line 1, column 7"),
    ("model { for (i in 1:2) { a <- 1 }", "for the brace { of line 1, column 7, found the end of the text."),
    (
        "model { a <- 1 }}",
        "column 17: expected the end of the text after the model, found }; this brace closes nothing.",
    ),
    ("model {\n\n  y[i ~ dnorm(0, 1)\n}", "Line 3, column 7: expected a comma or a closing bracket ], found ~."),
    ("model { a <- (1 + 2 }", "expected an operator or a closing parenthesis ), found }."),
    ("x ~ dnorm(0, 1)", "the relations of a model stand between model { and }."),
    ("library(rjags)", "column 1: expected model {, data { or var, found library; this looks like R code"),
    ("function(x) x", "this looks like R code"),
    ("modle { }", "perhaps model is meant."),
    ("model { } list(N = 3)", "data and initial values belong into files of their own."),
    ("model { } model { }", "column 11: found a second model block; expected only one."),
    ("model { in <- 2 }", "found in, which is a word of the language and cannot name a variable."),
    ("model { a <- data[1] }", "found data, which is a word of the language"),
    ("model { α ~ dnorm(0, 1) }", "column 9: found α (greek small letter alpha); names, numbers and operators"),
    ("model { a\u00a0<- 1 }", "column 10: found a no-break space"),
    ("model { a <- \u20131 }", "en dash"),
    ("model { a <- '1' }", "found the quotation mark '"),
    ("model { \0 }", "found a NUL character; this is a binary file"),
    ("model { _a <- 1 }", "found _; expected a name, which begins with a letter, or a number."),
    ("model { a <- x % y }", "found %; expected an operator such as %*%."),
    ("model { /* a }", "column 9: the comment that begins here with /* has no closing */."),
    ("model { a <- 1e999 }", "the number 1e999 is too large."),
    ("model { a <- 1 < 2 < 3 }", "column 20: expected a bracket around one of two operators in a row, found <."),
    ("model { a <- step(x<-1) }", "found <-; write x < -1 with a blank to compare."),
    ("model { a <- ifelse(x = 1, 2, 3) }", "found =; write == to compare."),
    ("model { a <- if (x) 2 else 3 }", "found if, which is R code; a model has ifelse(condition, x, y)."),
    ("model { a ~ b }", "expected ( with the parameters of b, found }; ~ is followed by a distribution."),
    ("model { a ~ 2 }", "expected a distribution such as dnorm, found 2."),
    ("model { a ~ dnorm(0 1) }", "expected a comma or a closing parenthesis ), found 1."),
    ("model { a <- c(1,) }", "expected an expression, found )."),
    ("model { logit(p) ~ dnorm(0, 1) }", "expected <- after the link function logit, found ~"),
    ("model { f(p) <- 1 }", "found the function f; only log, logit, probit and cloglog may be on the left of <-."),
    ("model { y ~ dnorm(0, 1)T(0) }", "expected a comma between the bounds of T, found )."),
    ("model { y ~ dnorm(0, 1) %_% 3 }", "expected I( after %_%, found 3."),
    ("model { for i in 1:3 { } }", "expected ( after for, found i."),
    ("model { for (i = 1:3) { } }", "expected in after the counter of the loop, found =."),
    ("model { for (i in 1:3) a[i] <- 1 }", "expected { with the relations of the loop, found a."),
    ("var x, x; model { }", "x is declared twice, first at line 1, column 5."),
    ("model { a <- 2x }", "expected <-, = or ~, found }."),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_mistakes_are_refused_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("Line ") and str(caught.value).endswith(".")
    with pytest.raises(ModelError, match=r"^rats\.bug, line \d+, column \d+: "):
        parse(text, "rats.bug")


@pytest.mark.parametrize(
    "text", ["(" * 10**6, "-" * 10**6, "2^" * 10**6, "f(" * 10**6, "x[" * 10**6, "!" * 10**6, "a+(" * 10**6]
)
def test_deep_expressions_are_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ModelError, match="nested too deeply"):
        parse(f"model {{ a <- {text}")
    assert time.process_time() - start < 2


def test_deep_loops_and_long_sums_are_refused() -> None:
    with pytest.raises(ModelError, match="nested too deeply"):
        parse("model { " + "for (i in 1:2) { " * 10**5)
    with pytest.raises(ModelError, match="more than 200 operations in a row"):
        parse("model { a <- " + "b + " * 10**5 + "1 }")
    mixed = "+1" * 150
    with pytest.raises(ModelError, match="more than 200 operations in a row"):
        parse(f"model {{ a <- f(1{mixed}){mixed} }}")
    assert parse("model { a <- " + "b + " * 190 + "1 }").model


def test_millions_of_characters() -> None:
    relations = "".join(f"y[{i}] ~ dnorm(mu[{i}], tau.c)\n" for i in range(50_000))
    assert len(parse(f"model {{ {relations} }}").model) == 50_000
    for text in (
        "model { a <- " + "x" * 10**7 + " b",
        "#" * 10**7,
        " " * 10**7,
        "model { a <- " + "9" * 10**7,
        "%" * 10**7,
    ):
        with pytest.raises(ModelError) as caught:
            parse(text)
        assert len(str(caught.value)) < 200
