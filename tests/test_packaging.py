"""What is declared about the package is what is tried, shipped and seen by type checkers."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import gibbsite
from gibbsite.formats import EXAMPLES
from gibbsite.formats.examples import example_path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / ".ci" / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def requirements() -> dict[str, str]:
    extras = PROJECT["project"]["optional-dependencies"]
    tried = [
        entry
        for extra in ("arviz", "report", "images", "networkx", "dimod", "test")
        for entry in extras[extra]
    ]
    found = [re.match(r"([\w-]+)>=([\d.]+)", entry) for entry in PROJECT["project"]["dependencies"] + tried]
    return {each[1]: each[2] for each in found if each}


def test_lower_bounds_are_those_that_are_tried() -> None:
    lowest = pins("lowest.txt")
    for name, bound in requirements().items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", lowest[name]), name


def test_every_requirement_is_pinned() -> None:
    pinned = {name.lower() for name in pins("pinned.txt")}
    assert set(requirements()) <= pinned


def test_numba_is_bounded_by_what_was_tried() -> None:
    from gibbsite._compile.lean import _TRIED

    (numba,) = [entry for entry in PROJECT["project"]["dependencies"] if entry.startswith("numba")]
    major, minor = max(_TRIED)
    assert numba.endswith(f",<{major}.{minor + 1}")


def test_examples_are_in_the_package_with_their_notice() -> None:
    notice = example_path("alarm").with_name("NOTICE")
    text = notice.read_text(encoding="utf-8")
    package = Path(gibbsite.__file__).parent
    for name in EXAMPLES:
        assert example_path(name).is_relative_to(package)
        assert f"{name}.bif" in text
        assert (ROOT / "examples" / f"{name}.bif").read_bytes() == example_path(name).read_bytes()
    assert "creativecommons.org/licenses/by-sa/3.0" in text
    project = PROJECT["project"]
    assert notice.relative_to(ROOT).as_posix() in project["license-files"]
    assert "CC-BY-SA-3.0" in project["license"]


def test_type_checkers_see_the_names_and_no_others() -> None:
    stub = Path(gibbsite.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = [(node.module, alias) for node in imports for alias in node.names]
    seen = {alias.asname: module for module, alias in names if alias.asname == alias.name}
    assert seen == gibbsite._MODULE_OF
    others = [ast.unparse(node) for node in tree.body[1:] if not isinstance(node, ast.ImportFrom)]
    assert others == ["__version__: str"]  # a __getattr__ would let every misspelled name pass
    assert stub.with_name("py.typed").exists()
