"""Every part of Numba that is not public can be missing: slower, and with the same numbers."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gibbsite._numba import cache, options, parts, vector
from gibbsite._numba.parts import PARTS, missing_parts, try_part

needs_compiler = pytest.mark.skipif(options.DISABLED, reason="compilation is switched off")


@pytest.fixture
def nothing_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_missing", {})
    monkeypatch.delenv("GIBBSITE_WITHOUT", raising=False)


def fail() -> None:
    raise AttributeError("_cache_file")


@pytest.mark.usefixtures("nothing_missing")
def test_a_part_is_given_up_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "gibbsite"):
        assert try_part("files", lambda: None)
        assert not try_part("files", fail)
        assert not try_part("files", lambda: None), "for good"
    assert missing_parts() == {"files": "AttributeError: _cache_file"}
    assert [record.getMessage() for record in caplog.records] == [
        "a part of Numba, files, is not used (AttributeError: _cache_file)"
    ]


@pytest.mark.usefixtures("nothing_missing")
def test_parts_are_switched_off_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIBBSITE_WITHOUT", "vectors, files")
    assert not try_part("vectors", lambda: None)
    assert not vector.has_shuffles()
    assert try_part("events", lambda: None)
    with pytest.raises(ValueError, match="'wings' is not one of the parts helpers, runtime"):
        try_part("wings", lambda: None)


def double(x: float) -> float:
    return 2 * x


@needs_compiler
@pytest.mark.usefixtures("nothing_missing")
@pytest.mark.parametrize("attribute", ["_reduce", "_rebuild"])
def test_renamed_attributes_of_the_cache_leave_the_disk_alone(
    attribute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core.compiler import CompileResult

    monkeypatch.delattr(CompileResult, attribute)
    monkeypatch.setattr(cache, "cache_directory", lambda: tmp_path)
    function = cache.decorate(double, {"nogil": True}, cache=True)
    assert function(1.5) == 3.0
    assert "AttributeError" in missing_parts()["files"]
    assert not list(tmp_path.iterdir())


HEAD = """
    import sys
    import warnings

    import numpy as np

    import gibbsite as gs
    from gibbsite._numba.parts import missing_parts

    warnings.simplefilter("ignore")
"""
SITES = """
    lattice = gs.ising_grid((8, 8), coupling=0.3, field=0.1)
    many = gs.sample(lattice, scan=gs.Chromatic(), chains=64, sweeps=40, rng=1, progress=False)
    print(many.marginals["5"][1].hex())
"""
NUMBERS = """
    density = gs.LogDensity(lambda x: -0.5 * (x[0] ** 2 + x[1] ** 2), lambda x: -x, dim=2)
    walk = gs.sample(density, gs.Metropolis(), sweeps=40, rng=1, record=["draws"], progress=False)
    print(float(np.sum(walk.draws)).hex())
"""
TAIL = """
    print(*sorted(missing_parts()))
"""


# Helpers have Numba's own pipeline in versions that have not been tried.
UNTRIED: set[str] = set() if options.DISABLED or "pipeline_class" in options.HELPER else {"helpers"}


def run(*what: str, **variables: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "".join(map(textwrap.dedent, (HEAD, *what, TAIL)))],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def whole() -> list[str]:
    """What a run with all parts prints about sites, and about numbers."""
    *whole, missing = run(SITES, NUMBERS)
    assert set(missing.split()) == UNTRIED
    return whole


@pytest.mark.long
@needs_compiler
def test_without_any_of_the_parts_the_numbers_are_the_same(whole: list[str], tmp_path: Path) -> None:
    every = {"GIBBSITE_WITHOUT": " ".join(PARTS), "GIBBSITE_CACHE_DIR": str(tmp_path)}
    *bare, missing = run(SITES, NUMBERS, **every)
    assert bare == whole
    assert missing == " ".join(sorted(set(PARTS) - {"runtime"})), "without stack, runtime is not even tried"
    assert not list(tmp_path.rglob("*.nb?"))


@pytest.mark.campaign
@needs_compiler
def test_without_the_option_for_the_runtime(whole: list[str], tmp_path: Path) -> None:
    *bare, missing = run(NUMBERS, GIBBSITE_WITHOUT="runtime", GIBBSITE_CACHE_DIR=str(tmp_path))
    assert bare == whole[1:]
    assert set(missing.split()) == UNTRIED | {"runtime"}
