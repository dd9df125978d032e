"""Weighted constraint satisfaction problems."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gibbsite.errors import ArgumentError, FormatError, IncompatibleError
from gibbsite.formats import read_wcsp, write_model
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.wcsp import parse_wcsp
from gibbsite.models import FactorGraph


def parse(text: str, **options: float) -> FactorGraph:
    return parse_wcsp(Source("f", text.encode()), **options)


PROBLEM = """problem 3 3 4 100
2 3 2
1 0 0 1
1 5
2 0 1 3 2
0 0 7
1 2 100
3 2 1 0 0 1
1 2 0 12
0 4 0
"""


def test_costs_of_all_states() -> None:
    model = parse(PROBLEM, beta=0.5)
    assert model.sites == ("0", "1", "2") and model.cards.tolist() == [2, 3, 2]
    for a, b, c in itertools.product(range(2), range(3), range(2)):
        cost = 4 + 5 * (a == 1) + {(0, 0): 7, (1, 2): np.inf}.get((a, b), 3) + 12 * ((c, b, a) == (1, 2, 0))
        assert model.log_potential(np.array([a, b, c])) == -0.5 * cost


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.wcsp"
    path.write_text(PROBLEM)
    assert read_wcsp(path).digest == parse(PROBLEM).digest
    with pytest.raises(IncompatibleError, match="wcsp files are read, but not written; write UAI instead"):
        write_model(parse(PROBLEM), path)
    with pytest.raises(ArgumentError, match="beta must be positive"):
        read_wcsp(path, beta=0.0)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x", (1, 2), "the file ends here; expected the number of variables"),
        ("x 1 2 0 -1 2", (1, 9), "expected the top"),
        ("x 1 2 0 9", (1, 3), "1 variables are declared, but only 0 numbers follow"),
        ("x 1 2 0 9\n0 0", (2, 1), "expected a number of states"),
        ("x 1 2 0 9\n99999 0", (2, 1), "expected at most 32,767 states"),
        ("x 1 2 5 9\n2 1 0 0 0", (1, 7), "5 cost functions are declared, but the file"),
        ("x 1 2 1 9\n2\n1 1 0 0", (3, 3), "expected a variable, a whole number from 0 to 0, found 1"),
        ("x 2 2 1 9\n2 2\n2 1 1 0 0", (3, 1), "names a variable twice"),
        ("x 1 2 1 9\n2\n-1 0 0 0", (3, 1), "shared cost functions are not read"),
        ("x 1 2 1 9\n2\n1 0 0 -1", (3, 7), "shared cost functions are not read"),
        ("x 1 2 1 9\n2\n1 0 -1 0", (3, 5), "global cost functions are not read"),
        ("x 1 2 1 9\n2\n1 0 -1 knapsack", (3, 8), "expected a number, found 'knapsack'"),
        ("x 1 2 1 9\n2\n1 0 0 2\n0 1", (4, 4), "the file ends here; expected the 2 tuples of cost function 0"),
        ("x 1 2 1 9\n2\n1 0 0 1\n2 1", (4, 1), "expected a state of this variable, found 2"),
        ("x 1 2 1 9\n2\n1 0 0 1\n1 -4", (4, 3), "expected a cost that is not negative, found -4"),
        ("x 1 2 1 9\n2\n1 0 9 0", (3, 1), "cost function 0 forbids everything"),
        ("x 1 2 1 9\n2\n0 9 0", (3, 1), "cost function 0 forbids everything"),
        ("x 1 2 1 9\n2\n1 0 0 0 7", (3, 9), "expected the end of the file after 1 cost functions"),
        ("x 1 2 1 9\n2\n1 0 1e300 0", (3, 5), "this number is too large"),
        ("x 30 9 1 9\n" + "9 " * 30 + "\n30 " + " ".join(map(str, range(30))) + " 0 0", (3, 1), "more than 16,777,216"),
        ("x 9 9 0 9\n" + "30000 " * 9, (2, 1), "variable 0 has 30000 states, but is in no factor"),
    ],
)
def test_what_is_wrong_and_where(text: str, place: tuple[int, int], message: str) -> None:
    tracemalloc.start()
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == place
