"""What is declared about the package is what is tried, shipped and seen by type checkers."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gibbsite
from gibbsite.formats import EXAMPLES
from gibbsite.formats.files import example_path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / ".ci" / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def requirements() -> dict[str, str]:
    """Return the lower bound of everything that the tests install."""
    extras = PROJECT["project"]["optional-dependencies"]
    own = re.fullmatch(r"gibbsite\[(.*)\]", extras["all"][0])
    assert own
    tried = [entry for extra in own[1].split(",") for entry in extras[extra]]
    groups = PROJECT["dependency-groups"]
    entries = [*PROJECT["project"]["dependencies"], *tried, *groups["test"], *groups["docs"]]
    found = [re.match(r"([\w-]+)>=([\d.]+)", entry) for entry in entries]
    return {each[1]: each[2] for each in found if each}


def test_lower_bounds_are_those_that_are_tried() -> None:
    lowest = pins("lowest.txt")
    for name, bound in requirements().items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", lowest[name]), name


def test_the_lowest_versions_go_together() -> None:
    # pandas was built for NumPy 2 from 2.2.2 on; older ones cannot be imported with it
    lowest = {name: tuple(map(int, version.split("."))) for name, version in pins("lowest.txt").items()}
    assert lowest["numpy"] >= (2, 0)
    assert lowest["pandas"] >= (2, 2, 2)
    assert lowest["h5py"] >= (3, 11)  # likewise
    assert lowest["sphinx-design"] >= (0, 6, 1)  # the first that allows Sphinx 8.1


def test_every_requirement_is_pinned() -> None:
    pinned = {re.sub(r"[-_.]+", "-", name).lower() for name in pins("pinned.txt")}
    assert set(requirements()) <= pinned


def test_hashes_are_those_of_the_pinned_versions() -> None:
    text = (ROOT / ".ci" / "hashes.txt").read_text(encoding="utf-8")
    entries = [entry.split() for entry in text.replace("\\\n", " ").splitlines()]
    normal = {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins("pinned.txt").items()}
    assert dict(entry[0].split("==") for entry in entries) == normal
    for name, *hashes in entries:  # and nothing else, as an address to download from
        assert hashes, name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), name


def test_numba_has_no_upper_bound_because_untried_versions_have_fallbacks() -> None:
    from gibbsite._numba.lean import _TRIED

    (numba,) = [entry for entry in PROJECT["project"]["dependencies"] if entry.startswith("numba")]
    assert "<" not in numba
    assert ".".join(map(str, max(_TRIED))) == ".".join(pins("pinned.txt")["numba"].split(".")[:2])


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


@pytest.mark.parametrize("notice", sorted((ROOT / "src").rglob("NOTICE")), ids=lambda path: path.parent.name)
def test_every_notice_is_a_licence_file_of_the_package_and_of_the_recipe(notice: Path) -> None:
    name = notice.relative_to(ROOT).as_posix()
    assert name in PROJECT["project"]["license-files"]
    assert f"    - {name}\n" in (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    assert name in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_notice_of_the_lab_names_the_paragraph_and_its_licence() -> None:
    from gibbsite.lab.herded import example

    text = Path(example.__file__).with_name("NOTICE").read_text(encoding="utf-8")
    assert all(said in text for said in ("example.py", "PARAGRAPH", "creativecommons.org/licenses/by-sa/3.0"))


def wheel_files(folder: Path) -> set[str]:
    """Return what is in the wheel: built where the builder is installed, otherwise as configured."""
    if importlib.util.find_spec("hatchling") is not None:
        from hatchling.builders.wheel import WheelBuilder

        (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
        with zipfile.ZipFile(path) as wheel:
            return set(wheel.namelist())
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert packages == {"packages": ["src/gibbsite"]}
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/gibbsite"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    if not listed:
        pytest.skip("neither hatchling nor a repository tells what is shipped")
    return {name.removeprefix("src/") for name in listed if (ROOT / name).exists()}


def test_the_wheel_holds_what_runs_from_it_and_nothing_else(tmp_path: Path) -> None:
    files = wheel_files(tmp_path)
    assert {"gibbsite/py.typed", "gibbsite/formats/networks/NOTICE", "gibbsite/cli/infer.py"} <= files
    assert {f"gibbsite/formats/networks/{name}.bif" for name in EXAMPLES} <= files
    assert {f"gibbsite/applications/entities/{name}" for name in ("english.ner", "NOTICE")} <= files
    ours = {name for name in files if not name.startswith("gibbsite-")}  # the rest is metadata
    assert {Path(name).parts[0] for name in ours} == {"gibbsite"}
    assert {Path(name).suffix for name in ours} <= {".py", ".pyi", ".typed", ".css", ".js", ".bif", ".ner", ""}
    assert "gibbsite/cli/bench.py" not in files


def test_the_wheel_runs_from_a_folder_without_a_home(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    place = tmp_path / "installed"
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(place)
    for folder in (place, *(each for each in place.rglob("*") if each.is_dir())):
        folder.chmod(0o555)
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    env |= {"PYTHONPATH": str(place), "HOME": str(tmp_path / "none" / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "import gibbsite as gs; print(gs.__file__, gs.infer(gs.example('asia')).kind)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.stderr, done.stdout.split()) == ("", [str(place / "gibbsite" / "__init__.py"), "exact"])


def test_every_command_is_of_the_package() -> None:
    from gibbsite.cli import _COMMANDS

    folder = Path(gibbsite.__file__).parent / "cli"
    assert "bench" not in _COMMANDS
    for path in folder.glob("*.py"):
        assert "benchmarks" not in path.read_text(encoding="utf-8")  # which are not shipped


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert gibbsite.__version__ == version
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in citation
    assert re.search(r"\ndate-released: \d{4}-\d\d-\d\d\n", citation)
    assert f'version = "{version}"' in (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


def test_the_recipe_needs_what_the_package_needs() -> None:
    lines = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8").splitlines()
    start, end = lines.index("  run:"), lines.index("test:")
    listed = {line.removeprefix("    - ").replace(" ", "") for line in lines[start + 1 : end]}
    assert listed == {f"python{PROJECT['project']['requires-python']}", *PROJECT["project"]["dependencies"]}


def test_workflows_name_actions_by_their_commits() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    actions = [action for text in texts for action in re.findall(r"uses: (.*)", text)]
    assert len(actions) > 10
    assert [each for each in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", each)] == []
    checkouts = sum(text.count("uses: actions/checkout@") for text in texts)
    assert checkouts == sum(text.count("persist-credentials: false") for text in texts)


def test_the_image_is_sent_what_it_copies() -> None:
    copied = re.findall(r"^COPY (.*) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M)
    sent = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.M)
    assert sorted(name for line in copied for name in line.split()) == sorted(sent)
    assert all((ROOT / name).exists() for name in sent)


def test_every_version_of_python_is_tested() -> None:
    names = [entry.rpartition(" ")[2] for entry in PROJECT["project"]["classifiers"] if ":: Python :: 3." in entry]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: (\[.*\])", workflow)
    assert ast.literal_eval(matrix) == names
    assert PROJECT["project"]["requires-python"] == f">={names[0]}"


def test_forms_of_issues_have_the_parts_that_are_shown() -> None:
    yaml = pytest.importorskip("yaml")
    forms = list((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert forms
    for form in forms:
        text = form.read_text(encoding="utf-8")
        for part in yaml.safe_load(text)["body"]:
            assert set(part["attributes"]) <= {"label", "description", "render", "options", "value", "placeholder"}, (
                form
            )


def test_type_checkers_see_the_names_and_no_others() -> None:
    stub = Path(gibbsite.__file__).with_suffix(".pyi")
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = [(node.module, alias) for node in imports for alias in node.names]
    seen = {alias.asname: module for module, alias in names if alias.asname == alias.name}
    assert sorted(seen) == gibbsite._names
    others = [ast.unparse(node) for node in tree.body[1:] if not isinstance(node, ast.ImportFrom)]
    assert others == ["__version__: str"]  # a __getattr__ would let every misspelled name pass
    assert stub.with_name("py.typed").exists()
