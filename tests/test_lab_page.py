"""Figures of docs/lab.md are those of the runs that are kept beside it, from which ``docs/lab_figures.py`` writes them."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import gibbsite as gs

DOCS = Path(__file__).parents[1] / "docs"
SECTION = re.compile(r"^### ([a-z]+-[a-z-]+).*?$(.*?)(?=^##|\Z)", re.M | re.S)
BLOCK = re.compile(r"<!-- findings of (\S+) -->\n(.*?)<!-- end of findings -->", re.S)
FIGURE = re.compile(r"\d+\.\d+(?:e-?\d+)?|\d+e-?\d+|\d+(?= %)|\d+(?= (?:s|ms|us|times)\b)")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the program that writes the figures; what it keeps goes to another folder."""
    spec = importlib.util.spec_from_file_location("lab_figures", DOCS / "lab_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    return (DOCS / "lab.md").read_text(encoding="utf-8")


def sections() -> dict[str, str]:
    return {name: text for name, text in SECTION.findall(page()) if name in gs.lab.NAMES}


def test_the_page_has_the_figures_of_the_kept_runs(figures: ModuleType) -> None:
    assert figures.write_findings(page()) == page()


def test_every_experiment_has_its_run_in_its_section() -> None:
    assert sorted(sections()) == sorted(gs.lab.NAMES)
    for name, text in sections().items():
        assert [each for each, _ in BLOCK.findall(text)] == [name]
        kept = json.loads((DOCS / "lab" / f"{name}.json").read_text(encoding="utf-8"))
        assert (kept["experiment"], kept["rng"]) == (name, 1)
        assert any(table["title"].startswith("Paper against ours") for table in kept["tables"])


@pytest.mark.parametrize("name", gs.lab.NAMES)
def test_other_text_has_only_figures_of_the_run_or_of_its_settings(name: str) -> None:
    text = sections()[name]
    paper, _, rest = name.partition("-")
    module = Path(gs.__file__).parent / "lab" / paper / f"{rest.replace('-', '_')}.py"
    known = BLOCK.findall(text)[0][1] + module.read_text(encoding="utf-8")
    numbers = {float(figure) for figure in FIGURE.findall(known)} | {float(n) for n in re.findall(r"\d+", known)}
    assert [figure for figure in FIGURE.findall(BLOCK.sub("", text)) if float(figure) not in numbers] == []


def test_a_run_is_kept_without_curves_and_does_not_replace_a_longer_one(
    figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "KEPT", tmp_path / "kept")
    made: dict[str, object] = {
        "experiment": "herded-moments",
        "rng": 1,
        "data": "Data: drawn shapes, from /home/me.",
        "arrays": {},
    }
    runs = tmp_path / "runs" / "herded-moments"
    runs.mkdir(parents=True)
    (runs / "other.json").write_text("[1]")
    path = tmp_path / "kept" / "herded-moments.json"
    for quick, long, title in ((True, False, "first"), (False, True, "second"), (False, False, "third")):
        made |= {
            "quick": quick,
            "long": long,
            "tables": [{"title": title, "columns": ["a|b", "c"], "rows": [["x*", 0.5]]}],
        }
        (runs / "herded-moments.json").write_text(json.dumps(made))
        figures.keep(tmp_path / "runs")
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["tables"][0]["title"] == "second"
    assert "arrays" not in kept
    text = figures.write_findings("a\n<!-- findings of herded-moments -->\nbefore\n<!-- end of findings -->\nb")
    assert text.endswith("*second*\n\n| a\\|b | c |\n| --- | --- |\n| x\\* | 0.5 |\n<!-- end of findings -->\nb")
    assert "`gibbsite reproduce herded-moments --long --rng 1`." in text
    assert "Data: drawn shapes, from the data folder." in text
    assert "before" not in text
