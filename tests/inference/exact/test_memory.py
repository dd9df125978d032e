"""Exact solving respects the memory limits of the process and of its control groups."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gibbsite.inference.exact import memory
from gibbsite.inference.exact.memory import usable_memory

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="limits on addresses are those of Linux")

# an exact solution needs more than a gigabyte
PROGRAM = """
    import resource
    import sys

    import gibbsite as gs
    from gibbsite.inference.exact.memory import usable_memory

    model = gs.ising_grid((18, 40), coupling=0.05, field=0.1)
    cost = gs.exact.predict_exact(model)
    assert 0.3e9 < cost.bytes < 3e9, cost
    gs.infer(gs.ising_grid((3, 3)))  # what has to be loaded is loaded
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    left = float(sys.argv[1]) * cost.bytes
    resource.setrlimit(resource.RLIMIT_AS, (used + int(left), resource.RLIM_INFINITY))
    assert usable_memory() <= left
    try:
        gs.solve_exact(model)
    except gs.errors.TooLargeError as error:
        print(error)
    answer = gs.infer(model, seconds=2, rng=1, progress=False, criteria=gs.Criteria(accuracy=0.05))
    print(answer.kind, answer.reason)
"""


@needs_limits
@pytest.mark.long
def test_a_process_with_little_memory_samples() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(PROGRAM), "0.7"],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, answered = done.stdout.splitlines()
    assert refused.startswith("Exact inference needs ")
    assert "of memory, more than the limit of " in refused
    assert "exact solution does not fit" in answered
    assert answered.startswith("estimate")


@needs_limits
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_are_read(limit: str) -> None:
    import resource

    kind = getattr(resource, limit)
    before = resource.getrlimit(kind)
    most = usable_memory()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    used = 1024 * int(status["VmSize" if limit == "RLIMIT_AS" else "VmData"].split()[0])
    resource.setrlimit(kind, (used + most // 2, before[1]))
    try:
        assert 0.4 * most < usable_memory() <= most // 2
    finally:
        resource.setrlimit(kind, before)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 5\ninactive_file 50\n"}, [350]),
        ({"memory.max": "max", "memory.current": "700", "memory.stat": ""}, []),
        (
            {
                "memory.limit_in_bytes": "1000",
                "memory.usage_in_bytes": "100",
                "memory.stat": "inactive_file 1\ntotal_inactive_file 9\n",
            },
            [909],
        ),
        ({}, []),
    ],
)
def test_control_groups_are_read(files: dict[str, str], left: list[int], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert list(memory._left_in(tmp_path)) == left
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "memory.max").write_text("500\n")
    (inner / "memory.current").write_text("300\n")
    (inner / "memory.stat").write_text("")
    assert list(memory._along(tmp_path, "/outer/inner")) == [200, *left]
    assert list(memory._along(tmp_path, "/not/there")) == left


@pytest.mark.long
@pytest.mark.parametrize("task", ["MAR", "MAP", "PR"])
def test_auto_goes_on_where_memory_ends(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may take the memory between the look at it and the solution."""
    import gibbsite as gs
    from gibbsite.inference.exact import junction

    monkeypatch.setattr(junction, "usable_memory", lambda: 100)
    model = gs.ising_grid((3, 3), coupling=0.1, field=0.1)
    answer = gs.infer(model, task, seconds=1, rng=1, progress=False, criteria=gs.Criteria(accuracy=0.05))
    assert answer.method != "exact"
    assert "an exact solution did not fit into memory: largest clique" in str(answer.reason)
    with pytest.raises(gs.errors.TooLargeError, match="more than the limit of 100 bytes"):
        gs.infer(model, task, method="exact")
