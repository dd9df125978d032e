"""Compilation: the disk cache is never an obstacle and never stale, and dispatch finds the right function."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gibbsite._numba import announcing, jit
from gibbsite._numba import cache as disk
from gibbsite._numba.files import read_checked
from gibbsite._numba.jit import (
    Entry,
    called,
    compile_always,
    compiled,
    compiled_loop,
    generic,
    implement,
    inlined,
    interpreted,
    on_compile,
)
from gibbsite._numba.sources import hash_sources
from gibbsite.scans.base import Raster, in_order

PACKAGE = Path(jit.__file__).parent.parent

needs_compiler = pytest.mark.skipif(jit.DISABLED, reason="compilation is switched off")


def double(x: Any) -> Any:
    return 2 * x


def first(pair: Any) -> Any:
    return pair[0]


class Foreign(NamedTuple):
    """A type from outside the package."""

    n: int


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory for functions compiled in this test."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(disk, "cache_directory", lambda: folder)
    return folder


def files(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.rglob(f"*.{kind}")) if folder.is_dir() else []


def compiles(function: Callable[[], object]) -> bool:
    """Call a function and tell whether anything was compiled."""
    told = []
    with on_compile(lambda: told.append(True)):
        function()
    return bool(told)


# ---- the cache in one process


@needs_compiler
def test_the_second_process_compiles_nothing(cache: Path) -> None:
    assert compiles(lambda: compiled(double)(1.5))
    assert len(files(cache, "nbi")) == len(files(cache, "nbc")) == 1
    again = compiled(double)
    assert not compiles(lambda: again(1.5))
    assert again(1.5) == 3.0


@needs_compiler
def test_two_processes_that_fill_one_cache_keep_their_code_apart(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the index before either has written it, and both are right for everybody afterwards."""
    one, other = Entry(double, {"nogil": True}), Entry(double, {"nogil": True})
    assert one(3) == 6
    with monkeypatch.context() as patch:
        other._kept = disk.decorate(double, {"nogil": True}, cache=True)
        patch.setattr(other._kept._cache, "_read_index", dict)  # type: ignore[attr-defined]
        assert other(np.ones(2)).tolist() == [2.0, 2.0]
    third = Entry(double, {"nogil": True})
    assert third(3) == 6
    assert third(np.ones(2)).tolist() == [2.0, 2.0]


@needs_compiler
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("size", [0, 1, 10, 100])
def test_torn_files_are_compiled_again(kind: str, size: int, cache: Path) -> None:
    assert compiled(double)(1.5) == 3.0
    for path in files(cache, kind):
        assert path.stat().st_size > size
        os.truncate(path, size)
    damaged = compiled(double)
    assert compiles(lambda: damaged(1.5))
    assert damaged(1.5) == 3.0
    assert damaged(2) == 4, "another type in the same process"
    # the cache is usable again
    assert compiled(double)(1.5) == 3.0
    assert not compiles(lambda: compiled(double)(1.5))


@needs_compiler
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_torn_while_the_process_runs(kind: str, cache: Path) -> None:
    writer = compiled(double)
    writer(1.5)
    before = set(files(cache, kind))
    writer(2)
    later = set(files(cache, kind)) - before or before  # the index is one file for all types
    reader = compiled(double)
    assert reader(1.5) == 3.0, "loaded before the damage"
    for path in later:
        os.truncate(path, 10)
    assert reader(2) == 4
    assert reader(1.5) == 3.0


