"""Scribbles: overlap with the truth against a random walk and a graph cut, and a command on 12 megapixels.

Strokes are made from label maps: the skeleton of what is more than six pixels inside a class, two pixels
wide. The photographs are the first ones of six categories, the object of the category against all else.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATA
from benchmarks.report import Section, Target

#: Photographs, and the class of their label maps that is the object.
PHOTOGRAPHS = {"2_1_s": 3, "3_1_s": 1, "4_1_s": 9, "5_1_s": 4, "6_1_s": 11, "7_1_s": 12}
_FOLDER = DATA / "images" / "msrc" / "train"
_HORSE = DATA / "images" / "misc" / "horse.png"
_DEPTH = 6
_CONTESTANTS = ("gibbsite", "random walker", "graph cut")


def strokes(region: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return strokes along the middle of a region."""
    from scipy.ndimage import binary_dilation, distance_transform_edt
    from skimage.morphology import skeletonize

    depth = distance_transform_edt(np.pad(region, 1))[1:-1, 1:-1]
    lines: NDArray[np.bool_] = binary_dilation(skeletonize(depth > _DEPTH), np.ones((2, 2))) & region
    return lines


def read_case(name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return an image, the truth (1 the object, 2 all else, 0 unknown), and scribbles of both."""
    from PIL import Image

    from gibbsite.applications.images import read_image, read_photograph

    if name == "horse":
        image = read_photograph(_HORSE)
        classes, wanted = np.where(read_image(_HORSE) < 128, 1, 2), 1
    else:
        image = read_photograph(_FOLDER / f"{name}.png")
        with Image.open(_FOLDER / f"{name}_GT.png") as file:
            classes, wanted = np.asarray(file).astype(int), PHOTOGRAPHS[name]
    truth = np.where(classes == 0, 0, np.where(classes == wanted, 1, 2)).astype(np.uint8)
    scribbles = np.zeros_like(truth)
    for each in np.unique(classes[classes > 0]):
        scribbles[strokes(classes == each)] = 1 if each == wanted else 2
    return image, truth, scribbles


def overlap(found: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return intersection over union of the object, where the truth is known."""
    mine, yours = (found == 1) & (truth > 0), truth == 1
    return float((mine & yours).sum() / (mine | yours).sum())


def cut(model: Any) -> NDArray[np.int64]:
    """Return the most probable state of a field of two labels, by PyMaxflow."""
    import maxflow

    pairs, gain = model.group("couplings").scopes, model.group("couplings").weights
    fields = model.group("fields").weights
    graph = maxflow.Graph[float](model.n_sites, len(pairs))
    nodes = graph.add_nodes(model.n_sites)
    # a site is on the side of the sink, label 1, at the price of its link to the source
    graph.add_grid_tedges(nodes, *(fields[:, k] - fields.min(axis=1) for k in range(2)))
    graph.add_edges(pairs[:, 0], pairs[:, 1], gain, gain)
    graph.maxflow()
    return graph.get_grid_segments(nodes).astype(np.int64)


def compare(name: str) -> dict[str, float]:
    """Return the overlap of all contestants on an image, and how far our states are from the best one."""
    from skimage.segmentation import random_walker

    from gibbsite.applications import segment_scribbles

    image, truth, scribbles = read_case(name)
    begun = time.process_time()
    found = segment_scribbles(image, scribbles, rng=1, progress=False)
    seconds = time.process_time() - begun
    walked = random_walker(image / 255.0, scribbles.astype(int), beta=130, mode="bf", channel_axis=-1)
    facts = {"gibbsite": overlap(found.labels + 1, truth), "random walker": overlap(walked, truth), "seconds": seconds}
    try:
        best = cut(found.models[0])
    except ImportError:
        return facts
    labels = found.labels + 1
    labels[scribbles == 0] = best + 1
    facts["graph cut"] = overlap(labels, truth)
    return facts


def large(megapixels: float, repeats: int) -> dict[str, float]:
    """Return seconds and megabytes of the command on a picture of discs in noise; the best of some runs."""
    from PIL import Image

    height = round(1000 * np.sqrt(0.75 * megapixels))
    width = round(height * 4 / 3)
    rows, columns = np.indices((height, width), np.float32) / height
    inside = np.zeros((height, width), bool)
    drawing = np.zeros((height, width, 4), np.uint8)
    for y, x, radius in ((0.3, 0.3, 0.18), (0.65, 0.8, 0.25), (0.25, 1.05, 0.12)):
        inside |= np.hypot(rows - y, columns - x) < radius * (1 + 0.1 * np.sin(9 * columns))
        drawing[int(y * height) - 4 : int(y * height) + 4, int((x - 0.07) * height) : int((x + 0.07) * height)] = (
            255,
            0,
            0,
            255,
        )
    edge = height // 40
    for part in (drawing[edge : edge + 8], drawing[-edge - 8 : -edge], drawing[:, edge : edge + 8]):
        part[:] = (0, 0, 255, 255)
    noise = np.random.default_rng(1).normal(0, 8, (height, width, 3)).astype(np.float32)
    colours = np.array([[70, 120, 70], [160, 110, 60]], np.float32)[inside.astype(int)] + 30 * rows[..., None]
    with tempfile.TemporaryDirectory() as folder:
        Image.fromarray(np.clip(colours + noise, 0, 255).astype(np.uint8)).save(Path(folder, "i.jpg"), quality=92)
        Image.fromarray(drawing).save(Path(folder, "s.png"))
        del rows, columns, noise, colours
        words = ["segment", "scribbles", "i.jpg", "s.png", "-o", "o.png", "--rng", "1", "-q"]
        seconds = []
        for _ in range(repeats + 1):  # the first may compile
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-m", "gibbsite", *words], cwd=folder, check=True, env=os.environ)
            seconds.append(time.perf_counter() - begun)
        with Image.open(Path(folder, "o.png")) as file:
            wrong = float(((np.asarray(file) == 1) != inside).mean())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": min(seconds[1:]), "megabytes": usage.ru_maxrss / 1000.0, "wrong": wrong}


def measure(*, quick: bool = False) -> Section:
    """Compare overlaps where data and scikit-image are there, and time a large picture."""
    size = 1.0 if quick else 12.0
    big = large(size, 1 if quick else 3)
    targets = [
        Target(f"{size:g} megapixels, whole command", big["seconds"], 5.0, False, "s"),
        Target(f"{size:g} megapixels, memory", big["megabytes"], 2000.0, False, "MB"),
    ]
    rows, seen = [], {}
    names = ["horse", *PHOTOGRAPHS] if _FOLDER.exists() and _HORSE.exists() else []
    for name in names[:2] if quick else names:
        try:
            one = seen[name] = compare(name)
        except ImportError:
            rows.append([name, "scikit-image is not installed", "", "", ""])
            continue
        cells = [f"{one[key]:.3f}" if key in one else "not installed" for key in _CONTESTANTS]
        rows.append([name, *cells, f"{one['seconds']:.2f}"])
        targets.append(
            Target(f"{name}, overlap", one["gibbsite"] - one["random walker"], 0.0, True, "over random walker")
        )
        if "graph cut" in one:
            apart = one["graph cut"] - one["gibbsite"]
            targets.append(Target(f"{name}, overlap", apart, 0.02, False, "below graph cut"))
    head = ["image", *_CONTESTANTS, "s"]
    return Section("scribbles", targets, head, rows, {"large": big, **seen})
