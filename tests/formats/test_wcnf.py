"""Weighted maximum satisfiability."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError
from gibbsite.formats import read_wcnf, write_model
from gibbsite.formats.parsing.text import Source
from gibbsite.formats.wcnf import parse_wcnf
from gibbsite.models import FactorGraph
from tests.formats.models import check_groups

Clause = tuple[int | None, list[int]]
"""A weight, None if the clause is hard, and literals."""


def parse(text: str, **options: float) -> FactorGraph:
    return parse_wcnf(Source("f", text.encode()), **options)


def energy(clauses: list[Clause], x: tuple[int, ...]) -> float:
    """Return the weight of the clauses that do not hold."""
    broken = [w for w, clause in clauses if not any(x[abs(v) - 1] == (v > 0) for v in clause)]
    return np.inf if None in broken else float(sum(w for w in broken if w is not None))


LITERAL = st.integers(1, 4).flatmap(lambda v: st.sampled_from([v, -v]))
CLAUSE = st.tuples(st.one_of(st.none(), st.integers(1, 9)), st.lists(LITERAL, min_size=1, max_size=5))


@settings(deadline=None)
@given(st.lists(CLAUSE, min_size=1, max_size=8), st.booleans())
def test_all_states_in_both_formats(clauses: list[Clause], old: bool) -> None:
    clauses = [*clauses, (1, [4])]
    hard = "1000" if old else "h"
    text = f"c a problem\np wcnf 4 {len(clauses)} 1000\n" if old else "c a problem\n"
    for weight, clause in clauses:
        text += f"{hard if weight is None else weight} {' '.join(map(str, clause))} 0\nc 5 0\n"
    model = parse(text, beta=2.0)
    assert model.sites == ("1", "2", "3", "4")
    check_groups(model)
    for x in itertools.product((0, 1), repeat=4):
        assert model.log_potential(np.array(x)) == -2.0 * energy(clauses, x)


def test_variables_and_constants() -> None:
    model = parse("p wcnf 3 2\n1 1 0\n2.5 0\n")
    assert model.sites == ("1", "2", "3") and model.log_offset == -2.5
    assert parse("1 7 -7 0").n_sites == 7


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.wcnf"
    path.write_text("h 1 0\r\n2 -1 2 0\r\n")
    assert read_wcnf(path).digest == parse("h 1 0\n2 -1 2 0\n").digest
    with pytest.raises(IncompatibleError, match="wcnf files are read, but not written"):
        write_model(read_wcnf(path), path)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("c nothing", (1, 10), "the file ends here; expected a clause"),
        ("1 2", (1, 4), "the file ends here; expected a clause that ends with 0"),
        ("p cnf 1 1\n1 0", (1, 1), "expected 'p wcnf VARIABLES CLAUSES'"),
        ("p wcnf 1 9999999999999999999999\n1 0", (1, 1), "expected 'p wcnf VARIABLES CLAUSES'"),
        ("1 1 0\np wcnf 1 1\n", (2, 1), "before the clauses"),
        ("p wcnf 1 2\n1 1 0", (1, 1), "2 clauses are declared, but 1 are there"),
        ("p wcnf 1 1\nh 1 0", (2, 1), "expected a number, found 'h'"),
        ("p wcnf 1 1\n1 2 0", (2, 3), "expected the number of a variable, from 1 to 1, or its negative, found 2"),
        ("1 1.5 0", (1, 3), "expected the number of a variable"),
        ("-1 1 0", (1, 1), "expected a weight, a positive number below 1e20, found -1"),
        ("0 1 0", (1, 1), "expected a weight, a positive number below 1e20, found 0"),
        ("1 x 0", (1, 3), "expected a number, found 'x'"),
        ("h 0", (1, 1), "this hard clause has no literals"),
        ("1 2000000000 0", (0, 0), "there are 2,000,000,000 variables, most of them in no clause"),
        ("p wcnf 2000000000 1\n1 1 0", (0, 0), "there are 2,000,000,000 variables"),
        ("1 " + " ".join(map(str, range(1, 26))) + " 0", (1, 1), "clauses of up to 25 literals have more than"),
    ],
)
def test_what_is_wrong_and_where(text: str, place: tuple[int, int], message: str) -> None:
    tracemalloc.start()
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    assert message in str(caught.value)
    assert (caught.value.line or 0, caught.value.column or 0) == place