@needs_compiler
def test_a_cache_that_disappears(cache: Path) -> None:
    entry = compiled(double)
    assert entry(1.5) == 3.0
    shutil.rmtree(cache)
    assert entry(2) == 4
    shutil.rmtree(cache, ignore_errors=True)
    cache.touch()  # and can not be made again
    assert entry(np.float32(2)) == 4.0
    assert compiled(double)(1.5) == 3.0


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on the size of files")
@pytest.mark.parametrize("most", [10, 1000])
def test_a_disk_that_is_full_leaves_no_files_behind(most: int, cache: Path) -> None:
    """Files are limited in size: not even the index fits, or only the index."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        entry = compiled(double)
        assert entry(1.5) == 3.0
        assert entry(2) == 4
        hash_sources(PACKAGE, cache, "1")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    left = [path.name for path in cache.rglob("*") if not path.name.startswith("sources-")]
    assert left == []
    assert all(read_checked(path) is not None for path in cache.glob("sources-*"))


@needs_compiler
def test_a_bit_that_is_flipped_anywhere_is_noticed(cache: Path) -> None:
    """The campaign ``python -m tests.campaigns.damage`` does so in whole runs."""
    assert compiled(double)(1.5) == 3.0
    whole = {path: path.read_bytes() for path in [*files(cache, "nbi"), *files(cache, "nbc")]}
    assert len(whole) == 2
    rng = np.random.default_rng(1)
    for path, content in whole.items():
        for bit in rng.integers(8 * len(content), size=1000):
            hurt = bytearray(content)
            hurt[bit >> 3] ^= 1 << (bit & 7)
            path.write_bytes(hurt)
            assert read_checked(path) is None
        hurt = compiled(double)
        assert compiles(lambda hurt=hurt: hurt(1.5))
        assert hurt(1.5) == 3.0
        assert not compiles(lambda: compiled(double)(1.5)), "the entry is as good as new"
        for each in files(cache, "nb?"):
            each.unlink()
        for each, text in whole.items():
            each.write_bytes(text)


@needs_compiler
def test_files_that_changed_places_are_noticed(cache: Path) -> None:
    assert compiled(double)(1.5) == 3.0
    assert compiled(double)(2) == 4
    one, other = files(cache, "nbc")
    one.write_bytes(other.read_bytes())
    assert read_checked(one) is None
    assert read_checked(other) is not None


@needs_compiler
def test_errors_of_the_function_itself_are_passed_on(cache: Path) -> None:
    def fail(x: int) -> int:
        if x == 3:
            raise ValueError("three")
        return x

    entry = compiled(fail)
    assert entry(1) == 1
    with pytest.raises(ValueError, match="three"):
        entry(3)


@needs_compiler
def test_types_of_others_are_not_kept_on_disk(cache: Path) -> None:
    entry = compiled(first)
    for value in (Foreign(1), (Foreign(1), 2), (Raster(3), (4, Foreign(1)))):
        entry(value)
    assert files(cache, "nbi") == files(cache, "nbc") == []
    assert entry(Foreign(7)) == 7
    assert entry(Raster(3)) == 3
    assert len(files(cache, "nbc")) == 1
    entry((Raster(3), 4.0))
    assert len(files(cache, "nbc")) == 2
    assert len(entry.signatures) == 5


def test_outside_kernels_run() -> None:
    """A kernel whose parameters are a type of this module; nothing of it goes to the disk."""
    assert not jit._are_ours(Foreign(1))
    assert not jit._are_ours((1, (Raster(2), Foreign(1))))
    assert jit._are_ours((1, (Raster(2), in_order(np.zeros(1, np.int32)))))
    assert jit._are_ours((np.zeros(3),))


# ---- where the cache is


def find_directory(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Path | None:
    for name in ("GIBBSITE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found: Path | None = jit.cache_directory.__wrapped__()
    return found


def test_the_directory_is_chosen_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(tmp_path / "mine"))
    assert mine is not None
    assert mine.parent == tmp_path / "mine"
    assert list(mine.iterdir()) == []
    for word in ("off", "OFF", "Off"):
        assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=word) is None
    if sys.platform == "linux":
        xdg = find_directory(monkeypatch, XDG_CACHE_HOME=str(tmp_path / "xdg"))
        assert xdg == tmp_path / "xdg" / "gibbsite" / mine.name
        home = find_directory(monkeypatch, HOME=str(tmp_path))
        assert home == tmp_path / ".cache" / "gibbsite" / mine.name


def test_an_unusable_directory_is_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(tmp_path / "file" / "cache")) is None
    assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(tmp_path / "file")) is None


needs_owners = pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists")


@needs_owners
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(
    mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(folder)) is None
    assert list(folder.iterdir()) == []
    (record,) = caplog.records
    said = record.getMessage()
    assert record.levelname == "WARNING"
    assert str(folder) in said
    assert "can be written by other users" in said
    assert "\n" not in said
    folder.chmod(0o755)
    assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(folder)) is not None


@needs_owners
def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        folder = Path("/")
    assert find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(folder)) is None
    assert "belongs to another user" in caplog.text


@needs_owners
def test_folders_and_files_are_private_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        folder = find_directory(monkeypatch, GIBBSITE_CACHE_DIR=str(tmp_path / "mine"))
    finally:
        os.umask(before)
    assert folder is not None
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)} == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.parent.glob("sources-*")} == {0o600}


@needs_compiler
@needs_owners
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_files_that_others_can_write_are_not_loaded(kind: str, cache: Path) -> None:
    assert compiled(double)(1.5) == 3.0
    for path in files(cache, kind):
        path.chmod(0o620)
    assert compiles(lambda: compiled(double)(1.5))
    assert not compiles(lambda: compiled(double)(1.5))


# ---- whole processes


def python(code: str, warn: str = "error", **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-W", warn, "-c", textwrap.dedent(code)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


RUN = """
    import warnings
    import gibbsite as gs
    from gibbsite._numba import jit

    warnings.simplefilter("ignore", gs.ConvergenceWarning)
    model = gs.ising_grid((3, 3), coupling=0.3, field=0.1)
    result = gs.sample(model, sweeps=40, rng=1, record=["energy", "draws"])
    print(result.energy.sum().hex(), result.draws.sum())
