"""Patches that prefer the labels of their neighbours: a Potts model with fields, and the ways to label it.

The posterior of Mitliagkas and Mackey (2017), equation (4): p(x) ~ exp(sum over neighbours of J [x_i = x_j] +
sum over patches of log(theta[x_i] beta[x_i, y_i])), with theta and beta of an aspect model. Chains start at
the most probable labels without coupling, those of the aspect model alone.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arguments import check_integer
from gibbsite._common.arrays import Array, Floats, Ints
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import clock
from gibbsite.applications.methods import PATCH_LABELS, PATCHES
from gibbsite.applications.segmentation.coupling import EIGHT
from gibbsite.errors import ArgumentError, ConvergenceWarning, ModelError
from gibbsite.inference.sampling import record_chains
from gibbsite.sampling.progress import choose_progress, whole_runs_only
from gibbsite.sampling.setup import Budget, prepare, read_length

Region = tuple[int, int, int, int]

COUPLING = 0.48


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels of patches.

    Attributes
    ----------
    labels : int array (rows, columns)
        The most probable label of every patch.
    probabilities : float array (rows, columns, states)
        Probabilities of labels; shares of rounds with ``label="majority"``.
    steps : int
        Updates of single patches, or of blocks.
    seconds : float
        Time of sampling, without that of compiling and of laying out the model.
    """

    labels: Ints
    probabilities: Floats
    steps: int
    seconds: float

    @property
    def certainty(self) -> Floats:
        """The probability of every label."""
        highest: Floats = self.probabilities.max(axis=2)
        return highest


def field_model(fields: Floats, coupling: float = COUPLING, neighbours: int = 4) -> gs.FactorGraph:
    """Return the posterior of labels of patches.

    Parameters
    ----------
    fields : float array (rows, columns, states)
        log(theta beta) of every label.
    coupling : float
        What equal neighbours add to the log-potential.
    neighbours : {4, 8}
        Side by side alone, or also across corners.

    Examples
    --------
    >>> field_model(np.zeros((20, 31, 9)))
    FactorGraph(620 sites of 9 states, 1,809 factors in 2 groups)
    """
    rows, columns, states = fields.shape
    shifted = fields - fields.max(axis=2, keepdims=True)
    # a label of probability zero stays possible, at odds that nothing outweighs: chains move freely
    shifted = np.maximum(shifted, -700.0)
    if neighbours == 4:
        return gs.potts_grid((rows, columns), states, coupling, shifted)
    if neighbours != 8:
        raise ArgumentError(f"{argument('neighbours')} must be 4 or 8, got {neighbours!r}.")
    site, pairs = np.arange(rows * columns).reshape(rows, columns), []
    for down, right in EIGHT:
        first = site[: rows - down, max(0, -right) : columns - max(0, right)]
        second = site[down:, max(0, right) : columns + min(0, right)]
        pairs.append(np.stack([first.ravel(), second.ravel()]))
    i, j = np.concatenate(pairs, axis=1)
    return gs.potts((i, j, np.full(i.size, float(coupling))), states, shifted.reshape(-1, states))


