"""Pictures, scans and counts of wrong pixels of the segmentation experiment."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arrays import Floats, Ints, Ints16
from gibbsite.applications.segmentation import patch_field
from gibbsite.applications.segmentation.features import spread
from gibbsite.applications.segmentation.labelled import Example, LabelledImages, confuse, make_pictures, read_labelled
from gibbsite.applications.segmentation.segmenter import STRONG, UNLABELLED
from gibbsite.lab.data import DataSource
from gibbsite.lab.dogs.dobrushin import run_short

COUPLINGS = (0.0, 0.48, 1.0, 2.0, 3.0, 4.0)  # without coupling: PLSA
WITH_SCANS = (patch_field.COUPLING, STRONG)
SCANS = ("systematic", "DoGS")
MADE_UP = "made up"
DATA = DataSource("photographs of MSRC", ("images/msrc/train", "images/msrc/devtest"), "MADE-UP pictures")


def find_pictures(quick: bool) -> tuple[LabelledImages, str]:
    """Return photographs from the folder that ``GIBBSITE_DATA`` names; without them, synthetic pictures."""
    if folders := DATA.paths():
        parts = [read_labelled(folder) for folder in folders]
        if len({part.classes for part in parts}) == 1:
            every = [example for part in parts for example in part.examples]
            images = LabelledImages(every[:: 4 if quick else 1], parts[0].classes, parts[0].colours)
            return images, f"{len(images.examples)} photographs of MSRC, categories 1 to 8"
    return make_pictures(30 if quick else 120, rng=7), MADE_UP


def most_frequent(states: Ints16, classes: int) -> Ints:
    """Return the most frequent label of every site in many chains, given their states (chains, sites)."""
    counts = (states[..., None] == np.arange(classes)).sum(axis=0)
    found: Ints = counts.argmax(axis=1)
    return found


@lru_cache(maxsize=32)
def aim(shape: tuple[int, int], steps: int) -> gs.influence.DogsScan:
    """Return the scan of a number of steps that is optimised for the middle, at the paper's coupling."""
    left, top, right, bottom = patch_field.central_region(shape)
    target = np.arange(shape[0] * shape[1]).reshape(shape)[top:bottom, left:right].ravel().tolist()
    model = patch_field.field_model(np.zeros((*shape, 3)))
    influence = gs.influence.bound_influence(model, method="bound")
    return gs.dogs(model, steps=steps, target=target, initial=gs.Systematic(), influence=influence)


def run_scan(fields: Floats, scan: str, steps: int, *, coupling: float, chains: int, rng: int) -> tuple[Ints, float]:
    """Return the most frequent labels at the ends of chains of a length, and the seconds of one chain."""
    shape, alone = (fields.shape[0], fields.shape[1]), patch_field.independent(fields).labels
    model = patch_field.field_model(fields, coupling)
    order: gs.scans.Scan = gs.Systematic() if scan == "systematic" else aim(shape, steps)
    visited = np.unique(aim(shape, steps).order) if scan == "DoGS" else np.arange(min(steps, model.n_sites))
    begun = time.process_time()
    states = run_short(
        model, order, np.array([steps]), visited.astype(np.int64), chains=chains, start=alone.ravel(), rng=rng
    )[0]
    seconds = (time.process_time() - begun) / chains
    labels = alone.copy()
    labels.ravel()[visited] = most_frequent(states, fields.shape[2])
    return labels, seconds


class Counts(NamedTuple):
    """Counts of pixels, by split and test image."""

    total: Ints  # (splits, images): labelled pixels
    wrong: Ints  # (splits, images, modes, couplings)
    centre: Ints  # (splits, images): labelled pixels in the middle
    by_scan: Ints  # (splits, images, couplings with scans, scans, steps): wrong pixels in the middle
    alone: Ints  # (splits, images): those of PLSA
    scattered: Ints  # (splits, 2): pixels that would be wrong if each region took its most frequent label, and all
    seconds: Floats  # (splits, scans, steps): of a chain


def no_counts(splits: int, size: int, steps: int) -> Counts:
    """Return counts of zero."""

    def zeros(*shape: int) -> Ints:
        return np.zeros((splits, size, *shape), np.int64)

    return Counts(
        total=zeros(),
        wrong=zeros(len(UNLABELLED), len(COUPLINGS)),
        centre=zeros(),
        by_scan=zeros(len(WITH_SCANS), len(SCANS), steps),
        alone=zeros(),
        scattered=np.zeros((splits, 2), np.int64),
        seconds=np.zeros((splits, len(SCANS), steps)),
    )


def count_field(
    counts: Counts, by_class: Ints, at: tuple[int, int, int], example: Example, fields: Floats, rounds: int, seed: int
) -> None:
    """Count the wrong pixels of the field at every coupling."""
    truth, classes = example.labels, fields.shape[2]
    for k, coupling in enumerate(COUPLINGS):
        method = "systematic" if coupling else "plsa"
        found = patch_field.label_field(fields, method, coupling=coupling, rounds=rounds, rng=seed).labels
        table = confuse(truth, spread(found, *truth.shape), classes)
        counts.wrong[*at, k] = table.sum() - np.trace(table)
        counts.total[at[:2]] = table.sum()
        if at[2] == UNLABELLED.index("drop") and coupling in (0.0, STRONG):
            by_class[int(coupling > 0)] += table
        if at[2] == UNLABELLED.index("drop") and not coupling:
            right = table[np.arange(classes), np.arange(classes)] >= table.max(axis=1)
            counts.scattered[at[0]] += [table.sum(axis=1)[~right].sum(), table.sum()]


def count_scans(
    counts: Counts,
    at: tuple[int, int],
    example: Example,
    fields: Floats,
    steps: tuple[int, ...],
    chains: int,
    seed: int,
) -> None:
    """Count the wrong pixels in the middle after chains of every length, by both scans."""
    left, top, right, bottom = patch_field.central_region((fields.shape[0], fields.shape[1]))
    inside = np.zeros(fields.shape[:2], bool)
    inside[top:bottom, left:right] = True
    truth = np.where(spread(inside, *example.labels.shape), example.labels, -1)
    counts.centre[at] = np.count_nonzero(truth >= 0)

    def wrong(labels: Ints) -> int:
        return int(np.count_nonzero((truth >= 0) & (spread(labels, *truth.shape) != truth)))

    counts.alone[at] = wrong(patch_field.independent(fields).labels)
    for j, coupling in enumerate(WITH_SCANS):
        for k, scan in enumerate(SCANS):
            for t, length in enumerate(steps):
                labels, _ = run_scan(fields, scan, length, coupling=coupling, chains=chains, rng=seed)
                counts.by_scan[*at, j, k, t] = wrong(labels)
                if not j and at[1] == 0:  # more chains, so that the set-up hardly counts
                    _, seconds = run_scan(fields, scan, length, coupling=coupling, chains=20 * chains, rng=seed)
                    counts.seconds[at[0], k, t] = seconds


def choose_couplings(wrong: Ints, tests: Ints) -> Ints:
    """Return the coupling of every split, as a position: the one with the fewest wrong pixels in other splits.

    ``wrong`` (splits, images, couplings): wrong pixels, the first coupling being zero; ``tests`` (splits, images):
    which images were held back. Images of the split's own test set are left out.
    """
    found = np.empty(len(tests), np.int64)
    for split, own in enumerate(tests):
        others = ~np.isin(tests, own)
        found[split] = 1 + (wrong[others][:, 1:].sum(axis=0) if others.any() else wrong[split].sum(axis=0)[1:]).argmin()
    return found
