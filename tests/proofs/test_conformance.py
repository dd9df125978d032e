"""Every kernel x scan x graph kind: listed once, proved by the same four checks."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import gibbsite as gs
from gibbsite.graphs.graph import KINDS
from gibbsite.kernels.registry import registered_kernels
from gibbsite.testing import KERNELS, check_kernel, scans, tiny_models
from tests.proofs.cover import CLASSES, TWO_KINDS, by_schedule, cover, numbers, taken

MINIBATCHES = [kernel for one in registered_kernels() if one.family == "minibatch" for kernel in one.proof_instances()]
OTHERS = [kernel for kernel in KERNELS if type(kernel) in CLASSES]


def kinds_with_changes(kernel: gs.kernels.Kernel) -> tuple[str, ...]:
    """Return the kinds on which a kernel is proved with every change; the campaign takes all.

    `Gibbs` is proved on all kinds. Others move sites by functions that know no kind (blocks), or by the
    conditionals of a kind, which `Gibbs` proves: one kind of two states and one of more will do. Besides,
    `QuasiGibbs` and `AnnealedGibbs` equal their twins on all kinds (`test_twins.py`, `test_annealed.py`), and
    `HerdedGibbs` repeats itself on them (`test_herded.py`). The exchanges of `PairedTempered` are proved with
    more states in `test_clusters.py`. Cutsets and mini-buckets turn every kind into tables.
    """
    if isinstance(kernel, gs.Gibbs):
        return KINDS
    if isinstance(kernel, gs.BlockGibbs) and kernel.blocks == "trees":
        return (*TWO_KINDS, "lattice")  # strips
    if isinstance(kernel, gs.kernels.PairedTempered):
        return ("ising",)
    if isinstance(kernel, gs.CutsetGibbs | gs.importance.MiniBucketMetropolis):
        return ("table",)
    return TWO_KINDS


def _marked(kernel: gs.kernels.Kernel, kind: str) -> Any:
    if kind not in kinds_with_changes(kernel):
        marks = [pytest.mark.campaign]
    else:
        marks = [] if kind == "ising" else [pytest.mark.long]
    return pytest.param(kernel, kind, marks=marks, id=f"{kernel}-{kind}")


@pytest.mark.parametrize(("kernel", "kind"), [_marked(kernel, kind) for kernel in OTHERS for kind in KINDS])
def test_every_kernel_on_every_kind(kernel: gs.kernels.Kernel, kind: str) -> None:
    """With scans that `test_the_scans_cover_all_pairs` is about."""
    report = check_kernel(kernel, kinds=[kind], scans_of=cover(kernel, kind))
    # four checks or more of a scan; of these two kinds there is one model only
    least = (4 if kind in ("distance", "causes") else 11) if isinstance(kernel, gs.Gibbs) else 1
    assert len(report.checks) >= least
    assert report.passed, str(report)


@pytest.mark.long
@pytest.mark.parametrize("kernel", MINIBATCHES, ids=str)
def test_minibatch_kernels(kernel: gs.kernels.Kernel) -> None:
    """On one kind with one scan: test_minibatch.py proves their steps on all kinds."""
    report = check_kernel(kernel, kinds=["potts"], scans_of=lambda n_sites: scans(n_sites)[:1])
    assert report.passed, str(report)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_every_kernel_on_every_kind_with_every_scan(kernel: gs.kernels.Kernel, kind: str) -> None:
    report = check_kernel(kernel, kinds=[kind])
    assert report.passed, str(report)


def test_the_scans_cover_all_pairs() -> None:
    every = range(len(by_schedule(3)))
    met = {(type(kernel), kind, k) for kernel in OTHERS for kind in KINDS for k in numbers(kernel, kind)}
    assert {(kernel, kind) for kernel, kind, _ in met} == set(product(CLASSES, KINDS))
    assert {(kernel, k) for kernel, _, k in met} == {(type(one), k) for one in OTHERS for k in taken(one)}
    assert {entry for entry in met if entry[0] is gs.Gibbs} == set(product([gs.Gibbs], KINDS, every))
    with_changes = {
        (type(kernel), k) for kernel in OTHERS for kind in kinds_with_changes(kernel) for k in numbers(kernel, kind)
    }
    for one in OTHERS:
        met_with_changes = [k for kernel, k in with_changes if kernel is type(one)]
        assert len(met_with_changes) >= min(2, len(kinds_with_changes(one)))


def test_the_tiny_models_need_every_kind() -> None:
    stored = {gs.graphs.compile_graph(model).kind for model in tiny_models().values()}
    assert stored == set(KINDS) - {"distance"}  # couplings of few sites are stored, unless it is asked for
    assert gs.graphs.compile_graph(tiny_models()["distance"], "distance").kind == "distance"
