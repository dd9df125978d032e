"""Every kernel x scan x graph kind: listed once, proved by the same four checks."""

from __future__ import annotations

import pytest

import gibbsite as gs
from gibbsite.graph.lower import KINDS
from gibbsite.kernel.batched import MinibatchKernel
from gibbsite.testing import KERNELS, check_kernel, few_scans, scans, tiny_models


def pairs() -> list[tuple[gs.Kernel, str]]:
    """Every kernel with every kind, but minibatches with one: test_minibatch.py proves their steps on all."""
    return [
        (kernel, kind)
        for kernel in KERNELS
        for kind in (("potts",) if isinstance(kernel, MinibatchKernel) else KINDS)
    ]


@pytest.mark.parametrize(("kernel", "kind"), pairs(), ids=str)
def test_every_scan_and_model(kernel: gs.Kernel, kind: str) -> None:
    # every scan with every rule of Gibbs; the others are moved by the same loop
    every = isinstance(kernel, gs.Gibbs)
    scans_of = scans if every else few_scans
    if isinstance(kernel, MinibatchKernel):
        scans_of = lambda n_sites: few_scans(n_sites)[:1]  # noqa: E731
    report = check_kernel(kernel, kinds=[kind], scans_of=scans_of)
    assert len(report.checks) >= (20 if every else 1)
    assert report.passed, str(report)


def test_the_tiny_models_need_every_kind() -> None:
    stored = {gs.compile_graph(model).kind for model in tiny_models().values()}
    assert stored == set(KINDS) - {"kernel"}  # couplings of few sites are stored, unless it is asked for
    assert gs.compile_graph(tiny_models()["kernel"], "kernel").kind == "kernel"


def test_every_public_scan_is_listed() -> None:
    import gibbsite.scan as package

    public = {getattr(package, name) for name in package.__all__} - {gs.Scan}
    assert {type(scan) for scan in scans(3)} == public


def test_every_public_kernel_is_listed() -> None:
    import gibbsite.kernel as package

    public = [getattr(package, name) for name in package.__all__]
    kernels = {thing for thing in public if isinstance(thing, type) and issubclass(thing, gs.Kernel)}
    assert {type(kernel) for kernel in KERNELS} == kernels - {gs.Kernel}
