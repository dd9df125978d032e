"""Models of applications from untrusted files are read, or refused in a sentence."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications import EntityRecognizer
from gibbsite.applications.entities.documents import Document, Sentence
from gibbsite.applications.segmentation import Segmenter
from gibbsite.applications.segmentation.features import PLACES, VisualWords
from gibbsite.applications.storage import pack
from gibbsite.learn.aspect.estimator import AspectModel

Parts = tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]


def of_entities() -> Parts:
    """Header and arrays of a small recogniser."""
    features = ["lower[0]=anna", "lower[0]=rome"]
    header = {
        "template": "lower[0]",
        "functions": [],
        "scheme": "bio",
        "order": 1,
        "labels": ["O", "B-LOC", "B-PER", "I-LOC", "I-PER"],
        "features": features,
        "phrases": {},
        "counts": {},
        "clusters": {},
        "calibration": [1.0, 0.0],
        "links": None,
    }
    arrays = {
        "many": np.array([1, 2], np.uint8),
        "label": np.array([2, 1, 0], np.uint8),
        "weight": np.array([4.0, 3.0, -1.0], np.float32),
        "rest": np.zeros(29),
    }
    return header, arrays


def of_segments() -> Parts:
    """Header and arrays of a small segmenter."""
    rng = np.random.default_rng(1)
    header = {"classes": ["grass", "sky"], "coupling": 1.0, "neighbours": 4, "longest": 80, "smoothing": 0.01, "rng": 0}
    arrays = {
        "texture": rng.random((3, 128)),
        "colour": rng.random((4, 36)),
        "beta0": rng.dirichlet(np.ones(3), 2),
        "beta1": rng.dirichlet(np.ones(4), 2),
        "beta2": rng.dirichlet(np.ones(PLACES**2), 2),
        "topics": np.arange(2),
    }
    return header, arrays


def load(kind: str, path: Path) -> Any:
    return EntityRecognizer.load(path) if kind == "ner" else Segmenter.load(path)


def refused(kind: str, path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(gs.GibbsiteError) as error:
        load(kind, path)
    assert "\n" not in str(error.value)
    return str(error.value)


def sealed(header: object) -> bytes:
    """Put any header into an archive without arrays."""
    file = io.BytesIO()
    np.savez_compressed(file, about=np.array(header))
    return file.getvalue()


def test_the_small_models_are_good(tmp_path: Path) -> None:
    (tmp_path / "a.ner").write_bytes(pack("ner", *of_entities()))
    told = EntityRecognizer.load(tmp_path / "a.ner").tag("Anna saw Rome.")
    assert [(one.label, one.start) for one in told.entities] == [("PER", 0), ("LOC", 9)]
    (tmp_path / "a.seg").write_bytes(pack("segment", *of_segments()))
    again = Segmenter.load(tmp_path / "a.seg")
    assert isinstance(again.words, VisualWords)
    assert isinstance(again.aspects, AspectModel)


def test_what_was_learnt_is_loaded(tmp_path: Path) -> None:
    sentence = Sentence(["Anna", "saw", "Rome", "."], ["B-PER", "O", "B-LOC", "O"])
    EntityRecognizer("window", l2=0.01).fit([Document("one", [sentence])]).save(tmp_path / "a.ner")
    assert len(EntityRecognizer.load(tmp_path / "a.ner").tag("Anna saw Rome.").entities) == 2


def put(name: str, value: Any) -> Callable[[Parts], None]:
    return lambda parts: parts[0].__setitem__(name, value)


def entry(name: str, value: Any) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        parts[1][name].flat[-1] = value

    return change


def array(name: str, change: Callable[[Any], Any]) -> Callable[[Parts], None]:
    return lambda parts: parts[1].__setitem__(name, change(parts[1][name]))


def without(name: str) -> Callable[[Parts], None]:
    return lambda parts: [part.pop(name, None) for part in parts] and None


OF_ENTITIES = {
    "a label beyond the last": entry("label", 200),
    "labels of another type": array("label", lambda a: a.astype(np.int64)),
    "more weights than labels": array("many", lambda a: a + np.uint8(200)),
    "fewer labels than weights": array("label", lambda a: a[:1]),
    "a weight that is no number": entry("weight", np.nan),
    "weights of labels in a row cut": array("rest", lambda a: a[:1]),
    "a feature twice": put("features", ["lower[0]=anna", "lower[0]=anna"]),
    "text as features": put("features", "lower"),
    "no such order": put("order", 3),
    "labels of another scheme": put("labels", ["O", "S-LOC", "B-PER", "I-LOC", "I-PER"]),
    "no labels": put("labels", []),
    "a number as template": put("template", 7),
    "a template with a huge place": put("template", "lower[" + "9" * 5000 + "]"),
    "links of other classes": put("links", [1.0]),
    "an infinite slope": put("calibration", [float("inf"), 0.0]),
    "counts that are texts": put("counts", {"Anna": {"PER": "many"}}),
    "objects": array("label", lambda a: a.astype("S1")),
    **{f"no {name}": without(name) for part in of_entities() for name in part},
}
OF_SEGMENTS = {
    "a topic beyond the last": entry("topics", 2),
    "words of another vocabulary": array("texture", lambda a: a[:2]),
    "descriptors of another length": array("colour", lambda a: a[:, :7]),
    "a probability above one": entry("beta0", 7.0),
    "a probability that is no number": entry("beta1", np.nan),
    "five neighbours": put("neighbours", 5),
    "a coupling that is a text": put("coupling", "strong"),
    "huge images": put("longest", 10**9),
    "one class": put("classes", ["grass"]),
    **{f"no {name}": without(name) for part in of_segments() for name in part},
}


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(pytest.param("ner", change, id=f"ner: {name}") for name, change in OF_ENTITIES.items()),
        *(pytest.param("segment", change, id=f"segment: {name}") for name, change in OF_SEGMENTS.items()),
    ],
)
def test_what_does_not_fit_together_is_refused(kind: str, change: Callable[[Parts], None], tmp_path: Path) -> None:
    parts = of_entities() if kind == "ner" else of_segments()
    change(parts)
    assert "damaged" in refused(kind, tmp_path / "a", pack(kind, *parts))


@pytest.mark.parametrize("kind", ["ner", "segment"])
def test_headers_that_are_none(kind: str, tmp_path: Path) -> None:
    start = json.dumps({"kind": f"gibbsite {kind}", "format": 1}).encode()
    for header in (b"[" * 200_000, b"{}", b"[]", b'"text"', b"7", b"\xff\xfe", start, b"", 7, [0.5]):
        refused(kind, tmp_path / "a", sealed(header))


@pytest.mark.parametrize("kind", ["ner", "segment"])
def test_memory_is_bounded_by_the_file(kind: str, tmp_path: Path) -> None:
    header, arrays = of_entities() if kind == "ner" else of_segments()
    if kind == "ner":
        arrays |= {"weight": np.zeros(17 << 20, np.float32), "label": np.zeros(17 << 20, np.uint8)}
    else:
        arrays |= {"texture": np.zeros((17 << 13, 128), np.float32), "beta0": np.zeros((2, 17 << 13))}
    content = pack(kind, header, arrays)
    text = sealed(b" " * ((17 << 20) - 1) + b"{")
    assert len(content) + len(text) < 1 << 20
    tracemalloc.start()
    try:
        refused(kind, tmp_path / "a", content)
        refused(kind, tmp_path / "a", text)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
