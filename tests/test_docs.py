"""The documents are true: their Python runs, their kernel is right."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

import gibbsite as gs
from gibbsite.testing import check_kernel

ROOT = Path(__file__).parent.parent


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)


def run_as_module(name: str, code: str) -> types.ModuleType:
    """Run code as an importable module, as a user's file would be."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(code, f"{name}.py", "exec"), module.__dict__)
    return module


def test_the_example_kernel_is_short_and_passes_everything() -> None:
    kernel_code, proof, use = python_blocks(ROOT / "docs" / "new_kernel.md")
    assert len(kernel_code.strip().splitlines()) < 60
    module = run_as_module("metropolis_from_the_docs", kernel_code)
    # on every kind, where the step differs; every scan is proved with the kernels of the library
    report = check_kernel(module.Metropolis(), scans_of=lambda n: [gs.Systematic()])
    assert report.passed, str(report)
    assert {"invariance", "reversibility", "ergodicity", "law", "repeat"} == {c.name for c in report.checks}
    assert "check_kernel(Metropolis())" in proof
    exec(use, module.__dict__)
    assert module.__dict__["result"].diagnostics.converged


NAMES = ("denoise", "densities", "diagnostics", "dogs", "learn", "poisson", "results")
PAGES = ["README.md", *(f"docs/{page}.md" for page in NAMES)]


@pytest.mark.parametrize("page", PAGES)
def test_code_of_pages_runs(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for number, block in enumerate(python_blocks(ROOT / page)):
        run_as_module(f"{Path(page).stem}_{number}", block)
        said = re.findall(r"^print\(.*\)  # (.*)$", block, re.M)  # what comes out stands behind it
        assert not said or capsys.readouterr().out.splitlines() == said


def test_changelog_names_the_version() -> None:
    assert gs.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
