"""A Potts model of the labels of patches: labelling by sampling, and learning the coupling by pseudo-likelihood.

The posterior of Mitliagkas and Mackey (2017), equation (4): p(x) ~ exp(sum over neighbours of J [x_i = x_j] +
sum over patches of log(theta[x_i] beta[x_i, y_i])), with theta and beta of an aspect model. Chains start at
the most probable labels without coupling, those of the aspect model alone.

The pseudo-likelihood is the product over sites of the probability of the label given those of the neighbours, with
fields f: log PL = sum_i f_i(x_i) + J n_i(x_i) - log sum_a exp(f_i(a) + J n_i(a)), where n_i(a) is the number of
neighbours of i with label a. It is concave in J [1]_.

References
----------
.. [1] Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician 24, 179-195.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arguments import check_integer, check_number, checked, read_sizes
from gibbsite._common.arrays import Array, Floats, Integers, Ints
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument, unknown
from gibbsite._numba.jit import clock
from gibbsite.applications.methods import PATCH_LABELS, PATCHES
from gibbsite.errors import ArgumentError, ConvergenceWarning, ModelError
from gibbsite.inference.sampling import record_chains
from gibbsite.sampling.progress import choose_progress, whole_runs_only
from gibbsite.sampling.setup import Budget, prepare, read_length

FOUR = ((0, 1), (1, 0))
EIGHT = (*FOUR, (1, 1), (1, -1))


class LabelledField(NamedTuple):
    """Sites with a known label."""

    fields: Floats  # (sites, states)
    labels: Integers  # (sites,)
    near: Floats  # (sites, states): number of neighbours with each label


def count_neighbours(labels: Integers, states: int, neighbours: int = 4) -> Floats:
    """Count the neighbours with each label, an array (rows, columns, states); negative labels are unknown."""
    known: Floats = (labels[..., None] == np.arange(states)).astype(np.float64)
    rows, columns = labels.shape
    near = np.zeros_like(known)
    for down, right in FOUR if neighbours == 4 else EIGHT:
        a = (slice(0, rows - down), slice(max(0, -right), columns - max(0, right)))
        b = (slice(down, rows), slice(max(0, right), columns + min(0, right)))
        near[a] += known[b]
        near[b] += known[a]
    return near


def gather(fields: Floats, labels: Integers, neighbours: int = 4) -> LabelledField:
    """Return the sites of a lattice whose labels are known.

    ``fields`` (rows, columns, states): log-potentials; ``labels`` (rows, columns): labels; negative ones are unknown,
    and neither sites nor neighbours; ``neighbours`` in {4, 8}: which sites are neighbours.
    """
    known = labels >= 0
    near = count_neighbours(labels, fields.shape[-1], neighbours)
    return LabelledField(fields[known], labels[known], near[known])


def pseudo_likelihood(coupling: float, data: LabelledField) -> tuple[float, float, float]:
    """Return the log-pseudo-likelihood of a coupling with its first two derivatives."""
    weights = data.fields + coupling * data.near
    most = weights.max(axis=1, keepdims=True)
    p = np.exp(weights - most)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    at = (np.arange(len(p)), data.labels)
    value = float((weights[at] - most[:, 0] - np.log(total[:, 0])).sum())
    mean = (p * data.near).sum(axis=1)
    slope = float((data.near[at] - mean).sum())
    bend = -float(((p * data.near**2).sum(axis=1) - mean**2).sum())
    return value, slope, bend


def learn_coupling(parts: Sequence[LabelledField], ridge: float = 1e-3) -> float:
    """Return the coupling of the largest pseudo-likelihood, by Newton's method.

    ``parts``: lattices with known labels; ``ridge``: penalty on half the square of the coupling, which keeps it
    finite where all neighbours agree.
    """
    data = LabelledField(*(np.concatenate([part[k] for part in parts]) for k in range(3)))
    if not data.near.any():
        raise ModelError("no two neighbouring patches have a label; a coupling cannot be learnt from that.")
    coupling, value = 0.0, -np.inf
    for _ in range(100):
        found = pseudo_likelihood(coupling, data)
        value = found[0] - 0.5 * ridge * coupling**2
        step = (found[1] - ridge * coupling) / (ridge - found[2])
        # the function is concave, so that halving the step leads to an increase
        while abs(step) > 1e-10:
            trial = coupling + step
            if pseudo_likelihood(trial, data)[0] - 0.5 * ridge * trial**2 >= value:
                break
            step *= 0.5
        coupling += step
        if abs(step) <= 1e-10:
            break
    return coupling


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
        Probabilities of labels; with ``label="majority"`` their relative frequencies.
    steps : int
        Number of updates of single patches, or of blocks.
    seconds : float
        Time of sampling, without compilation and set-up.
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


@checked
def field_model(fields: Floats, coupling: float = COUPLING, neighbours: int = 4) -> gs.FactorGraph:
    """Return the posterior of labels of patches.

    Parameters
    ----------
    fields : float array (rows, columns, states)
        log(theta beta) of every label.
    coupling : float
        Log-potential of a pair of equal neighbours.
    neighbours : {4, 8}
        Number of neighbours of a patch, without or with diagonal ones.

    Examples
    --------
    >>> field_model(np.zeros((20, 31, 9)))
    FactorGraph(620 sites of 9 states, 1,809 factors in 2 groups)
    """
    fields, coupling = read_reals(fields, "fields", dimensions=3), check_number("coupling", coupling, zero=True)
    rows, columns, states = fields.shape
    shifted = fields - fields.max(axis=2, keepdims=True)
    # labels of probability zero get a tiny probability, so that chains can move
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
    """Return the middle two fifths of rows and columns: first column and row, last column and row plus one."""
    sizes = [max(1, round(0.4 * many)) for many in shape]
    first = [-(-(many - size) // 2) for many, size in zip(shape, sizes, strict=True)]
    return first[1], first[0], first[1] + sizes[1], first[0] + sizes[0]


@checked
def aimed_scan(
    shape: tuple[int, int], region: Region, coupling: float = COUPLING, neighbours: int = 4
) -> gs.influence.DogsScan:
    """Return a short scan whose guarantee for a region is at least that of a sweep over all patches.

    The scan does not depend on the image and is computed once for each shape and region. Its guarantee is the
    Dobrushin variation, from the influence bound of theorem 10. Where the coupling is so strong that this bound
    guarantees nothing, the scan is that of the weaker coupling at which the influence on a patch is at most 0.942.

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
    sizes, corners = read_sizes("shape", shape, 2), read_sizes("region", region, 4, 0)
    return _aimed_scan(
        sizes, corners, check_number("coupling", coupling, zero=True), check_integer("neighbours", neighbours, 4)
    )


