"""The public names: few at the top, the others in namespaces, and the changelog lists those that moved."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gibbsite as gs

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
NAMESPACES = {
    *(
        "applications",
        "errors",
        "exact",
        "factors",
        "formats",
        "graphs",
        "importance",
        "inference",
        "influence",
        "kernels",
    ),
    *("lab", "learn", "log_z", "models", "plots", "random", "recorders", "results", "scans", "testing"),
}


def moved_names() -> list[tuple[str, str]]:
    """Return old name and namespace of all rows of the table in the changelog."""
    table = CHANGELOG.read_text(encoding="utf-8").partition("### Changed names")[2]
    rows = re.findall(r"^\| `gs\.(\w+)` \| (.*) \|$", table, re.M)
    return [(name, space) for space, names in rows for name in re.findall(r"`(\w+)`", names)]


def test_importing_the_package_loads_next_to_nothing() -> None:
    """While it is being imported, an interrupt cannot be answered with a sentence."""
    code = (
        "import sys; import gibbsite.__main__; print(*{'typing', 're', 'functools', 'importlib.util'} & {*sys.modules})"
    )
    source = {"PYTHONPATH": str(Path(gs.__file__).parents[1])}
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=source)
    assert found.stdout.split() == []


def test_dir_shows_public_names_only() -> None:
    shown = {name for name in dir(gs) if not name.startswith("__")}
    assert shown == {*gs.__all__, *NAMESPACES}
    assert not NAMESPACES & set(gs.__all__)
    assert len(gs.__all__) <= 69


def test_a_name_is_looked_up_once() -> None:
    code = "import gibbsite as gs; gs.sample; print('sample' in vars(gs), 'infer' in vars(gs), 'infer' in dir(gs))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "True"]


def test_the_changelog_lists_names_that_moved() -> None:
    names = moved_names()
    assert len(names) >= 90
    assert len(dict(names)) == len(names)


@pytest.mark.parametrize(("name", "space"), moved_names(), ids=lambda text: str(text))
def test_moved_names_are_in_their_namespace_and_not_at_the_top(name: str, space: str) -> None:
    assert name in dir(getattr(gs, space))
    assert getattr(getattr(gs, space), name) is not None
    with pytest.raises(AttributeError, match=f"module 'gibbsite' has no attribute '{name}'"):
        getattr(gs, name)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'gibbsite' has no attribute 'nonsense'"):
        _ = gs.nonsense
    with pytest.raises(AttributeError, match=r"module 'gibbsite\.kernels' has no attribute 'nonsense'"):
        _ = gs.kernels.nonsense
