"""The documents are true: their Python runs, their kernel is right."""

from __future__ import annotations

import importlib
import re
import sys
import types
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
import gibbsite.applications.bugs.kernel  # registers itself
import gibbsite.formats.registry
import gibbsite.kernels.registry
import gibbsite.scans.registry
from gibbsite.testing import tiny_models

ROOT = Path(__file__).parent.parent


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


def run_as_module(name: str, code: str) -> types.ModuleType:
    """Run code as an importable module, as a user's file would be."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


@pytest.fixture(autouse=True)
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what pages register: other tests are about what is shipped."""
    gibbsite.formats.registry.registered_formats()  # a module that is loaded later would be forgotten with the rest
    for module in (gibbsite.kernels.registry, gibbsite.scans.registry, gibbsite.formats.registry):
        monkeypatch.setattr(module, "_REGISTERED", dict(module._REGISTERED))
    declared = dict(gibbsite.formats.registry._DECLARED)
    monkeypatch.setattr(gibbsite.formats.registry, "_DECLARED", declared)


def test_the_example_kernel_is_short_and_passes_everything() -> None:
    kernel_code, proof, use = python_blocks(ROOT / "docs" / "new_kernel.md")
    assert len(kernel_code.strip().splitlines()) < 60
    module = run_as_module("barker_from_the_docs", kernel_code)
    # on a kind of two states and one of more; every kind and scan is proved with the kernels of the library
    exec(proof, module.__dict__)
    names = {check.name for check in module.__dict__["report"].checks}
    assert names == {"invariance", "reversibility", "ergodicity", "law", "repeat"}
    exec(use, module.__dict__)
    assert module.__dict__["result"].diagnostics.converged
    assert gibbsite.kernels.registry.make_kernel("barker") == module.Barker()


def test_the_example_scan_passes_everything() -> None:
    scan_code, proof, use = python_blocks(ROOT / "docs" / "new_scan.md")
    module = run_as_module("tossed_from_the_docs", scan_code)
    exec(proof, module.__dict__)
    names = {check.name for check in module.__dict__["report"].checks}
    assert names == {"invariance", "reversibility", "ergodicity", "law", "repeat"}
    exec(use, module.__dict__)
    assert module.__dict__["result"].diagnostics.converged
    assert gs.certify(gs.ising_grid((3, 3), coupling=0.1), scan=module.TossedScan(), accuracy=0.1).steps > 0


def test_the_example_format_holds_any_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    format_code, use = python_blocks(ROOT / "docs" / "new_format.md")
    run_as_module("factors_from_the_docs", format_code)
    monkeypatch.chdir(tmp_path)
    run_as_module("factors_in_use", use)
    assert capsys.readouterr().out.strip() == re.findall(r"^print\(.*\)  # (.*)$", use, re.M)[0]
    for name, model in tiny_models().items():
        gs.write_model(model, tmp_path / name, format="factors")
        again = gs.read_model(tmp_path / name)  # recognised by its content
        assert [again.labels(i) for i in range(again.n_sites)] == [model.labels(i) for i in range(model.n_sites)]
        assert np.allclose(*(gs.exact.enumerate(one).probabilities for one in (model, again)), atol=1e-15)
        assert gs.solve_exact(again, task="PR").log_z == pytest.approx(gs.solve_exact(model, task="PR").log_z)
    for wrong in ("{", '{"log_factors": []}', '{"sites": {"a": 2}, "log_factors": [["b", [1, 2]]]}'):
        (tmp_path / "wrong.factors").write_text(wrong)
        with pytest.raises(gs.errors.FormatError, match=r"wrong\.factors"):
            gs.read_model(tmp_path / "wrong.factors")


NAMES = (
    "belief",
    "blocks",
    "bugs",
    "clusters",
    "denoise",
    "densities",
    "diagnostics",
    "dogs",
    "entities",
    "from_other_tools",
    "importance",
    "index",
    "lab",
    "learn",
    "networks",
    "new_recorder",
    "perfect",
    "poisson",
    "results",
    "scale",
    "segmentation",
    "tempering",
)
LONG = ("continuous", "mini_buckets")
PAGES = [
    "README.md",
    *(f"docs/{page}.md" for page in NAMES),
    *(pytest.param(f"docs/{page}.md", marks=pytest.mark.campaign) for page in LONG),
]