@lru_cache(maxsize=64)
def _aimed_scan(
    shape: tuple[int, ...], region: tuple[int, ...], coupling: float, neighbours: int
) -> gs.influence.DogsScan:
    left, top, right, bottom = region
    target = np.arange(math.prod(shape)).reshape(shape)[top:bottom, left:right].ravel().tolist()
    if not target:
        raise ArgumentError(f"{argument('region')} has no patch in it; choose a larger one.")
    systematic = gs.Systematic()
    for strength in (coupling, guaranteed_coupling(neighbours)):
        # the bound depends neither on fields nor on the number of states
        model = field_model(np.zeros((*shape, 3)), strength, neighbours)
        influence = gs.influence.bound_influence(model, method="bound")
        goal = gs.certify(model, scan=systematic, sweeps=1, target=target, influence=influence).variation
        if goal < len(target):
            break
    return gs.dogs(model, target=target, accuracy=goal, initial=systematic, influence=influence)


def guaranteed_coupling(neighbours: int) -> float:
    """Return the coupling at which the influence on a patch is that of 0.48 with four neighbours, 0.942."""
    return float(2.0 * np.arctanh(4.0 / neighbours * np.tanh(COUPLING / 2.0)))


def independent(fields: Floats) -> Labelled:
    """Label every patch separately, by the aspect model alone."""
    p = np.exp(fields - fields.max(axis=2, keepdims=True))
    return Labelled(fields.argmax(axis=2), p / p.sum(axis=2, keepdims=True), 0, 0.0)


@checked
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
        Label every patch by itself; sweep in the order of the patches; use a scan optimised for a region (patches
        that it does not visit keep the label they have by themselves); alternate between the colours of a
        chessboard; herded Gibbs sampling; sample whole rows jointly; mean field.
    coupling, neighbours
        Of the model.
    region : (int, int, int, int), optional
        The region for "dogs", in patches; the middle by default.
    rounds : int
        Number of sweeps or of passes through the optimised scan; for mean field the largest number of iterations.
    label : {"marginal", "majority"}
        Labels of the highest mean conditional probability, or the most frequent ones.
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
    fields = read_reals(fields, "fields", dimensions=3)
    alone = independent(fields)
    if method == "plsa":
        return alone
    shape, states = (fields.shape[0], fields.shape[1]), fields.shape[2]
    if states == 1:
        return alone
    if method != "dogs" and region is not None:
        raise ArgumentError(f"{argument('region')} is for method dogs; {method} labels all patches.")
    model = field_model(fields, coupling, neighbours)
    if method == "mean-field":
        begun = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of sweeps is given
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
    """Return probabilities with their labels; patches that were not visited are labelled by themselves."""
    flat = alone.probabilities.reshape(-1, alone.probabilities.shape[2])
    # with two states there is one cell per patch
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