"""

SMALL = """
    import numpy as np
    from gibbsite._numba import jit
    from gibbsite._numba.random.alias import build_alias

    print(jit.cache_directory(), *build_alias(np.array([1.0, 3.0])))
"""


@needs_compiler
@pytest.mark.parametrize("place", ["off", "in a file", "a file"])
def test_without_a_cache_everything_works(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = {"off": "off", "in a file": str(tmp_path / "file" / "x"), "a file": str(tmp_path / "file")}[place]
    done = python(SMALL, GIBBSITE_CACHE_DIR=folder)
    assert done.stdout.split() == ["None", "[0.5", "1.", "]", "[1", "1]"]
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.long
@needs_compiler
def test_a_run_survives_a_damaged_cache(tmp_path: Path) -> None:
    whole = python(RUN)  # also fills the usual cache
    usual = jit.cache_directory()
    if usual is None:
        pytest.skip("there is no usual cache to copy")
    copy = tmp_path / usual.name
    shutil.copytree(usual, copy)
    code = [path for path in files(copy, "nbc") if ".sweep_sites" in path.name]
    assert code
    for path in code:
        os.truncate(path, 10)
    for number, path in enumerate(path for path in files(copy, "nbi") if ".sweep_sites" not in path.name):
        os.truncate(path, 10 if number % 2 else 0)
    hurt = python(RUN, GIBBSITE_CACHE_DIR=str(tmp_path))
    assert hurt.stdout == whole.stdout
    assert hurt.stderr.splitlines() in ([], [announcing.compiling_message("the default kernel")])  # if it took a second


VERDICT = """
    import os, sys
    import gibbsite as gs
    from gibbsite.cli import main

    model = os.environ["GIBBSITE_CACHE_DIR"] + ".uai"
    gs.write_model(gs.ising_grid((6, 6), coupling=0.1, field=0.1), model)
    words = "--method gibbs --seconds 1 --accuracy 0.05 --rng 1 --strict"
    sys.argv = ["gibbsite", "infer", model, *words.split()]
    main()
