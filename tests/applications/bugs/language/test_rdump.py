"""Dumps of R and data for WinBUGS are read with the meaning that those programs give them, or refused."""

from __future__ import annotations

import time
from math import inf, nan

import numpy as np
import pytest

from gibbsite.applications.bugs.language.rdump import parse_dump
from gibbsite.errors import FormatError

DUMP = """# data
"N" <- 3L
`x.bar` = -22.5; y <-
c(1, 2.5e-1,   # a remark, with "quotes"
  NA, -.5, 1:3,
  c(4L, c(5)), Inf, NA_real_, TRUE)
"M" <-
structure(c(1, 2, 3, 4, 5, 6), .Dim = c(3L, 2L), .Dimnames = list(
    NULL, c("a #1", "b)")))
k <- structure(.Data = 1:8, .Dim = c(2, 2, 2))
named <- c(a = 1, b = 2)
names.only <- structure(c(1, 2), .Names = c("a", "b"))
down <- 3:-1
int <- as.integer(c(1, 2))
none <- numeric(0)
hex <- 0x1.8p1
group <- structure(c(1L, 2L), .Label = c("old", "new"), class = "factor")
"""


def values(text: str) -> dict[str, object]:
    return {name: value.tolist() for name, value in parse_dump(text, "data.R")[0].items()}


def test_a_dump_of_r() -> None:
    found = values(DUMP)
    y = found.pop("y")
    np.testing.assert_array_equal(y, [1, 0.25, nan, -0.5, 1, 2, 3, 4, 5, inf, nan, 1])
    assert found == {
        "N": 3.0,
        "x.bar": -22.5,
        "M": [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]],
        "k": np.arange(1.0, 9.0).reshape((2, 2, 2), order="F").tolist(),
        "named": [1.0, 2.0],
        "names.only": [1.0, 2.0],
        "down": [3.0, 2.0, 1.0, 0.0, -1.0],
        "int": [1.0, 2.0],
        "none": [],
        "hex": 3.0,
        "group": [1.0, 2.0],
    }


