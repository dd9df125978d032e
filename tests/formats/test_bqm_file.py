"""Files of binary quadratic models, against dimod's own where it is installed."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite.errors import FormatError, IncompatibleError, ModelError
from gibbsite.formats import from_bqm, read_bqm, read_coo, write_bqm, write_coo
from gibbsite.formats.bqm_file import format_bqm, parse_bqm
from gibbsite.formats.coo import format_coo, parse_coo
from gibbsite.formats.parsing.text import Source
from gibbsite.models import FactorGraph, ising
from tests.formats.models import check_groups, energies

BIAS = st.sampled_from([-2.0, -0.5, 0.0, 0.1, 1 / 3, 1.5, 1e-30])


@st.composite
def binary_models(draw: st.DrawFn) -> FactorGraph:
    """Return two-state sites with pairwise factors, as bits or spins, named or not."""
    n = draw(st.integers(0, 4))
    names = draw(st.sampled_from([[str(k) for k in range(n)], [f"v {k}" for k in range(n)]]))
    factors: list[Any] = [(k, [draw(BIAS), draw(BIAS)]) for k in range(n)]
    factors += [((i, j), [draw(BIAS) for _ in range(4)]) for i in range(n) for j in range(i) if draw(st.booleans())]
    factors.append(((), draw(BIAS)))
    return FactorGraph(names, states=draw(st.sampled_from([(0, 1), (-1, 1)])), log_factors=factors)


def bqm_bytes(variables: Any = False, body: bytes = b"", version: int = 2, **changes: Any) -> bytes:
    """Return a file of two coupled spins, changed."""
    header = {
        "shape": [2, 1],
        "dtype": "float64",
        "itype": "int32",
        "ntype": "int32",
        "vartype": "SPIN",
        "variables": variables,
    } | changes
    head = json.dumps(header).encode()
    data = body or struct.pack("<d id id id id", 0.5, 0, 1.0, 1, 2.0, 1, -3.0, 0, -3.0)
    return b"DIMODBQM" + struct.pack("<BBI", version, 0, len(head)) + head + data


def parse(data: bytes) -> FactorGraph:
    return parse_bqm(Source("f", data))


def test_what_a_file_means() -> None:
    model = parse(bqm_bytes())
    assert model.sites == ("0", "1")
    assert model.log_potential({"0": 1, "1": -1}) == -(0.5 + 1.0 - 2.0 + 3.0)


@settings(deadline=None)
@given(binary_models())
def test_binary_files_written_and_read_back(model: FactorGraph) -> None:
    again = parse(format_bqm(model))
    assert again.sites == model.sites
    assert np.allclose(energies(again), energies(model), atol=1e-12)
    check_groups(again)


@settings(deadline=None)
@given(binary_models())
def test_coordinate_files_written_and_read_back(model: FactorGraph) -> None:
    again = parse_coo(Source("f", format_coo(model).encode()))
    assert again.sites == tuple(str(k) for k in range(model.n_sites))
    assert np.allclose(energies(again), energies(model), atol=1e-12)
    check_groups(again)


def test_spins_are_exact_and_beta_scales(tmp_path: Path) -> None:
    model = ising([[0, 1 / 3, 0], [1 / 3, 0, 0.1], [0, 0.1, 0]], [0.1, 1e-17, 3.0])
    for read, write, name in ((read_bqm, write_bqm, "a.bqm.gz"), (read_coo, write_coo, "a.coo.gz")):
        write(model, tmp_path / name)
        assert np.array_equal(energies(read(tmp_path / name)), energies(model))
        write(model, tmp_path / name, beta=4.0)
        assert np.allclose(energies(read(tmp_path / name, beta=4.0)), energies(model))
        with pytest.raises(ModelError, match="beta must be positive"):
            write(model, tmp_path / name, beta=0.0)
        with pytest.raises(IncompatibleError, match="this format needs two"):
            write(FactorGraph({"a": 3}), tmp_path / name)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"DIMODQM\0\0\0", "expected DIMODBQM first"),
        (b"DIMODBQM\2", "ends in its header"),
        (bqm_bytes(version=3), "version 3.0; expected 1 or 2"),
        (b"DIMODBQM\2\0\4\0\0\0nope", "not JSON"),
        (b"DIMODBQM\2\0\xff\xff\xff\xff[1]", "expected a JSON object"),
        (b"DIMODBQM\2\0\0\1\0\0" + b"[" * 100_000, "not JSON"),
        (bqm_bytes(shape=[2]), "shape in the header"),
        (bqm_bytes(shape=[2, -1]), "shape in the header"),
        (bqm_bytes(shape=[2.0, True]), "shape in the header"),
        (bqm_bytes(shape=[10**12, 10**15]), "ends too early"),
        (bqm_bytes(shape=[2, 2]), "ends too early"),
        (bqm_bytes(vartype="DISCRETE"), "vartype 'DISCRETE'"),
        (bqm_bytes(dtype="object"), "dtype 'object'; expected one of float64"),
        (bqm_bytes(itype="U100"), "itype 'U100'"),
        (bqm_bytes(variables=True), "expected the names of the variables"),
        (bqm_bytes(variables=True) + b'VARS\5\0\0\0["a"]', "list of 2 names"),
        (bqm_bytes(variables=True) + b"VARS\7\0\0\0[{},{}]", "names of variables that are texts"),
        (bqm_bytes(variables=True) + b'VARS\x09\0\0\0[1,"1"]  ', "given twice"),
        (bqm_bytes(version=1, variables=["a"]), "list of 2 names"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 1, 1, 0, 2, 1, -3, 0, -3)), "overlap"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 0, 1, 1, 2, 5, -3, 0, -3)), "outside of 0 to 1"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 0, 1, 1, 2, 0, -3, 0, -3)), "interacts with itself"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 0, 1, 2, 2, 1, -3, 1, -3)), "once with each"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 0, np.nan, 1, 2, 1, -3, 0, -3)), "finite biases"),
        (bqm_bytes(body=struct.pack("<d id id id id", np.inf, 0, 1, 1, 2, 1, -3, 0, -3)), "finite biases"),
        (bqm_bytes(body=struct.pack("<d id id id id", 0, 0, 1e308, 1, 1e308, 1, -3, 0, -3)), "finite biases"),
    ],
)
def test_damaged_binary_files(data: bytes, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(data)
    assert message in str(caught.value)
    assert caught.value.path == "f"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("0 0 1", None, None, "expected a line '# vartype=SPIN'"),
        ("# vartype=TERNARY\n0 0 1", None, None, "expected a line '# vartype=SPIN'"),
        ("# vartype=SPIN\n# vartype=BINARY\n", 2, 11, "expected the vartype SPIN, found BINARY"),
        ("# vartype=SPIN\n0 0", 2, 1, "expected three numbers on this line"),
        ("# vartype=SPIN\n0 1 2\n0 0 1 0 1 2", 3, 1, "expected three numbers on this line"),
        ("# vartype=SPIN\n0 -1 2", 2, 3, "the number of a variable, from 0 on, found -1"),
        ("# vartype=SPIN\n0.5 1 2", 2, 1, "the number of a variable, from 0 on, found 0.5"),
        ("# vartype=SPIN\n0 1 1e999", 2, 5, "this bias is too large"),
        ("# vartype=SPIN\n0 1 x", 2, 5, "expected a number, found 'x'"),
        ("# vartype=SPIN\n# offset=nan\n", 2, 10, "expected a number as offset"),
    ],
)
def test_wrong_coordinate_files(text: str, line: int | None, column: int | None, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_coo(Source("f", text.encode()))
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_coordinates_of_far_variables_and_repeated_pairs() -> None:
    text = "# my vartype=BINARY\n# offset: 2\n7 7 1\n\n1000000000 7 0.5 # more\n7 1000000000 0.25\n"
    model = parse_coo(Source("f", text.encode()))
    assert model.sites == ("7", "1000000000")
    assert model.log_potential({"7": 1, "1000000000": 1}) == -3.75
    assert parse_coo(Source("f", b"0 0 1"), vartype="SPIN").labels(0) == (-1, 1)


# ---- dimod itself


@st.composite
def bqms(draw: st.DrawFn) -> Any:
    dimod: Any = pytest.importorskip("dimod")
    bqm = dimod.BinaryQuadraticModel(
        draw(st.sampled_from(["SPIN", "BINARY"])), dtype=draw(st.sampled_from([np.float64, np.float32, object]))
    )
    kinds = [[0, 1, 2, 3], [3, 1, 0, 7], ["a", "b", 7, ("t", 1)]]
    variables = draw(st.sampled_from(kinds))[: draw(st.integers(0, 4))]
    for v in variables:
        bqm.add_linear(v, draw(st.sampled_from([-2.0, 0.0, 0.25])))
    for k, u in enumerate(variables):
        for v in variables[:k]:
            if draw(st.booleans()):
                bqm.add_quadratic(u, v, draw(st.sampled_from([-2.0, 0.0, 0.25])))
    bqm.offset = draw(st.sampled_from([0.0, 1.5]))
    return bqm


@settings(deadline=None)
@given(bqms(), st.sampled_from([1, 2]))
def test_files_of_dimod_are_read(bqm: Any, version: int) -> None:
    with bqm.to_file(version=version) as file:
        model = parse(file.read())
    assert model.digest == from_bqm(bqm).digest


@settings(deadline=None)
@given(bqms())
def test_dimod_reads_our_files(bqm: Any) -> None:
    dimod: Any = pytest.importorskip("dimod")
    model = from_bqm(bqm)
    assert np.allclose(energies(from_bqm(dimod.BQM.from_file(format_bqm(model)))), energies(model))
    if all(isinstance(v, int) for v in bqm.variables):
        coo: Any = pytest.importorskip("dimod.serialization.coo")
        again = coo.loads(format_coo(model))
        again.offset = bqm.offset
        assert np.allclose([-again.energy(x) for x in _samples(bqm)], [-bqm.energy(x) for x in _samples(bqm)])


def _samples(bqm: Any) -> list[dict[Any, int]]:
    low = -1 if bqm.vartype.name == "SPIN" else 0
    variables = list(bqm.variables)
    return [{v: (1 if mask >> k & 1 else low) for k, v in enumerate(variables)} for mask in range(2 ** len(variables))]


@settings(deadline=None)
@given(bqms().filter(lambda bqm: all(isinstance(v, int) for v in bqm.variables)))
def test_coordinate_files_of_dimod_are_read(bqm: Any) -> None:
    coo: Any = pytest.importorskip("dimod.serialization.coo")
    bqm.offset = 0.0
    text = coo.dumps(bqm, vartype_header=True)
    model = parse_coo(Source("f", text.encode()))
    loaded = coo.loads(text)
    for x in _samples(loaded):
        assert np.isclose(model.log_potential({str(v): s for v, s in x.items()}), -loaded.energy(x))
