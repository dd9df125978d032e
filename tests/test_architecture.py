"""The design, enforced: data flows one way, imports are lazy, files stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gibbsite

SOURCE = Path(gibbsite.__file__).parent
# a package may use itself and the packages before it
ORDER = [
    {"_common", "errors"},
    {"_numba"},
    {"models"},
    {"formats"},
    {"graphs"},
    {"scans"},
    {"kernels"},
    {"sampling"},
    {"results"},
    {"inference"},
    {"learn"},
    {"applications"},
    {"testing"},
    {"lab"},
    {"cli"},
    {"__main__"},
]


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "gibbsite":
                names = [f"gibbsite.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("gibbsite.")}
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    if path.name == "__init__.py" and path.parent == SOURCE:
        return
    rank = {name: number for number, names in enumerate(ORDER) for name in names}
    mine = room(path)
    assert mine in rank, f"{mine} has no place in the order"
    for other in imported_rooms(path):
        allowed = rank[other] < rank[mine] or rank[other] == rank[mine]
        assert allowed, f"{mine} must not import {other}"


@pytest.mark.parametrize("client", ["applications", "lab"])
def test_only_the_command_line_and_the_lab_import_client_packages(client: str) -> None:
    users = {room(path) for path in SOURCE.rglob("*.py") if client in imported_rooms(path)}
    assert users <= {client, "lab", "cli"}


def imports_numba(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(name.split(".")[0] in ("numba", "llvmlite") for name in names):
            return True
    return False


def test_one_folder_knows_numba() -> None:
    knowing = {room(path) for path in SOURCE.rglob("*.py") if imports_numba(path)}
    assert knowing == {"_numba"}


def test_no_package_has_too_many_modules() -> None:
    crowded = {
        str(folder.relative_to(SOURCE)): len(modules)
        for folder in [SOURCE, *(path for path in SOURCE.rglob("*") if path.is_dir())]
        if len(modules := [path for path in folder.glob("*.py") if path.name != "__init__.py"]) > 20
    }
    assert crowded == {}


def test_no_module_is_too_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    assert {str(path.relative_to(SOURCE)): lines for path, lines in lengths.items() if lines > 450} == {}


def test_every_package_has_a_docstring() -> None:
    for path in SOURCE.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = ["numba", "scipy", "xarray", "matplotlib", "pandas", "rich", "click", "networkx"]
    assert fresh(f"import gibbsite, sys; print([m for m in {heavy} if m in sys.modules])") == "[]"
    code = f"import gibbsite as gs, sys; gs.ising_grid((3, 3)); print([m for m in {heavy} if m in sys.modules])"
    assert fresh(code) == "[]"


def test_every_public_name_exists_and_is_documented() -> None:
    for name in gibbsite.__all__:
        assert getattr(gibbsite, name).__doc__, name
    assert set(gibbsite.__all__) <= set(dir(gibbsite))
    assert not {"os", "Any", "importlib"} & set(dir(gibbsite))
    with pytest.raises(AttributeError):
        _ = gibbsite.nonsense


def test_each_kernel_has_one_signature_per_combination() -> None:
    from gibbsite.sampling.sweep import sweep_sites

    for model in (gibbsite.ising_grid((3, 3)), gibbsite.ising_grid((4, 5), coupling=0.7, field=1.0)):
        for seed in range(2):
            gibbsite.sample(model, sweeps=5, rng=seed, progress=False)
    lattice = [s for s in sweep_sites.signatures if "LatticeGraph" in str(s) and "Raster" in str(s)]
    gibbs = [s for s in lattice if str(s).startswith("(GibbsParameters(HeatBath")]
    assert len(gibbs) == 1