"""


@pytest.mark.long
@needs_compiler
def test_verdict_and_exit_code_do_not_depend_on_the_cache(tmp_path: Path) -> None:
    # compiling takes longer than the second that the run is given; a run that has not converged exits with 4,
    # which python() does not let pass
    said, kept = [], []
    for _ in range(2):
        said.append(python(VERDICT, GIBBSITE_CACHE_DIR=str(tmp_path / "cache")).stderr)
        kept.append(files(tmp_path / "cache", "nbi"))
    cold, warm = said
    assert kept[0] == kept[1] != []
    assert "gibbsite: compiling " not in warm
    assert all("gibbs (as asked); converged:" in said for said in (cold, warm))


STEP = """
    import numpy as np
    import gibbsite as gs
    from gibbsite._numba import jit
    from gibbsite.inference.exact.transition import unit_matrix

    model = gs.ising_grid((1, 2), coupling=0.0, field=0.25)
    matrix = unit_matrix(gs.exact.enumerate(model), gs.graphs.compile_graph(model), gs.Gibbs(), 0)
    print(jit.__file__)
    print(jit.cache_directory().name)
    print(matrix[0, 2])
"""


CHANGE = """

    @implement(weights, LatticeGraph)
    def _changed(graph, x, i, w):
        w[0], w[1] = 1.0, 3.0
        return 2, 4.0
