"""How far one call travels: files, functions and frames of ``gs.sample``, counted by a profiler in a fresh process.

The call is warm: everything has been compiled before, as by ``gibbsite warmup``. With a cold cache, small jobs of
compiled functions run as plain Python.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile

LIMITS = {"files": 29, "functions": 139, "frames": 12, "files of a sweep": 4, "modules": 121}

SCRIPT = """
import json, sys, threading, warnings
import gibbsite as gs

warnings.simplefilter("ignore")
if sys.argv[1:] == ["compile"]:
    from gibbsite._numba.jit import compile_always

    compile_always()
model = gs.example("alarm")


def sample():
    gs.sample(model, gs.Gibbs(), rng=1, progress=False)


def travel(call):
    functions, deepest = set(), 0

    def see(frame, event, argument):
        nonlocal deepest
        code = frame.f_code
        if event == "call" and "/gibbsite/" in code.co_filename:
            functions.add((code.co_filename.split("/gibbsite/")[-1], code.co_qualname))
            depth = 0
            while frame is not None:
                depth += "/gibbsite/" in frame.f_code.co_filename
                frame = frame.f_back
            deepest = max(deepest, depth)

    threading.setprofile(see)
    sys.setprofile(see)
    call()
    sys.setprofile(None)
    threading.setprofile(None)
    names = sorted({name for name, _ in functions})
    return {"files": len(names), "functions": len(functions), "frames": deepest, "names": names}


sample()
modules = sorted(name for name in sys.modules if name.split(".")[0] == "gibbsite")
found = {"sample": travel(sample), "modules": modules}

from gibbsite.sampling.driver import Driver
from gibbsite.sampling.setup import prepare

driver = Driver(prepare(model, gs.Gibbs(), chains=4, rng=1))
driver.advance(1, keep=True)
found["sweep"] = travel(lambda: driver.advance(1, keep=True))
print(json.dumps(found))
"""


@functools.cache
def measured() -> dict[str, dict[str, object]]:
    with tempfile.TemporaryDirectory() as cache:  # its own, so that no other compiled code is looked up
        for how in (["compile"], []):
            done = subprocess.run(
                [sys.executable, "-c", SCRIPT, *how],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "GIBBSITE_CACHE_DIR": cache},
            )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_call_of_sample_passes_through_few_files() -> None:
    found = measured()["sample"]
    assert found["files"] <= LIMITS["files"], found["names"]


def test_a_call_of_sample_passes_through_few_functions() -> None:
    assert measured()["sample"]["functions"] <= LIMITS["functions"]


def test_a_call_of_sample_is_not_deep() -> None:
    assert measured()["sample"]["frames"] <= LIMITS["frames"]


def test_one_sweep_passes_through_few_files() -> None:
    found = measured()["sweep"]
    assert found["files"] <= LIMITS["files of a sweep"], found["names"]


def test_a_call_of_sample_loads_few_modules() -> None:
    modules = measured()["modules"]
    assert len(modules) <= LIMITS["modules"], modules
