"""What is shipped is registered, what is registered is proved, and lists elsewhere agree with it."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gibbsite as gs
from gibbsite._common.loading import read_declarations
from gibbsite.formats import FORMATS
from gibbsite.formats.registry import registered_formats
from gibbsite.graphs.graph import KINDS
from gibbsite.inference import METHODS
from gibbsite.kernels.registry import default_kernel, make_kernel, registered_kernels
from gibbsite.scans.registry import make_scan, registered_scans
from gibbsite.testing import KERNELS, check_scan, scans

ROOT = Path(__file__).parent.parent
# kernels of applications are registered when these are loaded
PACKAGES = ("gibbsite.kernels.", "gibbsite.inference.importance.")
SHIPPED = [one for one in registered_kernels() if one.kernel.__module__.startswith(PACKAGES)]


def subclasses(base: type) -> set[type]:
    found = {one for child in base.__subclasses__() for one in {child, *subclasses(child)}}
    return {one for one in found if not inspect.isabstract(one)}


def test_every_kernel_of_the_package_is_registered() -> None:
    written = {one for one in subclasses(gs.kernels.Kernel) if one.__module__.startswith(PACKAGES)}
    assert written == {one.kernel for one in SHIPPED}


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_every_registered_kernel_is_proved_and_public(one: gs.kernels.registry.Registration) -> None:
    if one.kernel.kinds & set(KINDS):
        assert one.proof_instances(), "a kernel of states has instances for the conformance tests"
    else:
        assert isinstance(one.proof, str), "other kernels name the file with their proofs"
        assert f"{one.name}(" in (ROOT / one.proof).read_text(encoding="utf-8")
    space = gs.kernels if one.kernel.__module__.startswith("gibbsite.kernels.") else gs.importance
    assert getattr(space, one.name) is one.kernel
    assert set(one.arguments) <= set(one.methods)
    for name, arguments in one.recommend.items():
        assert name.startswith(one.name)
        assert one.kernel(**arguments).exact, "no number of draws makes up for a bias"
    for task in {task for tasks in one.methods.values() for task in tasks}:
        assert task in ("MAP", "MMAP") or one.kernel.estimates


def test_the_kernels_to_be_proved_are_the_instances() -> None:
    assert {type(kernel) for kernel in KERNELS} >= {one.kernel for one in SHIPPED if one.proof_instances()}


def test_every_kind_has_one_default_kernel() -> None:
    named = [kind for one in SHIPPED for kind in one.default_for]
    kinds = [*KINDS, *(kind for kind in named if kind != "discrete")]
    assert len(kinds) == len(set(kinds)) == len(named) - 1 + len(KINDS)
    assert set(kinds) == {kind for one in SHIPPED for kind in one.kernel.kinds}
    assert isinstance(default_kernel(gs.graphs.compile_graph(gs.ising_grid((2, 2)))), gs.Gibbs)


def test_names_are_read_without_loading_what_they_are_of() -> None:
    declared = {name: tasks for one in read_declarations("kernels") for name, tasks in one.get("methods", {}).items()}
    assert declared == {name: tasks for one in SHIPPED for name, tasks in one.methods.items()}
    assert declared.items() <= METHODS.items()
    for name in declared:
        assert isinstance(make_kernel(name), gs.kernels.Kernel)
    named = {one["name"] for one in read_declarations("scans") if one.get("name")}
    assert named == {one.name for one in registered_scans()} - {None}
    for name in named:
        assert isinstance(make_scan(name), gs.scans.Scan)


def test_every_scan_of_the_package_is_registered() -> None:
    written = {one for one in subclasses(gs.scans.Scan) if one.__module__.startswith("gibbsite.scans.")}
    shipped = [one for one in registered_scans() if one.scan.__module__.startswith("gibbsite.")]
    assert written == {one.scan for one in shipped}
    assert [one.scan for one in shipped if one.default] == [gs.Systematic]
    for scan in written:
        assert getattr(gs.scans, scan.__name__) is scan
    assert {type(scan) for scan in scans(3)} >= written


@pytest.mark.parametrize("scan", scans(4), ids=str)
def test_scans_do_what_they_say(scan: gs.scans.Scan) -> None:
    report = check_scan(scan)
    assert report.passed, str(report)
    assert len(report.checks) == 2 + scan.once


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_lists_in_the_documents_are_complete() -> None:
    features, commands = text("docs/features.md"), text("docs/command_line.md")
    for name in [*(one.name for one in SHIPPED), *(one.scan.__name__ for one in registered_scans())]:
        assert f"`{name}`" in features, name
    assert f"[--method {'|'.join(METHODS)}]" in re.sub(r"\|\n +", "|", commands)
    (listed,) = re.findall(r"`gibbsite convert IN OUT` \| convert between (.*), each also gzipped", commands)
    assert listed.split() == [f".{name}" for name in FORMATS]


def test_lists_in_docstrings_and_help_are_complete() -> None:
    from gibbsite.cli.convert import command as convert
    from gibbsite.cli.infer import command as infer

    for method in METHODS:
        assert f'"{method}"' in str(gs.infer.__doc__), method
    choices = "{" + ", ".join(f'"{name}"' for name in FORMATS) + "}"
    for function in (gs.read_model, gs.write_model):
        assert f"format : {choices}, optional" in str(function.__doc__)
    for one in registered_formats().values():
        assert one.suffixes[0] == f".{one.name}"
        for suffix in one.suffixes:
            assert re.search(rf"\{suffix}\b", str(gs.read_model.__doc__)), suffix
        for command in (convert, infer):
            assert re.search(rf"\{one.suffixes[0]}\b", str(command.help)), one.name


def test_production_code_does_not_import_the_proofs() -> None:
    source = Path(gs.__file__).parent
    users = [
        path
        for path in source.rglob("*.py")
        if re.search(r"import gibbsite.testing|from gibbsite.testing|gs\.testing", path.read_text(encoding="utf-8"))
    ]
    assert users == []


def first_block(page: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", text(f"docs/{page}.md"), re.S)[:1]
    return str(code)


def test_a_file_and_at_most_a_line_make_a_kernel_scan_format_or_kind_part_of_the_library(tmp_path: Path) -> None:
    """In a copy of the package, of links."""
    source, copy = Path(gs.__file__).parent, tmp_path / "gibbsite"
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            link = copy / path.relative_to(source)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
    files = {
        "kernels/gibbs/barker.py": first_block("new_kernel"),
        "scans/tossed.py": first_block("new_scan"),
        "formats/factors_json.py": first_block("new_format"),
        "graphs/kinds/apart.py": first_block("new_kind"),
    }
    for place, code in files.items():
        (copy / place).write_text(code, encoding="utf-8")
    lines = re.findall(
        r"^    (from gibbsite\.\S+ import \S+ as \S+)$", text("docs/new_kernel.md") + text("docs/new_scan.md"), re.M
    )
    for space, line in zip(("kernels", "scans"), lines, strict=True):
        stub = copy / space / "__init__.pyi"
        public = stub.read_text(encoding="utf-8")
        stub.unlink()
        stub.write_text("\n".join([public, line, ""]), encoding="utf-8")
    script = """
