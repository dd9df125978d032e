"""The key of the disk cache: it changes with the code that is compiled, and with nothing else."""

from __future__ import annotations

import ast
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import gibbsite
from gibbsite._numba.sources import code_of, contributing, hash_sources, imports_of

ROOT = Path(gibbsite.__file__).parent
DECORATORS = {"compiled", "compiled_loop", "inlined", "called", "generic", "implement", "intrinsic_for"}


def module_of(path: Path) -> str:
    parts = ("gibbsite", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in FILES.items()}


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in TEXTS.items()}


def without_docstrings(tree: Any) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            # strings that are statements have no effect wherever they stand, as those below attributes
            node.body = [
                line
                for line in node.body
                if not (
                    isinstance(line, ast.Expr)
                    and isinstance(line.value, ast.Constant)
                    and isinstance(line.value.value, str)
                )
            ]
    return ast.dump(tree)


def imported_at_the_top(body: list[ast.stmt]) -> set[str]:
    """Return what the statements of a module import, but for type checkers alone and inside of functions."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not looked for"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found |= imported_at_the_top(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                found |= imported_at_the_top(getattr(node, part, []))
    return found


@pytest.mark.parametrize("part", [0, *(pytest.param(k, marks=pytest.mark.campaign) for k in (1, 2, 3))])
def test_nothing_but_docstrings_and_comments_is_left_out(part: int) -> None:
    """Of every fourth file; the campaign takes the others."""
    for name in [*TEXTS][part::4]:
        text = TEXTS[name]
        assert without_docstrings(ast.parse(code_of(text))) == without_docstrings(ast.parse(text)), name


def test_docstrings_and_comments_are_left_out() -> None:
    code = code_of(TEXTS["gibbsite.kernels.rules"])
    assert '"""How a new' not in code
    assert '"""Replace' not in code
    assert "#" not in code


def test_all_imports_at_the_top_are_seen(trees: dict[str, ast.Module]) -> None:
    for name, tree in trees.items():
        wanted = {other for other in imported_at_the_top(tree.body) if other in FILES}
        unseen = wanted - set(imports_of(TEXTS[name]))
        # all of the folder of the compiler is in the key anyway
        assert all(other.startswith("gibbsite._numba") for other in unseen), (name, unseen)


def test_all_compiled_functions_are_in_the_key(trees: dict[str, ast.Module]) -> None:
    found = set(contributing({name: imports_of(text) for name, text in TEXTS.items()}))
    for name, tree in trees.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        marks = {word for f in functions for mark in f.decorator_list for word in names_in(mark)}
        if marks & DECORATORS:
            assert name in found, name
    for name in ("gibbsite.cli.infer", "gibbsite.results.plots.plots", "gibbsite.formats.uai", "gibbsite.testing"):
        assert name not in found


def test_compiled_functions_refer_to_modules_alone(trees: dict[str, ast.Module]) -> None:
    """Inside of another function they could use what that function imports."""
    for name, tree in trees.items():
        for outer in ast.walk(tree):
            if isinstance(outer, ast.FunctionDef) and not name.startswith("gibbsite._numba"):
                for node in ast.walk(outer):
                    if node is not outer and isinstance(node, ast.FunctionDef):
                        marks = {word for mark in node.decorator_list for word in names_in(mark)}
                        assert not marks & DECORATORS, (name, node.name)


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "gibbsite"
    shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text, path
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_edits_that_change_no_compiled_code_keep_the_key(copy: Path, tmp_path: Path) -> None:
    base = tmp_path / "cache"
    base.mkdir()
    before = hash_sources(copy, base, "1")
    edit(copy / "cli" / "infer.py", "import click", "import click\n\nSOMETHING = 1")
    edit(copy / "kernels" / "rules.py", "Replace weights by", "Put in the place of weights")
    edit(copy / "kernels" / "rules.py", "rest = 0.0", "\n    # one more remark\n    rest = 0.0  # and another")
    edit(copy / "scans" / "base.py", '"""', '"""Something else. ')
    assert hash_sources(copy, base, "1") == before
    assert hash_sources(copy, None, "1") == before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kernels/rules.py", "_BINS = 1024", "_BINS = 2048"),
        ("kernels/rules.py", "return 1.0", "return 2.0"),
        ("graphs/kinds/base.py", "import", "CONSTANT = 3\nimport"),  # imported, and compiles nothing itself
    ],
)
def test_edits_of_code_or_constants_change_the_key(file: str, old: str, new: str, copy: Path, tmp_path: Path) -> None:
    base = tmp_path / "cache"
    base.mkdir()
    before = hash_sources(copy, base, "1")
    assert hash_sources(copy, base, "1") == before
    assert hash_sources(copy, base, "2") != before
    edit(copy / file, old, new)
    assert hash_sources(copy, base, "1") != before
    assert hash_sources(copy, base, "1") == hash_sources(copy, None, "1")


def test_a_change_of_equal_size_and_time_changes_the_key(copy: Path, tmp_path: Path) -> None:
    base = tmp_path / "cache"
    base.mkdir()
    before = hash_sources(copy, base, "1")
    path = copy / "kernels" / "rules.py"
    status = path.stat()
    edit(path, "_BINS = 1024", "_BINS = 2048")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert hash_sources(copy, base, "1") != before


def test_a_damaged_key_is_found_anew(tmp_path: Path) -> None:
    before = hash_sources(ROOT, tmp_path, "1")
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    for content in (b"", whole[:20], whole[:-1], whole[:-1] + b"?"):
        kept.write_bytes(content)
        assert hash_sources(ROOT, tmp_path, "1") == before
        assert kept.read_bytes() == whole
