"""The commands of gibbsite ner, as a user calls them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gibbsite.cli.ner import command
from gibbsite.errors import FormatError

TEXT = "Anna Smith lives in Rome. Then Anna went to Oslo.\n"


def run(*words: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, list(words), input=text)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("ner")
    row = "Anna\tB-PER\nSmith\tI-PER\nlives\tO\nin\tO\nRome\tB-LOC\n.\tO\n\nOslo\tB-LOC\nis\tO\ncold\tO\n\n"
    data = folder / "train.tsv.gz"
    data.write_bytes(gzip.compress("".join(f"-DOCSTART-\t{k}\n\n{row}" for k in range(8)).encode()))
    out = folder / "m.ner"
    done = run("train", str(data), "-o", str(out), "--template", "window", "--iterations", "20", "--threads", "1")
    assert done.exit_code == 0, done.output
    assert "LOC, PER from 16 sentences, 72 tokens" in done.stderr
    return str(out)


@pytest.mark.parametrize("method", ["viterbi", "posterior", "gibbs", "herded", "blocks"])
def test_text_is_tagged_by_every_method(model: str, method: str) -> None:
    sweeps = [] if method in ("viterbi", "posterior") else ["--sweeps", "40"]
    done = run("tag", model, "-", "--method", method, *sweeps, "-q", text=TEXT)
    assert done.exit_code == 0, done.output
    assert "[PER Anna Smith] lives in [LOC Rome]." in done.stdout


def test_formats_tell_the_same(model: str, tmp_path: Path) -> None:
    text = tmp_path / "a.txt.gz"
    text.write_bytes(gzip.compress(TEXT.encode()))
    found = json.loads(run("tag", model, str(text), "--format", "json", "-q").stdout)
    (document,) = found["documents"]
    assert document["text"] == TEXT
    first = document["entities"][0]
    assert TEXT[first["start"] : first["end"]] == first["text"] == "Anna Smith"
    assert 0.0 <= first["probability"] <= 1.0
    assert first["error"] == 0.0
    columns = run("tag", model, str(text), "--format", "tsv", "-q").stdout
    assert "Anna\tB-PER\nSmith\tI-PER\n" in columns
    page = tmp_path / "page.html"
    assert run("tag", model, str(text), "--format", "html", "-o", str(page), "-q").exit_code == 0
    assert "<mark" in page.read_text(encoding="utf-8")
    again = tmp_path / "columns.tsv"
    again.write_text(columns, encoding="utf-8")
    assert run("tag", model, str(again), "--columns", "--format", "tsv", "-q").stdout == columns
    score = json.loads(run("score", model, str(again), "--json", "-q").stdout)
    assert score["f1"] == score["precision"] == score["recall"] == 1.0
    assert set(score["classes"]) == {"PER", "LOC"}
    assert "calibration error" in run("score", model, str(again), "-q").stdout


def test_the_model_of_the_package_works_at_once() -> None:
    done = run("tag", "-q", text="Barack Obama was born in Hawaii and works in Chicago.\n")
    assert done.exit_code == 0, done.output
    assert "[PER Barack Obama]" in done.stdout
    assert "[LOC Chicago]" in done.stdout


def test_nothing_of_odd_text_is_lost(model: str) -> None:
    text = "x" * 100_000 + "\r\n\t  \u200b\u2028 Anna  Smith\x0b\x0c" + "'’\"" * 50 + "\U0001f600"
    done = run("tag", model, "-", "--format", "json", "-q", text=text)
    assert json.loads(done.stdout)["documents"][0]["text"] == text


def fails(*words: str, text: str | bytes | None = None) -> str:
    done = run(*words, text=text)
    assert done.exit_code != 0
    return str(done.exception) if isinstance(done.exception, FormatError) else done.output


def test_mistakes_are_answered_in_one_sentence(model: str, tmp_path: Path) -> None:
    plain = tmp_path / "latin.txt"
    plain.write_bytes("a\nMünchen\n".encode("latin-1"))
    assert "latin.txt:2: this is not UTF-8 text" in fails("tag", model, str(plain))
    assert run("tag", model, str(plain), "--encoding", "latin-1", "-q").stdout == "a\nMünchen\n"
    assert "there is no encoding 'nonsense'" in fails("tag", model, str(plain), "--encoding", "nonsense")
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tO\nb\tI-X\n", encoding="utf-8")
    assert "bad.tsv:2: 'I-X' follows 'O'" in fails("train", str(bad), "-o", str(tmp_path / "x.ner"))
    assert not (tmp_path / "x.ner").exists()
    bad.write_text("just\nwords\n", encoding="utf-8")
    assert "bad.tsv:1: 'just' has no label" in fails("score", model, str(bad))
    assert "not a model of gibbsite ner" in fails("tag", str(bad), str(plain))
    assert "there is no such file" in fails("tag", "missing.ner", str(plain))
    assert "--sweeps has no effect with --method viterbi" in fails(
        "tag", model, "-", "--method", "viterbi", "--sweeps", "5", text="a"
    )
    assert "renamed as OLD=NEW" in str(run("train", str(bad), "-o", str(tmp_path / "x"), "--map", "a").exception)


def test_classes_with_other_names_are_reported(model: str, tmp_path: Path) -> None:
    data = tmp_path / "other.tsv"
    data.write_text("Anna\tB-PERSON\nSmith\tI-PERSON\nlives\tO\nin\tO\nRome\tB-LOCATION\n.\tO\n")
    done = run("score", model, str(data), "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["f1"] == 0.0
    assert "--map LOCATION=LOC --map PERSON=PER" in done.stderr
    done = run("score", model, str(data), "--json", "--map", "LOCATION=LOC", "--map", "PERSON=PER")
    assert json.loads(done.stdout)["f1"] == 1.0
    assert "--map" not in done.stderr


def test_tags_as_json_by_the_short_option(model: str) -> None:
    done = run("tag", model, "-", "--json", "-q", text=TEXT)
    assert json.loads(done.stdout)["documents"][0]["text"] == TEXT
    assert run("tag", model, "-", "--json", "--format", "html", "-q", text=TEXT).exit_code == 2