import gibbsite as gs
from gibbsite.cli.parameters import SCANS
from gibbsite.inference import METHODS
from gibbsite.scans.registry import make_scan
from gibbsite.graphs.support.possible import alive_states
from gibbsite.testing import KERNELS, scans
assert gs.__file__.startswith(%r)
assert METHODS["barker"] == ("MAR", "MAP")
assert gs.kernels.Barker() in KERNELS and gs.kernels.registry.make_kernel("barker") == gs.kernels.Barker()
assert "tossed" in SCANS and make_scan("tossed") == gs.scans.TossedScan() in scans(3)
assert "factors" in gs.formats.FORMATS
coin = gs.FactorGraph({"a": 2, "b": 3}, [("a", [1, 3]), ("b", [1, 1, 0])])
gs.write_model(coin, %r)
graph = gs.graphs.compile_graph(coin)
assert graph.kind == "apart" and "apart" in gs.Gibbs.kinds
assert gs.graphs.color_sites(graph).tolist() == [0, 0]
assert alive_states(graph).tolist() == [True, True, True, True, False]
assert abs(gs.mean_field(coin, progress=False).marginals["a"][1] - 0.75) < 1e-12
print(gs.read_model(%r))
"""
    model = str(tmp_path / "coin.factors")
    done = subprocess.run(
        [sys.executable, "-c", script % (str(tmp_path), model, model)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "GIBBSITE_CACHE_DIR": "off"},
    )
    assert done.stdout.strip() == "FactorGraph(2 sites of 2 to 3 states, 2 factors in 2 groups)", done.stderr
