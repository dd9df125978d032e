"""Conditional tables in all forms are the same table."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsite as gs

TABLE = np.array([[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], [[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]])
ROWS = {(a, b): TABLE[k, b - 1].tolist() for k, a in enumerate(("no", "yes")) for b in (1, 2)}


def with_table(table: object) -> gs.BayesianNetwork:
    net = gs.BayesianNetwork()
    net.add("a", ["no", "yes"], table=[0.5, 0.5])
    net.add("b", [1, 2], table=[0.5, 0.5])
    net.add("c", ["x", "y", "z"], given=["a", "b"], table=table)
    return net


FORMS = {
    "array": TABLE,
    "rows": TABLE.reshape(4, 3),
    "flat": TABLE.ravel(),
    "lists": TABLE.tolist(),
    "mapping": ROWS,
    "mapping of mappings": {key: dict(zip("zyx", row[::-1], strict=True)) for key, row in ROWS.items()},
    "function": lambda a, b: ROWS[a, b],
    "text labels": {(a, str(b)): row for (a, b), row in ROWS.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    assert np.array_equal(with_table(FORMS[form]).table("c"), TABLE)


def test_functions_that_determine_the_state() -> None:
    net = with_table(lambda a, b: "z" if a == "yes" and b == 2 else "x")
    assert net.table("c")["yes", 2] == {"x": 0.0, "y": 0.0, "z": 1.0}
    assert net.table("c")["no", 2]["x"] == 1.0


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    made = with_table(TABLE).table("c")
    for frame in (
        made.to_dataframe(),
        made.to_dataframe().reset_index(),
        made.to_dataframe(long=True),
        made.to_dataframe(long=True).sample(frac=1.0, random_state=1),
        made.to_dataframe(long=True).set_index(["b", "a", "c"])["probability"],
        made.to_dataframe(long=True).query("probability > 0"),  # zeros may be left out
        made.to_dataframe()[["z", "x", "y"]],
    ):
        assert np.array_equal(with_table(frame).table("c"), TABLE)
    cases = pandas.DataFrame({"a": ["no", "no", "yes", "yes"], "c": ["x", "y", "x", "x"]})
    net = gs.BayesianNetwork()
    net.add("a", ["no", "yes"], table=cases["a"].value_counts(normalize=True))
    net.add("c", ["x", "y"], given="a", table=pandas.crosstab(cases["a"], cases["c"], normalize="index"))
    assert net.table("c")["yes"] == {"x": 1.0, "y": 0.0}
    assert net.table("a")[()] == {"no": 0.5, "yes": 0.5}
    with pytest.raises(gs.errors.ModelError, match="has no column 'b', a parent"):
        with_table(made.to_dataframe().reset_index().drop(columns="b"))
    with pytest.raises(gs.errors.ModelError, match="has no row at a='no', b=1"):
        with_table(made.to_dataframe().iloc[1:])
    with pytest.raises(gs.errors.ModelError, match="has two rows at a='no', b=1"):
        with_table(pandas.concat([made.to_dataframe()] * 2))


def test_a_table_of_another_network_with_parents_in_another_order() -> None:
    made = with_table(TABLE)
    net = gs.BayesianNetwork()
    net.add("b", [1, 2], table=[0.5, 0.5])
    net.add("a", ["no", "yes"], table=[0.5, 0.5])
    net.add("c", ["x", "y", "z"], given=["b", "a"], table=made.table("c"))
    assert np.array_equal(net.table("c"), TABLE.transpose(1, 0, 2))


def test_large_tables_are_refused() -> None:
    net = gs.BayesianNetwork()
    for k in range(40):
        net.add(f"p{k}", 2, table=[0.5, 0.5])
    with pytest.raises(gs.errors.TooLargeError, match="NoisyOr"):
        net.add("c", 2, given=net.nodes, table=lambda *states: max(states))
