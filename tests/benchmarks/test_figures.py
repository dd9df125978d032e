"""What is made of figures: files, the page, the gate; no clock is involved."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import gate, growth
from benchmarks.figures import Figures, FiguresError, Table
from benchmarks.page import page
from benchmarks.parts import PARTS, Part
from benchmarks.report import Section, Target

RATIO = Target("lattice", 10.0, 8.0, True, "C", "9.00 .. 11.00")
AGRUM = Target("alarm", 2.0, 5.0, False, "pyAgrum")
SECONDS = Target("import", 0.2, 0.15, False, "s")


def figures(*targets: Target, quick: bool = False, tables: tuple[Table, ...] = ()) -> Figures:
    return Figures({"processor": "some", "numpy": "9.9"}, quick, list(targets), list(tables), {"forms": [1]})


TABLES = (
    Table("grid / lattice", ["rate", "cpu"], [["grid / lattice: C", "1"]]),
    Table("startup", ["what", "seconds"], [["import", "0.2"]]),
    Table("grid / ising", ["rate", "cpu"], [["grid / ising: C", "2"]]),
)


def test_figures_survive_a_file(tmp_path: Path) -> None:
    made = figures(RATIO, SECONDS, quick=True, tables=TABLES)
    made.write(tmp_path / "f.json")
    assert Figures.read(tmp_path / "f.json") == made


def test_parts_measured_one_by_one_make_one_page(tmp_path: Path) -> None:
    old = figures(RATIO, SECONDS, tables=TABLES)
    new = replace(figures(replace(RATIO, seen=12.0), AGRUM), data={"exact": [2]})
    old.write(tmp_path / "old.json")
    new.write(tmp_path / "new.json")
    saved = ["--from", str(tmp_path / "old.json"), "--from", str(tmp_path / "new.json")]
    assert command.main([*saved, "--json", str(tmp_path / "all.json")]) == 0
    made = Figures.read(tmp_path / "all.json")
    assert [target.seen for target in made.targets] == [12.0, 0.2, 2.0]
    assert (made.tables, made.data) == (list(TABLES), {"forms": [1], "exact": [2]})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"targets": [{"name": "x"}], "tables": []}', None])
def test_a_file_without_figures_is_one_clear_line(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "f.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FiguresError, match=r"f\.json"):
        Figures.read(file)
    assert command.main(["--from", str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_page_has_machine_targets_and_the_tables_of_each_part() -> None:
    text = page(figures(RATIO, SECONDS, tables=TABLES))
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == ["## Machine and versions", "## Targets", "## Startup", "## One site after another"]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    assert ["numpy", "9.9"] in lines
    assert ["lattice", ">= 8 C", "10.00", "9.00 .. 11.00", "ok"] in lines
    assert ["import", "<= 0.15 s", "0.20", "", "MISSED"] in lines
    assert "1 met, 1 missed." in text
    cases = [line for line in lines if line and line[0].startswith("grid")]
    assert cases == [["grid / lattice: C", "1"], ["grid / ising: C", "2"]]
    assert lines.count(["rate", "cpu"]) == 1, "cases of a part share a table"


def test_the_page_depends_on_the_figures_alone_and_says_if_they_are_rough() -> None:
    assert page(figures(RATIO)) == page(figures(RATIO))
    assert "quick run" not in page(figures(RATIO))
    assert "quick run" in page(figures(RATIO, quick=True))


# name: figures now, figures committed, whether the gate opens, the message
GATE: dict[str, tuple[list[Target], list[Target], bool, str]] = {
    "the same": ([RATIO, AGRUM], [RATIO, AGRUM], True, "2 ratios compared, 0 fell, 0 not"),
    "just above": ([replace(RATIO, seen=7.01)], [RATIO], True, "0 fell"),
    "just below": ([replace(RATIO, seen=6.99)], [RATIO], False, "fell: lattice: 6.99 C, committed 10.00"),
    "below its promise, as before": ([replace(RATIO, seen=5)], [replace(RATIO, seen=5)], True, "0 fell"),
    "smaller is better": ([replace(AGRUM, seen=1.0)], [AGRUM], True, "0 fell"),
    "larger is worse": ([replace(AGRUM, seen=3.0)], [AGRUM], False, "fell: alarm: 3.00 pyAgrum"),
    "seconds are of a machine": ([RATIO, replace(SECONDS, seen=9.0)], [RATIO, SECONDS], True, "1 ratios"),
    "new": ([RATIO, replace(AGRUM, name="new")], [RATIO], True, "1 ratios compared"),
    "not measured": ([RATIO], [RATIO, AGRUM], True, "1 not measured"),
    "nothing in common": ([SECONDS], [RATIO], False, "0 ratios compared"),
    "another unit": ([replace(RATIO, unit="bare")], [RATIO], False, "0 ratios compared"),
}


@pytest.mark.parametrize("name", GATE)
def test_the_gate(name: str) -> None:
    now, committed, passes, said = GATE[name]
    passed, lines = gate.judge(figures(*now), figures(*committed))
    assert passed is passes
    assert said in "\n".join(lines)


def test_the_gate_mentions_another_processor() -> None:
    other = replace(figures(RATIO), environment={"processor": "other"})
    assert "another processor" in gate.judge(figures(RATIO), other)[1][-1]


@pytest.mark.parametrize(("seen", "code"), [(10.0, 0), (1.0, 1)])
def test_page_and_gate_from_saved_figures(
    seen: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now, committed, target = tmp_path / "now.json", tmp_path / "committed.json", tmp_path / "page.md"
    figures(replace(RATIO, seen=seen)).write(now)
    figures(RATIO).write(committed)
    assert command.main(["--from", str(now), "--page", str(target), "--gate", str(committed)]) == code
    assert target.read_text(encoding="utf-8") == page(Figures.read(now))
    assert ("fell: lattice" in capsys.readouterr().out) is bool(code)


def test_parts_are_measured_when_asked_for_and_peers_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Part, "measure", lambda part, quick, **options: [(part.name, options)])
    every = [(name, {}) for name in PARTS if name != "peers"]
    assert list(command.measure(True, [])) == every
    assert list(command.measure(True, ["peers"])) == [("peers", {})]
    assert list(command.measure(True, ["grid100", "dogs"])) == [("dogs", {}), ("speed", {"only": ["grid100"]})]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_a_module_that_measures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert "quick" in inspect.signature(module.measure).parameters
    section = Section(name, [], ["a"], [], None)
    for found in (section, [section]):
        monkeypatch.setattr(module, "measure", lambda quick, found=found: found)
        assert list(PARTS[name].measure(True)) == [section]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.campaign] if number else []) for number, name in enumerate(growth.FAMILIES)],
)
def test_growth_weighs_and_times_every_family(name: str) -> None:
    seen = growth.grow(name, 1000, 1, 0.0)
    assert seen["sites"] == pytest.approx(1000, rel=0.03)
    assert seen["marginals"]["bytes"] > seen["bare"]["bytes"] > 0
    assert all(seen[manner]["seconds"] > 0 for manner in growth.MANNERS)
    assert len(growth._row(name, seen)) == 7


def test_growth_promises_what_a_site_costs() -> None:
    def seen(sites: int, weight: float, seconds: float) -> dict[str, Any]:
        return {"sites": sites, "bare": {"bytes": weight, "seconds": seconds}}

    small, between = seen(100, 50.0, 1e-6), seen(1000, 9e9, 9e9)
    good = growth.promises("grid", [small, between, seen(10_000, 54.0, 290e-6)])
    assert [target.met for target in good] == [True, True]
    bad = growth.promises("grid", [small, between, seen(10_000, 56.0, 310e-6)])
    assert [target.met for target in bad] == [False, False]
