"""What is shipped is registered, what is registered is proved, and lists elsewhere agree with it."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import gibbsite as gs
from gibbsite._discover import read_declarations
from gibbsite.graph.compile import KINDS
from gibbsite.inference import METHODS
from gibbsite.kernel.registry import default_kernel, make_kernel, registered_kernels
from gibbsite.scan.registry import make_scan, registered_scans
from gibbsite.testing import KERNELS, check_scan, scans

ROOT = Path(__file__).parent.parent
SHIPPED = [one for one in registered_kernels() if one.kernel.__module__.startswith("gibbsite.")]


def subclasses(base: type) -> set[type]:
    found = {one for child in base.__subclasses__() for one in {child, *subclasses(child)}}
    return {one for one in found if not inspect.isabstract(one)}


def test_every_kernel_of_the_package_is_registered() -> None:
    written = {one for one in subclasses(gs.Kernel) if one.__module__.startswith("gibbsite.kernel.")}
    assert written == {one.kernel for one in SHIPPED}


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_every_registered_kernel_is_proved_and_public(one: gs.kernel.registry.Registration) -> None:
    if one.kernel.kinds & set(KINDS):
        assert one.proof_instances(), "a kernel of states has instances for the conformance tests"
    else:
        assert isinstance(one.proof, str), "other kernels name the file with their proofs"
        assert f"gs.{one.name}(" in (ROOT / one.proof).read_text(encoding="utf-8")
    assert getattr(gs, one.name) is one.kernel is getattr(gs.kernel, one.name)
    assert set(one.arguments) <= set(one.methods)
    for name, arguments in one.recommend.items():
        assert name.startswith(one.name)
        assert one.kernel(**arguments).exact, "no number of draws makes up for a bias"
    for task in {task for tasks in one.methods.values() for task in tasks}:
        assert task == "MAP" or one.kernel.estimates


def test_the_kernels_to_be_proved_are_the_instances() -> None:
    assert {type(kernel) for kernel in KERNELS} >= {one.kernel for one in SHIPPED if one.proof_instances()}


def test_every_kind_has_one_default_kernel() -> None:
    kinds = [kind for one in SHIPPED for kind in one.default_for]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == {kind for one in SHIPPED for kind in one.kernel.kinds}
    assert isinstance(default_kernel(gs.compile_graph(gs.ising_grid((2, 2)))), gs.Gibbs)


def test_names_are_read_without_loading_what_they_are_of() -> None:
    declared = {
        name: tasks for one in read_declarations("kernel") for name, tasks in one.get("methods", {}).items()
    }
    assert declared == {name: tasks for one in SHIPPED for name, tasks in one.methods.items()}
    assert declared.items() <= METHODS.items()
    for name in declared:
        assert isinstance(make_kernel(name), gs.Kernel)
    named = {one["name"] for one in read_declarations("scan") if one.get("name")}
    assert named == {one.name for one in registered_scans()} - {None}
    for name in named:
        assert isinstance(make_scan(name), gs.Scan)


def test_every_scan_of_the_package_is_registered() -> None:
    written = {one for one in subclasses(gs.Scan) if one.__module__.startswith("gibbsite.scan.")}
    shipped = [one for one in registered_scans() if one.scan.__module__.startswith("gibbsite.")]
    assert written == {one.scan for one in shipped}
    assert [one.scan for one in shipped if one.default] == [gs.Systematic]
    for scan in written:
        assert getattr(gs, scan.__name__) is scan is getattr(gs.scan, scan.__name__)
    assert {type(scan) for scan in scans(3)} >= written


@pytest.mark.parametrize("scan", scans(4), ids=str)
def test_scans_do_what_they_say(scan: gs.Scan) -> None:
    report = check_scan(scan)
    assert report.passed, str(report)
    assert len(report.checks) == 2 + scan.once
