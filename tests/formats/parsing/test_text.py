"""Files in and out, and numbers that know their place."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gibbsite import read_model
from gibbsite.errors import FormatError
from gibbsite.formats.parsing import text
from gibbsite.formats.parsing.numerals import Numbers, decimals
from gibbsite.formats.parsing.text import Source, load, save


def refused(path: Path | str, **options: object) -> str:
    with pytest.raises(FormatError) as caught:
        load(path, **options)  # type: ignore[arg-type]
    assert caught.value.path
    return str(caught.value).removeprefix(f"{caught.value.path}: ")


# ---- reading


@pytest.mark.parametrize("size", [1, 100, 65536, 65537, 131072, 1_000_000])
@pytest.mark.parametrize("kind", ["random", "even"])
def test_plain_and_packed_files_read_alike(tmp_path: Path, size: int, kind: str) -> None:
    content = random.Random(size).randbytes(size) if kind == "random" else b"12 " * size
    plain, packed, twice = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    twice.write_bytes(gzip.compress(content) + b"\0" * 70_000 + gzip.compress(b"end"))
    assert load(plain, text=False).data == content
    assert load(packed, text=False).data == content
    assert load(twice, text=False).data == content + b"end"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "missing.uai") == "there is no such file."
    assert refused(tmp_path) == "this is a directory; name a file in it."
    assert refused("a\0b") == "there is no such file."
    for name, content in {"empty": b"", "blank": b" \n\t ", "mark": b"\xef\xbb\xbf"}.items():
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name) == "the file is empty."
    (tmp_path / "binary").write_bytes(b"MARKOV\0")
    assert "binary" in refused(tmp_path / "binary")
    (tmp_path / "packed binary").write_bytes(gzip.compress(b"MARKOV\0"))
    assert "binary" in refused(tmp_path / "packed binary")


def test_damaged_packed_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    packed = gzip.compress(random.Random(1).randbytes(100_000))
    for damaged, reason in [
        (packed[:-5], "ends too early"),
        (packed[:50], "ends too early"),
        (packed[:2], "ends too early"),
        (packed + b"junk", "damaged"),
        (packed[:500] + b"\xff" * 500 + packed[1000:], "damaged"),
        (packed[:-8] + bytes(8), "damaged"),
    ]:
        path.write_bytes(damaged)
        assert reason in refused(path, text=False)


def test_a_packed_file_cannot_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_PACKED_FLOOR", 1 << 20)
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(machine.compress(b"0 " * (1 << 19)) for _ in range(100)) + machine.flush()
    path = tmp_path / "bomb.uai.gz"
    path.write_bytes(bomb)
    tracemalloc.start()
    assert "250-fold" in refused(path)
    assert tracemalloc.get_traced_memory()[1] < 60 << 20
    tracemalloc.stop()
    path.write_bytes(gzip.compress(b"1 " * 400_000))
    assert len(load(path).data) == 800_000


def test_the_size_of_a_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1 " * 100_000)
    assert "more than 1,000 bytes" in refused(path, limit=1000)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"MARKOV"))))
    source = load("-")
    assert (source.name, source.data) == ("<stdin>", b"MARKOV")
    monkeypatch.setattr(sys, "stdin", None)
    assert "no standard input" in refused("-")


def test_the_place_of_bytes_that_are_not_utf8() -> None:
    assert Source("a", "é\n".encode()).decoded() == "é\n"
    with pytest.raises(FormatError, match=r"^a:2:3: .*UTF-8") as caught:
        Source("a", "x\nyé".encode() + b"\xff").decoded()
    assert (caught.value.path, caught.value.line, caught.value.column) == ("a", 2, 3)


# ---- writing


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    save(path, "é")
    save(path, b"second")
    assert path.read_bytes() == b"second"
    save(tmp_path / "a.gz", "text")
    first = (tmp_path / "a.gz").read_bytes()
    save(tmp_path / "a.gz", "text")
    assert (tmp_path / "a.gz").read_bytes() == first
    assert gzip.decompress(first) == b"text"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.gz", "a.txt"]


def test_errors_name_what_cannot_be_written(tmp_path: Path) -> None:
    for path, reason in [(tmp_path, "directory"), (tmp_path / "no" / "a", "no such folder")]:
        with pytest.raises(FormatError, match=f"cannot be written: .*{reason}"):
            save(path, "text")


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    save("-", "é\n")
    save("-", b"\0")
    assert capfdbinary.readouterr().out == "é\n".encode() + b"\0"


# ---- numbers


def numbers(data: str) -> Numbers:
    return Numbers(Source("f", data.encode()))


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.sampled_from([" ", "\n", "\t\r\n", " # x\n"]))
def test_numbers_are_read_exactly(values: list[float], gap: str) -> None:
    data = gap.join(map(repr, values))
    assert numbers(data).values.tolist() == values
    assert numbers(gap + data + gap).values.tolist() == values


@pytest.mark.parametrize(
    "word", ["x", "1e", "1-2", "--1", "1.2.3", "nan", "inf", "0x10", "1_000", ".", "+", "1e5.5", "1,", "\x01", "é"]
)
def test_the_first_word_that_is_no_number_is_named(word: str) -> None:
    with pytest.raises(FormatError, match=r"^f:2:4: expected a number, found"):
        numbers(f"1 2\n 3 {word} x").values  # noqa: B018


def test_very_long_words_take_no_time() -> None:
    for word in ("9" * 300_000 + "x", "1e" * 300_000, "." * 300_000):
        with pytest.raises(FormatError) as caught:
            numbers(word)
        assert len(str(caught.value)) < 100
    assert numbers("9" * 300_000).values[0] == np.inf


def test_places_of_numbers() -> None:
    some = numbers("1 // one 5\n  2\n3")
    assert some.lines().tolist() == [1, 2, 3]
    assert [some.error(k, "").column for k in range(4)] == [1, 3, 1, 2]
    assert not some.same_line(0, 1)
    with pytest.raises(FormatError, match="f:3:2: the file ends here; expected x"):
        some.whole(3, "x", 0, 1)


# ---- short texts of potentials


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e300, allow_subnormal=False).filter(lambda x: x == 0 or x > 1e-300), min_size=1))
def test_written_potentials_have_the_same_logarithm(values: list[float]) -> None:
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(values))
        again = np.log(np.array([float(word) for word in decimals(logs)]))
    assert np.array_equal(again, logs)


def test_written_potentials_are_short() -> None:
    values = [0.1, 0.25, 12.5, 1e-7, 123456.0]
    assert decimals(np.log(values)).tolist() == ["0.1", "0.25", "12.5", "1e-07", "123456"]


def test_what_has_no_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    assert "device" in refused(Path("/dev/zero"))
    with pytest.raises(FormatError, match="device"):
        read_model("/dev/zero")
    with open(tmp_path / "large.uai", "wb") as file:
        file.truncate(5 << 30)  # without taking space
    assert "bytes" in refused(tmp_path / "large.uai")


def test_a_pipe_may_hold_less_than_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gibbsite.formats.parsing.text._PIPE_LIMIT", 100)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for length, fits in ((50, True), (5000, False)):
        with subprocess.Popen(["sh", "-c", f"yes | head -c {length} > '{pipe}'"]):
            if fits:
                assert len(load(pipe).data) == length
            else:
                assert "save them to a file" in refused(pipe)