def test_data_for_winbugs_are_row_by_row() -> None:
    text = "list(N = 5, x = c(8, 15, NA), Y = structure(\n.Data = c(1, 2, 3,\n 4, 5, 6), .Dim = c(2, 3)))"
    found = values(text)
    np.testing.assert_array_equal(found.pop("x"), [8, 15, nan])
    assert found == {"N": 5.0, "Y": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
    assert values("list(a = 1)\nlist(b = 2)") == {"a": 1.0, "b": 2.0}
    # what R writes with dput is column by column, as everything of R
    assert values("list(x = structure(c(1, 2, 3, 4), .Dim = c(2L, 2L)))") == {"x": [[1.0, 3.0], [2.0, 4.0]]}


def test_arrays_may_be_empty() -> None:
    found, _ = parse_dump("x <- structure(c(), .Dim = c(0L, 3L)); y <- c()", "data.R")
    assert found["x"].shape == (0, 3) and found["y"].shape == (0,)


def test_texts_are_reported() -> None:
    found, texts = parse_dump('".RNG.name" <- "base::Wichmann-Hill"\n".RNG.seed" <- 3', "init.R")
    assert texts == {".RNG.name"} and found[".RNG.seed"] == 3


REFUSED = [
    ("x <- rnorm(5)", ":1:6: found rnorm(, which cannot be read; a dump holds numbers, c(...) and structure(...)"),
    ("library(rjags)\n", ":1:8: expected <- or =, found (; this is R code instead of a file that dump wrote."),
    ("x <- 1\nfor (i in 1:3) x[i] <- i", ":2:5: expected <- or ="),
    ("x <- y", "expected a number, c( or structure(, found y; a dump holds numbers, not R code."),
    ("x <- 1 / 3", ":1:8: expected the end of the value, found /; a dump holds numbers, not formulas."),
    ("x <- 2 * c(1, 2)", "found *; a dump holds numbers"),
    ("x <- c(1, 2", ":1:12: expected a comma or a closing parenthesis ), found the end of the file."),
    ("x <- c(1 2)", "expected a comma or a closing parenthesis ), found 2."),
    ("x <- c(1,)", "expected a number, c( or structure(, found )."),
    ("x <- c(1, 'a')", "found 'a'; texts cannot be data of a model."),
    ("x <- list(a = 1)", "found list(, which cannot be read; a list or data frame cannot be the value of a variable."),
    ("x <- 1\n\n x <- 2", ":3:2: x is given twice, first on line 1."),
    ("x <- 1:1000000000", ":1:7: the ranges of this file have more than 50,000,000 numbers together."),
    ("x <- c(1:30000000, 1:30000000)", "more than 50,000,000 numbers together."),
    ("x <- numeric(1e300)", "more than 50,000,000 numbers together."),
    ("x <- -1e308:1e308", "more than 50,000,000 numbers together."),
    ("x <- 1:NA", "a range has one finite number on each side of the colon."),
    ("x <- numeric(-1)", "expected a single size"),
    ("x <- 1e999", "the number 1e999 is too large."),
    ("x <- c(1e999, 2)", "a number of this vector is too large."),
    ("x <- structure(c(1, 2, 3), .Dim = c(2, 2))", ":1:28: the dimensions 2 x 2 need 4 numbers, found 3."),
    ("x <- structure(1:4, .Dim = c(2, NA))", "the dimensions of an array are whole numbers of at least 0"),
    ("x <- structure(1:4, .Dim = c(-2, -2))", "the dimensions of an array are whole numbers of at least 0"),
    ("x <- structure(1:4, .Dim = c(1.6, 2.5))", "the dimensions of an array are whole numbers of at least 0"),
    ("x <- structure(1:4, .Dim = c())", "the dimensions of an array are whole numbers of at least 0"),
    ("x <- structure(1, .Dim = c(1e10, 1e10))", "the dimensions 10000000000 x 10000000000 need"),
    ("x <- structure(.Dim = 2)", "structure( has no numbers."),
    ("x <- structure(1, foo = 2)", "the attribute foo of an array is not known"),
    ("x[] y[]\n1 2\nEND\n", "a table with names such as x[] in its first line cannot be read, write list(x = c(...))."),
    ("x[1] <- 2", "expected <- or =, found [; this is R code"),
    ("x <<- 2", "expected <- or =, found <<-"),
    ("x <- 1+2i", "expected the end of the value, found +"),
    ("list(x = 1", "expected a comma or the closing parenthesis ) of list, found the end of the file."),
    ("5 <- x", "expected a name and <-, found 5."),
    ("x <- \u201cA\u201d", "expected a number, c( or structure(, found \u201c."),
    ('x <- "abc', 'expected a number, c( or structure(, found ".'),
    ("model { a ~ dnorm(0, 1) }", "expected <- or =, found {"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_other_files_are_refused(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(FormatError) as caught:
        parse_dump(text, "data.R")
    assert message in str(caught.value) and len(str(caught.value)) < 250
    assert caught.value.line and caught.value.column
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    "text", ["c(", "(", "-", "structure(", "structure(.Data=", "as.integer(", "c(1,", "c(a=", "1:-"]
)
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_dump("x <- " + text * 10**5, "data.R")


def test_a_million_numbers_take_about_a_second() -> None:
    generator = np.random.default_rng(1)
    wanted = np.round(generator.normal(size=(1000, 1000)), 6)
    wanted[wanted > 2] = np.nan
    numbers = ", ".join("NA" if one != one else repr(one) for one in wanted.reshape(-1, order="F").tolist())
    start = time.process_time()
    found, _ = parse_dump(f"x <- structure(c({numbers}), .Dim = c(1000L, 1000L))", "data.R")
    assert time.process_time() - start < 5
    np.testing.assert_array_equal(found["x"], wanted)
    assert found["x"].flags["C_CONTIGUOUS"]
