"""From the text of a program in the BUGS language, in the dialects of JAGS and WinBUGS, to its tree.

Operators have the precedence of R: ``^`` and ``**`` bind tightest, from right to left; then unary minus, ``:``, ``%*%``
and other operators between percent signs, ``*`` and ``/``, ``+`` and ``-``, comparisons, ``!``, ``&&`` and ``||``. So
``1:N-1`` is ``(1:N) - 1``, as in JAGS.
"""

from __future__ import annotations

import math
from typing import NoReturn

from gibbsite._common.wording import nearest
from gibbsite.applications.bugs.language.syntax import (
    Call,
    Declaration,
    Empty,
    Expression,
    Logical,
    Loop,
    Number,
    Program,
    Relation,
    Stochastic,
    Variable,
)
from gibbsite.applications.bugs.language.tokens import KEYWORDS, Text, Token

LINKS = ("log", "logit", "probit", "cloglog")
"""Functions that may be on the left of ``<-``."""

_LEVELS = (
    ("||",),
    ("&&",),
    ("!",),
    ("==", "!=", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/"),
    ("%*%",),
    (":",),
    ("neg",),
    ("^",),
)
PRECEDENCE = {name: level for level, names in enumerate(_LEVELS, 1) for name in names}
"""How tightly operators bind; see :func:`precedence`."""

COMPARISON, RANGE = PRECEDENCE["=="], PRECEDENCE[":"]

_NESTED = 100  # deepest nesting of operands, brackets and loops
_HIGH = 200  # longest path from the top of an expression to its leaves
_BOUNDS = {"T": "T", "I": "I", "C": "I"}
_R_WORDS = ("if", "while", "repeat", "function")
_PAIRS = {")": ("parenthesis", "("), "]": ("bracket", "["), "}": ("brace", "{")}


def precedence(function: str) -> int | None:
    """Return how tightly an operator binds, None for functions that are no operators."""
    return PRECEDENCE["%*%"] if function.startswith("%") else PRECEDENCE.get(function)


def parse(text: str, source: str = "") -> Program:
    """Read a program.

    Parameters
    ----------
    text : str
        The program: declarations after ``var``, a block ``data { }`` and a block ``model { }``; only the last is
        needed.
    source : str, optional
        Name of the file, for messages.

    Returns
    -------
    Program
        The tree.

    Raises
    ------
    ModelError
        With line and column, what was found and what was expected.

    Examples
    --------
    >>> program = parse("model { for (i in 1:3) { y[i] ~ dnorm(mu, tau) } mu ~ dnorm(0, 1.0E-3) }")
    >>> [type(relation).__name__ for relation in program.model]
    ['Loop', 'Stochastic']
    """
    return _Parser(Text(text, source)).program()


def parse_expression(text: str, source: str = "") -> Expression:
    """Read a single expression, such as ``x[i, 2]``.

    Examples
    --------
    >>> parse_expression("tau.c").name
    'tau.c'
    """
    parser = _Parser(Text(text, source))
    expression = parser.expression()
    if parser.token.kind != "end":
        parser.expected("an operator or the end of the expression")
    return expression


class _Parser:
    """One token at a time; ``token`` is the next one that has not been used."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.tokens = text.tokens()
        self.token = next(self.tokens)
        self.after: Token | None = None
        self.depth = 0
        self.high = 0  # height of the highest argument or index of the call or variable that is being read

    # words

    def advance(self) -> Token:
        """Return the next token and go on to the one after it."""
        used = self.token
        self.token, self.after = self.after or next(self.tokens), None
        return used

    def peek(self) -> Token:
        """Return the token after the next one."""
        if self.after is None:
            self.after = next(self.tokens) if self.token.kind != "end" else self.token
        return self.after

    def sees(self, *texts: str) -> bool:
        return self.token.text in texts

    def skips(self, text: str) -> bool:
        """Go on if the next token has this text; return whether it has."""
        if self.token.text != text:
            return False
        self.advance()
        return True

    def expected(self, what: str) -> NoReturn:
        """Refuse the next token in an expression."""
        hint = {"<-": "; write x < -1 with a blank to compare", "=": "; write == to compare"}.get(self.token.text, "")
        raise self.text.error(f"expected {what}, found {self.token}{hint}.", self.token.start)

    def need(self, text: str, what: str) -> Token:
        if self.token.text != text:
            raise self.text.error(f"expected {what}, found {self.token}.", self.token.start)
        return self.advance()

    def close(self, text: str, opened: Token, otherwise: str = "") -> None:
        """Use up a closing bracket; ``otherwise`` is what could also follow."""
        noun, opening = _PAIRS[text]
        if not self.sees(text):
            self.unclosed(f"{otherwise}a closing {noun} {text}", f"{noun} {opening}", opened)
        self.advance()

    def unclosed(self, what: str, bracket: str, opened: Token) -> NoReturn:
        place = self.text.place(opened.start)
        far = self.token.kind == "end" or place.line != self.text.place(self.token.start).line
        what += f" for the {bracket} of {place}" if far else ""
        self.expected(what)

    def name(self, what: str) -> Token:
        """Return the next token, which must be a name."""
        if self.token.kind == "name" and self.token.text in KEYWORDS:
            raise self.text.error(
                f"expected {what}, found {self.token}, which is a word of the language and cannot name a variable.",
                self.token.start,
            )
        if self.token.kind != "name":
            self.expected(what)
        return self.advance()

    def deeper(self) -> None:
        """Count a bracket or loop that is entered."""
        self.depth += 1
        if self.depth > _NESTED:
            raise self.text.error(
                f"brackets and loops are nested too deeply, more than {_NESTED} levels; simplify the model.",
                self.token.start,
            )

    # blocks

    def program(self) -> Program:
        declarations: dict[str, Declaration] = {}
        blocks: dict[str, tuple[Relation, ...]] = {}
        while self.token.kind != "end":
            if self.sees("var"):
                self.declarations(declarations)
            elif self.sees("data", "model"):
                self.block(blocks)
            else:
                self.outside(blocks)
        if "model" not in blocks:
            raise self.text.error(
                "expected model { with the relations of the model, found the end of the text.", self.token.start
            )
        return Program(tuple(declarations.values()), blocks.get("data", ()), blocks["model"])

    def outside(self, blocks: dict[str, tuple[Relation, ...]]) -> NoReturn:
        """Refuse text outside of the blocks."""
        start, what, found = self.token.start, "model {, data { or var", str(self.token)
        if "model" in blocks:
            hint = "; this brace closes nothing" if found == "}" else ""
            hint = "; data and initial values belong into files of their own" if found in ("list", "inits") else hint
            raise self.text.error(f"expected the end of the text after the model, found {found}{hint}.", start)
        near = nearest(found, ["model", "data"]) if self.token.kind == "name" else None
        hint = f"; perhaps {near} is meant." if near else "; the relations of a model stand between model { and }."
        if not near and self.token.kind == "name" and (found == "function" or self.peek().text == "("):
            hint = "; this looks like R code instead of a model."
        raise self.text.error(f"expected {what}, found {found}{hint}", start)

    def declarations(self, known: dict[str, Declaration]) -> None:
        self.advance()
        while True:
            name = self.name("the name of a variable")
            if name.text in known:
                raise self.text.error(f"{name} is declared twice, first at {known[name.text].at}.", name.start)
            dimensions: list[Expression] = []
            if self.sees("["):
                opened = self.advance()
                dimensions.append(self.expression())
                while self.skips(","):
                    dimensions.append(self.expression())
                self.close("]", opened)
            known[name.text] = Declaration(name.text, tuple(dimensions), self.text.place(name.start))
            if not self.skips(","):
                break
        self.skips(";")

    def block(self, blocks: dict[str, tuple[Relation, ...]]) -> None:
        word = self.advance()
        if word.text in blocks:
            raise self.text.error(f"found a second {word} block; expected only one.", word.start)
        if word.text == "model" and self.token.kind == "name":
            self.name("{ or the name of the model")
        self.skips(";")
        blocks[word.text] = self.braces(f"{{ after {word}")

    def braces(self, what: str) -> tuple[Relation, ...]:
        """Return the relations between braces."""
        opened = self.need("{", what)
        relations = []
        while not self.sees("}"):
            if self.token.kind == "end":
                self.unclosed("a closing brace }", "brace {", opened)
            if not self.skips(";"):
                relations.append(self.relation())
        self.advance()
        return tuple(relations)

    # relations

    def relation(self) -> Relation:
        if self.sees("for"):
            return self.loop()
        start = self.token
        if start.kind != "name" or start.text in KEYWORDS:
            what = "a relation, for or a closing brace }"
            if start.kind == "name":
                self.name(what)
            raise self.text.error(f"expected {what}, found {start}.", start.start)
        self.advance()
        at = self.text.place(start.start)
        link = None
        if self.sees("("):
            if start.text not in LINKS:
                raise self.text.error(
                    f"expected a relation such as x <- ... or x ~ ..., found the function {start}; only "
                    f"{', '.join(LINKS[:-1])} and {LINKS[-1]} may be on the left of <-.",
                    start.start,
                )
            link, opened = start.text, self.advance()
            target = self.variable(self.name("the variable of a link function"))
            self.close(")", opened)
        else:
            target = self.variable(start)
        if self.sees("~") and link is None:
            self.advance()
            return self.stochastic(target)
        if self.sees("~"):
            raise self.text.error(
                f"expected <- after the link function {link}, found ~; give the variable itself a distribution.",
                self.token.start,
            )
        if not self.sees("<-", "="):
            raise self.text.error(f"expected <-{'' if link else ', = or ~'}, found {self.token}.", self.token.start)
        self.advance()
        return Logical(target, self.expression(), link, at)

    def stochastic(self, target: Variable) -> Stochastic:
        name = self.name("a distribution such as dnorm")
        if not self.sees("("):
            raise self.text.error(
                f"expected ( with the parameters of {name}, found {self.token}; ~ is followed by a distribution.",
                self.token.start,
            )
        distribution = self.call(name)
        pasted = self.token if self.skips("%_%") else None  # models written as functions of S have it before I
        if not (self.sees(*_BOUNDS) and self.peek().text == "("):  # else T, I or C is a variable of the next relation
            if pasted:
                self.expected("I( after %_%")
            return Stochastic(target, distribution, at=target.at)
        word = self.advance()
        opened = self.advance()
        lower = None if self.sees(",") else self.expression()
        self.need(",", f"a comma between the bounds of {word}")
        upper = None if self.sees(")") else self.expression()
        self.close(")", opened)
        return Stochastic(target, distribution, _BOUNDS[word.text], lower, upper, target.at)

    def loop(self) -> Loop:
        self.deeper()
        word = self.advance()
        opened = self.need("(", "( after for")
        counter = self.name("the counter of the loop")
        self.need("in", "in after the counter of the loop")
        values = self.expression()
        self.close(")", opened)
        body = self.braces("{ with the relations of the loop")
        self.depth -= 1
        return Loop(counter.text, values, body, self.text.place(word.start))

    # expressions

    def expression(self) -> Expression:
        return self.operation(1)[0]

    def operation(self, least: int) -> tuple[Expression, int]:
        """Return an expression of operators that bind at least as tightly as ``least``, and its height."""
        self.deeper()
        left, height = self.operand()
        while True:
            token = self.token
            if token.kind not in ("operator", "special") or token.text == "!":
                break
            name = "^" if token.text == "**" else token.text
            level = precedence(name)
            if level is None or level < least:
                break
            self.advance()
            right, other = self.operation(level if name == "^" else level + 1)
            left, height = Call(name, (left, right), self.text.place(token.start)), max(height, other) + 1
            if height > _HIGH:
                raise self.text.error(
                    f"this expression has more than {_HIGH} operations in a row; use sum() or several relations.",
                    token.start,
                )
            if level in (COMPARISON, RANGE) and precedence(self.token.text) == level:
                raise self.text.error(
                    f"expected a bracket around one of two operators in a row, found {self.token}.", self.token.start
                )
        self.depth -= 1
        return left, height

    def operand(self) -> tuple[Expression, int]:
        """Return a number, a variable, a call, an expression in brackets, or one of these after a sign."""
        token = self.token
        if token.kind == "number":
            self.advance()
            value = float(token.text)
            if math.isinf(value):
                raise self.text.error(f"the number {token} is too large.", token.start)
            return Number(value, self.text.place(token.start), token.text), 1
        if token.kind == "name":
            self.name("an expression")
            return self.named(token)
        if self.sees("-", "+", "!"):
            self.advance()
            name = "!" if token.text == "!" else "neg"
            inner, height = self.operation(PRECEDENCE[name])
            if token.text == "+":
                return inner, height
            return Call(name, (inner,), self.text.place(token.start)), height + 1
        if not self.sees("("):
            self.expected("an expression")
        opened = self.advance()
        inside = self.operation(1)
        self.close(")", opened, "an operator or ")
        return inside

    def named(self, name: Token) -> tuple[Expression, int]:
        """Return the variable or call that begins with a name that has been used up."""
        before = self.high
        self.high = 0
        found = self.call(name) if self.sees("(") else self.variable(name)
        height, self.high = self.high + 1, before
        return found, height

    def part(self) -> Expression:
        """Return an argument or an index."""
        expression, height = self.operation(1)
        self.high = max(self.high, height)
        return expression

    def call(self, name: Token) -> Call:
        if name.text in _R_WORDS:
            raise self.text.error(f"found {name}, which is R code; a model has ifelse(condition, x, y).", name.start)
        opened = self.advance()
        arguments: list[Expression] = []
        while not self.sees(")"):
            arguments.append(self.part())
            if not self.skips(","):
                break
            if self.sees(")"):
                self.expected("an expression")
        self.close(")", opened, "a comma or ")
        return Call(name.text, tuple(arguments), self.text.place(name.start))

    def variable(self, name: Token) -> Variable:
        """Return the variable of a name that has been used up, with the indices that follow."""
        at = self.text.place(name.start)
        if not self.sees("["):
            return Variable(name.text, None, at)
        opened = self.advance()
        indices: list[Expression | Empty] = []
        while True:
            if self.sees(",", "]"):
                indices.append(Empty(self.text.place(self.token.start)))
            else:
                indices.append(self.part())
            if not self.skips(","):
                break
        self.close("]", opened, "a comma or ")
        return Variable(name.text, tuple(indices), at)
