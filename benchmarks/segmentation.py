"""Segmentation by patches: training on 120 photographs, and the time of one picture with an aimed scan."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.data import DATA
from benchmarks.report import Section, Target

FOLDER = "images/msrc/train"


def measure(*, quick: bool = False) -> Iterator[Section]:
    """Time training and labelling; nothing without the photographs or the packages for patches."""
    if not (DATA / FOLDER).is_dir() or not all(map(importlib.util.find_spec, ("skimage", "sklearn"))):
        return
    from gibbsite.applications.segmentation import LabelledImages, Segmenter, read_labelled

    images = read_labelled(DATA / FOLDER)
    if quick:
        images = LabelledImages(images.examples[::6], images.classes, images.colours)
    begun = time.perf_counter()
    learnt = Segmenter().fit(images)
    training = time.perf_counter() - begun
    picture = next(one.image for one in images.examples if one.image.shape[:2] == (213, 320))
    learnt.segment(picture, "dogs")  # compiles what is not, and chooses the scan
    found = [learnt.segment(picture, "dogs") for _ in range(5 if quick else 20)]
    sampling = float(np.median([one.patches.seconds for one in found]))
    whole = float(np.median([one.seconds for one in found]))
    targets = [
        Target(f"training on {len(images.examples)} photographs", training, 60.0, False, "s"),
        Target("sampling a picture, aimed scan", 1e3 * sampling, 10.0, False, "ms"),
        Target("a picture in all", whole, 0.5, False, "s"),
    ]
    rows = [
        ["training", f"{training:.1f} s"],
        ["sampling, 50 passes", f"{1e3 * sampling:.2f} ms"],
        ["a picture in all", f"{whole:.3f} s"],
    ]
    facts = {"training": training, "sampling": sampling, "picture": whole}
    yield Section("segmentation", targets, ["what", "time"], rows, facts)
