"""Calibration of the probabilities of entities: their calibration error, and a correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsite._common.arrays import Bools, Floats
from gibbsite.applications.entities.documents import Document
from gibbsite.applications.entities.tagged import Tagged
from gibbsite.learn.crf.labels import find_spans
from gibbsite.learn.crf.quasi_newton import minimise

Correction = tuple[float, float]
NO_CORRECTION: Correction = (1.0, 0.0)
_BINS = 10  # of equal width


def compare(documents: Sequence[Document], tagged: Sequence[Tagged]) -> tuple[Floats, Bools]:
    """Return the probabilities of all entities found, and whether each one agrees with the labels of its document."""
    stated, right = [], []
    for document, one in zip(documents, tagged, strict=True):
        gold = [set(find_spans(sentence.labels or [])) for sentence in document.sentences]
        for entity in one.entities:
            stated.append(entity.probability or 0.0)
            right.append((entity.first, entity.last, entity.label) in gold[entity.sentence])
    return np.array(stated), np.array(right, bool)


def calibration_error(stated: Floats, right: Bools) -> tuple[float, list[dict[str, Any]]]:
    """Return the expected calibration error, and a row of figures for each non-empty bin."""
    which = np.minimum((stated * _BINS).astype(int), _BINS - 1)
    error, rows = 0.0, []
    for k in range(_BINS):
        here = which == k
        if here.any():
            mean, share = float(stated[here].mean()), float(right[here].mean())
            error += here.mean() * abs(mean - share)
            rows.append({"entities": int(here.sum()), "stated": mean, "right": share})
    return float(error), rows


def log_odds(p: Floats) -> Floats:
    """Return the log-odds of probabilities, clipped so that those of 0 and 1 are finite."""
    inside = np.clip(p, 1e-4, 1.0 - 1e-4)
    return np.log(inside / (1.0 - inside))


def learn_correction(stated: Floats, right: Bools) -> Correction:
    """Return slope and intercept of a logistic regression of correctness on the stated log-odds."""
    odds, truth = log_odds(stated), right.astype(float)

    def loss(x: Floats) -> tuple[float, Floats]:
        z = x[0] * odds + x[1]
        gap = 1.0 / (1.0 + np.exp(-z)) - truth
        prior = np.array(
            [x[0] - 1.0, x[1]]
        )  # a weak prior, so that probabilities hardly change if there are few entities
        value = float((np.logaddexp(0.0, z) - truth * z).sum() + 2.0 * prior @ prior)
        return value, np.array([gap @ odds, gap.sum()]) + 4.0 * prior

    slope, intercept = minimise(loss, np.array(NO_CORRECTION)).x.tolist()
    return (slope, intercept) if slope > 0.0 else NO_CORRECTION


def correct(p: Floats, error: Floats, correction: Correction) -> tuple[Floats, Floats]:
    """Apply a learned correction to the probabilities of entities; scale their standard errors accordingly."""
    if correction == NO_CORRECTION:
        return p, error
    slope, intercept = correction
    found = 1.0 / (1.0 + np.exp(-(slope * log_odds(p) + intercept)))
    steepness = slope * found * (1.0 - found) / np.clip(p * (1.0 - p), 1e-4, None)
    return found, error * np.minimum(steepness, 2.0)