"""


@needs_compiler
def test_a_changed_callee_is_seen(tmp_path: Path) -> None:
    """The entry point is in inference/exact/transition.py, the change in graphs/kinds/lattice.py."""
    root = tmp_path / "copy"
    shutil.copytree(PACKAGE, root / "gibbsite", ignore=shutil.ignore_patterns("__pycache__"))
    there = {"PYTHONPATH": str(root), "GIBBSITE_CACHE_DIR": str(tmp_path / "cache")}

    def look() -> tuple[str, float]:
        place, name, number = python(STEP, **there).stdout.split()
        assert Path(place) == root / "gibbsite" / "_numba" / "jit.py", "the copy must be the one that runs"
        return name, float(number)

    name, up = look()
    assert up == pytest.approx(1 / (1 + np.exp(-0.5)))
    source = root / "gibbsite" / "graphs" / "kinds" / "lattice.py"
    with open(source, "a", encoding="utf-8") as file:
        file.write(textwrap.dedent(CHANGE))
    new_name, new_up = look()
    assert new_name != name
    assert new_up == pytest.approx(0.75)


def test_a_run_without_compiler_gives_the_same_numbers() -> None:
    # NumPy warns of the overflows that random numbers are made of
    assert python(RUN, warn="ignore", NUMBA_DISABLE_JIT="1").stdout == python(RUN).stdout


# ---- dispatch


class Circle(NamedTuple):
    radius: float


class Square(NamedTuple):
    side: float


class Metric(NamedTuple):
    unit: float


class Imperial(NamedTuple):
    unit: float


@generic
def size_of(shape: Any, system: Any, factor: float) -> float:
    """Size of a shape."""
    raise NotImplementedError


@implement(size_of, Circle)
def _circle(shape: Circle, system: Any, factor: float) -> float:
    return 3.0 * shape.radius**2 * factor


@implement(size_of, Circle, Imperial)
def _circle_in_feet(shape: Circle, system: Imperial, factor: float) -> float:
    return -3.0 * shape.radius**2 * factor


@implement(size_of, Square, Metric)
def _square(shape: Square, system: Metric, factor: float) -> float:
    return shape.side**2 * factor


def both_ways(*args: Any) -> list[Callable[[], Any]]:
    """The call from Python, and from compiled code."""
    entry: Entry[Any, Any] = compiled(lambda shape, system, factor: size_of(shape, system, factor))
    return [lambda: size_of(*args), lambda: entry(*args)]


def test_the_longest_match_wins() -> None:
    for call in both_ways(Circle(2.0), Metric(1.0), 0.5):
        assert call() == 6.0
    for call in both_ways(Circle(2.0), Imperial(1.0), 0.5):
        assert call() == -6.0
    for call in both_ways(Square(2.0), Metric(1.0), 0.5):
        assert call() == 2.0


def test_no_match_is_an_error() -> None:
    with pytest.raises(TypeError, match="size_of has no implementation for Square"):
        size_of(Square(1.0), Imperial(1.0), 1.0)
    with pytest.raises(TypeError, match="size_of has no implementation for Metric"):
        size_of(Metric(1.0), Circle(1.0), 1.0)
    for call in both_ways(Square(1.0), Imperial(1.0), 1.0):
        with pytest.raises(Exception, match="size_of"):
            call()


def test_an_implementation_can_be_called_by_itself() -> None:
    assert _circle(Circle(1.0), Metric(1.0), 2.0) == 6.0
    assert size_of.__name__ == "size_of"
    assert size_of.__doc__ == "Size of a shape."


@needs_compiler
def test_loops_and_helpers_compile() -> None:
    @inlined
    def half(x: float) -> float:
        return 0.5 * x

    @compiled_loop
    def fill(out: Any) -> None:
        for i in range(out.size):
            out[i] = half(out[i])

    out = np.array([2.0, 4.0])
    fill(out)
    assert out.tolist() == [1.0, 2.0]
    assert fill.plain.__name__ == "fill"
    assert len(fill.signatures) == 1
    assert fill.options["nogil"], "chains run on threads"


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(jit._Patience, "steps", 1000.0)
    monkeypatch.setattr(jit._Patience, "least_charge", 300.0)
    monkeypatch.setattr(disk, "cache_directory", lambda: None)
    return jit._Patience


@needs_compiler
def test_small_jobs_are_interpreted_until_patience_ends(patience: Any) -> None:
    entry = Entry(double, {})
    with interpreted(2000.0):  # too large, and therefore free
        assert entry(1.0) == 2.0
    assert len(entry.signatures) == 1
    for _ in range(3):
        fresh = Entry(first, {})
        with interpreted(1.0):
            assert fresh((1, 2)) == 1
        assert not fresh.signatures
    with interpreted(200.0):  # more than the hundred that are left
        assert fresh((1, 2)) == 1
    assert len(fresh.signatures) == 1


@needs_compiler
def test_compiled_code_at_hand_is_used(patience: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(double, {})
    assert entry(1.0) == 2.0
    monkeypatch.setattr(entry, "plain", None)
    with interpreted(1.0):
        assert entry(1.5) == 3.0


@needs_compiler
def test_a_process_can_compile_always(patience: Any) -> None:
    compile_always()
    entry = Entry(double, {})
    with interpreted(0.0):
        entry(1.0)
    assert len(entry.signatures) == 1


@needs_compiler
def test_a_large_job_inside_a_small_one_is_compiled(patience: Any) -> None:
    small, large = Entry(double, {}), Entry(double, {})
    with interpreted(1.0):
        with interpreted(1e9):
            large(1.0)
        small(1.0)
    assert (len(small.signatures), len(large.signatures)) == (0, 1)


def test_helpers_run_as_plain_python_when_called_from_there() -> None:
    @called
    def wrap(x: Any) -> Any:
        return x + np.uint64(1)

    assert wrap(np.uint64(2**64 - 1)) == 0


def test_caches_of_versions_that_are_no_longer_used_are_removed(tmp_path: Path) -> None:
    for name, days in {"0123456789abcdef": 31, "fedcba9876543210": 29, "pictures": 99}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        then = time.time() - 86400 * days
        os.utime(tmp_path / name, (then, then))
    disk._remove_unused(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fedcba9876543210", "pictures"]
