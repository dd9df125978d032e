"""``gibbsite methods`` lists every method with a reason to use it."""

from __future__ import annotations

from click.testing import CliRunner

from gibbsite.cli import group
from gibbsite.cli.methods import WHEN
from gibbsite.inference import METHODS


def test_every_method_has_a_reason() -> None:
    assert set(WHEN) == set(METHODS)


def test_methods_are_listed_with_their_tasks() -> None:
    done = CliRunner().invoke(group, ["methods"])
    assert done.exit_code == 0
    for name, tasks in METHODS.items():
        (line,) = [line for line in done.output.splitlines() if line.split()[:1] == [name]]
        assert " ".join(tasks) in line