@pytest.mark.parametrize("page", PAGES)
def test_code_of_pages_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # some pages write files
    for number, block in enumerate(python_blocks(ROOT / page)):
        run_as_module(f"{Path(page).stem}_{number}", block)
        said = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)  # what comes out stands behind it
        printed = capsys.readouterr().out.splitlines()
        shown = [
            line[: len(want) - 3] + "..." if want.endswith("...") else line
            for line, want in zip(printed, said, strict=False)
        ]
        assert not said or (shown == said and len(printed) == len(said))


def test_changelog_names_the_version() -> None:
    assert gs.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))], ids=lambda p: p.name
)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    links = re.findall(r"\]\(([^)#\s]+)", prose)
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []
    files = [link.partition("/blob/main/")[2] for link in links if "/gibbsite/blob/main/" in link]
    assert [file for file in files if not (ROOT / file).exists()] == []
    pages = [link.partition(".io/gibbsite/")[2] for link in links if ".io/gibbsite/" in link and link.endswith(".html")]
    assert [each for each in pages if not (ROOT / "docs" / each).with_suffix(".md").exists()] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600


def test_there_are_scripts_for_everybody_in_the_gallery() -> None:
    scripts = list((ROOT / "examples" / "gallery").glob("*/*.py"))
    assert len(scripts) >= 25
    for script in scripts:
        title, rule = script.read_text(encoding="utf-8").splitlines()[1:3]
        assert len(title) == len(rule), f"{script}: the title of a page is underlined in full"


def public_objects(home: types.ModuleType, name: str = "gs") -> dict[str, Any]:
    """Return what a namespace and those inside of it list as public, with the names that users write."""
    listed = {f"{name}.{each}": getattr(home, each) for each in {*home.__all__, *(dir(home) if home is gs else ())}}
    found = {each: value for each, value in listed.items() if not isinstance(value, types.ModuleType)}
    for each, value in listed.items():
        if isinstance(value, types.ModuleType):
            found |= public_objects(value, each)
    return {each: value for each, value in found.items() if not each.startswith("gs.__")}


def test_links_of_the_site_have_titles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    site_pages = importlib.import_module("site_pages")
    source = ["see [dogs.md](dogs.md), [docs/lab.md](lab.md), [this](lab.md) and [a file](../CHANGELOG.md)"]
    site_pages.link_to_repository(None, "page", source)
    outside = f"{site_pages.REPOSITORY}/CHANGELOG.md"
    assert source == [f"see [](dogs.md), [](lab.md), [this](lab.md) and [a file]({outside})"]


def test_every_public_name_is_on_a_page_of_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    site_pages = importlib.import_module("site_pages")
    site_pages.write_api_pages(tmp_path)
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.glob("*.md")]
    names = [name for page in pages for name in re.findall(r"^   ([\w.]+)$", page, re.M)]
    assert len(names) == len(set(names))
    described = [attrgetter(name)(gs) for name in names]
    objects = public_objects(gs)
    assert len(objects) > 200
    assert [name for name, value in objects.items() if not any(value is other for other in described)] == []


def test_the_table_of_the_papers_names_every_experiment_and_tests_that_exist() -> None:
    text = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")
    table = text.partition("| document | item | status | command |")[2].partition("\n## ")[0]
    commands = [line.split("|")[4].strip(" `") for line in table.splitlines()[2:] if line.startswith("|")]
    named = {command.removeprefix("gibbsite reproduce ") for command in commands if command.startswith("gibbsite")}
    assert named == set(gs.lab.NAMES)
    proofs = [command.removeprefix("pytest ") for command in commands if command.startswith("pytest")]
    assert len(proofs) >= 10
    assert [path for path in proofs if not (ROOT / path).is_file()] == []
    assert all("missing" not in line.split("|")[3] for line in table.splitlines()[2:] if line.startswith("|"))