def central_region(shape: tuple[int, int]) -> Region:
    """Return the patches in the middle, two fifths of rows and columns: first column, row; last ones + 1."""
    sizes = [max(1, round(0.4 * many)) for many in shape]
    first = [-(-(many - size) // 2) for many, size in zip(shape, sizes, strict=True)]
    return first[1], first[0], first[1] + sizes[1], first[0] + sizes[0]


@lru_cache(maxsize=64)
def aimed_scan(
    shape: tuple[int, int], region: Region, coupling: float = COUPLING, neighbours: int = 4
) -> gs.influence.DogsScan:
    """Return the shortest scan found that is as good for a region as a sweep over all patches.

    It depends on no image, and is computed once for each shape and region. As good means: its Dobrushin
    variation, from the influence bound of theorem 10, is not larger.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of patches.
    region : (int, int, int, int)
        First column and row, last column and row plus one.
    coupling, neighbours
        Of the model.

    Examples
    --------
    >>> scan = aimed_scan((20, 31), central_region((20, 31)))
    >>> len(scan.order), round(scan.variation, 1)
    (110, 85.4)
    """
    model = field_model(np.zeros((*shape, 3)), coupling, neighbours)  # the bound knows no fields, no states
    left, top, right, bottom = region
    target = np.arange(model.n_sites).reshape(shape)[top:bottom, left:right].ravel().tolist()
    if not target:
        raise ArgumentError(f"{argument('region')} has no patch in it; choose a larger one.")
    influence, systematic = gs.influence.bound_influence(model, method="bound"), gs.Systematic()
    goal = gs.certify(model, scan=systematic, sweeps=1, target=target, influence=influence).variation
    if not goal < len(target):
        raise ModelError(
            f"a coupling of {coupling:g} with {neighbours} neighbours is too strong for a scan with a "
            "guarantee; take less of it, or another method."
        )
    return gs.dogs(model, target=target, accuracy=goal, initial=systematic, influence=influence)


def independent(fields: Floats) -> Labelled:
    """Label every patch by itself: the aspect model alone."""
    p = np.exp(fields - fields.max(axis=2, keepdims=True))
    return Labelled(fields.argmax(axis=2), p / p.sum(axis=2, keepdims=True), 0, 0.0)


@whole_runs_only()
def label_field(
    fields: Floats,
    method: str = "systematic",
    *,
    coupling: float = COUPLING,
    neighbours: int = 4,
    region: Region | None = None,
    rounds: int = 50,
    label: str = "marginal",
    rng: Any = 1,
) -> Labelled:
    """Label patches by sampling their posterior, or by mean field.

    Parameters
    ----------
    fields : float array (rows, columns, states)
        log(theta beta) of every label.
    method : {"plsa", "systematic", "dogs", "chromatic", "herded", "blocks", "mean-field"}
        How: every patch by itself; by sweeps in the order of the patches; by a scan aimed at a region,
        outside of which patches that are not visited keep the label they have by themselves; by sweeps that
        alternate between the colours of a chessboard; by herding; by rows at once; by mean field.
    coupling, neighbours
        Of the model.
    region : (int, int, int, int), optional
        What "dogs" is aimed at, in patches; their middle by default.
    rounds : int
        Sweeps, or passes through the aimed scan; mean field makes so many at most.
    label : {"marginal", "majority"}
        Labels of the highest mean conditional probability, or those seen most often after rounds.
    rng : int, Generator or SeedSequence
        Seed.

    Examples
    --------
    >>> fields = np.zeros((4, 6, 3))
    >>> fields[:, :3, 0] = fields[:, 3:, 1] = 2.0
    >>> fields[1, 1] = [0.0, 0.0, 0.5]
    >>> label_field(fields, "systematic", coupling=1.0).labels[1].tolist()
    [0, 0, 0, 1, 1, 1]
    """
    if method not in PATCHES:
        raise ArgumentError(unknown("method", method, PATCHES))
    if label not in PATCH_LABELS:
        raise ArgumentError(unknown("label", label, PATCH_LABELS))
    rounds = check_integer("rounds", rounds, 1)
    alone = independent(fields)
    if method == "plsa":
        return alone
    shape, states = (fields.shape[0], fields.shape[1]), fields.shape[2]
    if states == 1:
        return alone
    if method != "dogs" and region is not None:
        raise ArgumentError(f"{argument('region')} is what method dogs is aimed at; {method} labels all patches.")
    model = field_model(fields, coupling, neighbours)
    if method == "mean-field":
        begun = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # so many sweeps were asked for
            found = gs.mean_field(model, start="unary", max_iterations=rounds, rng=rng, progress=False)
        return _labelled(found.cells, alone, rounds * model.n_sites, clock() - begun)
    kernel, scan = _parts(method, shape, coupling, neighbours, region)
    length = len(scan.order) if isinstance(scan, gs.influence.DogsScan) else None
    setup = prepare(
        model,
        kernel,
        scan,
        gs.Marginals(rao_blackwell=False if label == "majority" else None, batches=False),
        rng=rng,
        start=alone.labels.ravel(),
        length=read_length(sweeps=rounds, warmup=0),
    )
    if length is not None:  # a round is a pass through a scan of this length
        setup = replace(setup, budget=Budget(0, rounds, length, 0, math.inf))
    recording = record_chains(setup, threads=1, progress=choose_progress(False))
    cells = (recording.tapes[0].total + recording.tapes[0].open_batch) / rounds
    visited = None if length is None else np.unique(np.asarray(scan.order))  # type: ignore[union-attr]
    steps = rounds * (shape[0] if method == "blocks" else length or model.n_sites)
    return _labelled(cells, alone, steps, recording.seconds, visited)


def _parts(
    method: str, shape: tuple[int, int], coupling: float, neighbours: int, region: Region | None
) -> tuple[gs.kernels.Kernel, gs.scans.Scan | None]:
    """Return kernel and scan of a method."""
    if method == "dogs":
        return gs.Gibbs(), aimed_scan(shape, region or central_region(shape), float(coupling), neighbours)
    if method == "herded":
        return gs.HerdedGibbs(keys="site", start="centred"), gs.Systematic()
    if method == "blocks":
        rows = np.arange(math.prod(shape)).reshape(shape)
        return gs.BlockGibbs(blocks=[row.tolist() for row in rows]), None
    return gs.Gibbs(), gs.Chromatic() if method == "chromatic" else gs.Systematic()


def _labelled(cells: Floats, alone: Labelled, steps: int, seconds: float, visited: Array | None = None) -> Labelled:
    """Return probabilities as labels; patches that were not visited are on their own."""
    flat = alone.probabilities.reshape(-1, alone.probabilities.shape[2])
    # two states have one cell
    found = cells.reshape(len(flat), -1) if cells.size == flat.size else np.stack([1.0 - cells, cells], axis=1)
    if visited is not None:
        kept = flat.copy()
        kept[visited] = found[visited]
        found = kept
    probabilities = np.ascontiguousarray(found).reshape(alone.probabilities.shape)
    labels = probabilities.argmax(axis=2)
    if visited is not None:
        unseen = np.ones(labels.size, bool)
        unseen[visited] = False
        labels.ravel()[unseen] = alone.labels.ravel()[unseen]
    return Labelled(labels, probabilities, steps, seconds)
