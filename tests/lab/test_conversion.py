"""Data of the papers are converted to what the experiments read, from small files in the formats of the distributions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsite as gs
from gibbsite.applications.entities.columns import read_columns
from gibbsite.applications.images import read_image
from gibbsite.applications.segmentation.labelled import read_labelled
from gibbsite.lab.conversion import CONVERTERS, MSRC_CLASSES, convert
from gibbsite.lab.data import data_folder
from gibbsite.lab.dogs.segmentation_counts import MADE_UP, find_pictures
from gibbsite.lab.herded.denoising import find_silhouette
from gibbsite.lab.herded.entities import DATA as NEWS
from gibbsite.learn.crf.labels import find_spans

ARTICLE = """<IEER_DOC type="NEWSWIRE" fileid="" collect_date="">
<DOC>
<DOCNO> APW19980314.0391 </DOCNO>
<DOCTYPE> NEWS STORY </DOCTYPE>
<DATE_TIME> 03/14/1998 10:36:00 </DATE_TIME>
<BODY>
<HEADLINE>
<b_enamex type="LOCATION">Kenyans<e_enamex> protest
</HEADLINE>
<TEXT>
\t   <b_enamex type="LOCATION">NAIROBI<e_enamex>, <b_enamex type="LOCATION">Kenya<e_enamex> (<b_enamex type="ORGANIZATION">AT&amp;T<e_enamex>) _ \
<b_numex type="CARDINAL">Thousands<e_numex> met <b_enamex type="PERSON">Jos\xe9 del
R\xedo<e_enamex> of the <b_enamex type="LOCATION">Rome<e_enamex>-based club on <b_timex type="DATE">Saturday<e_timex>
\t   The firm is <b_enamex type="ORGANIZATION">Acme Inc. The Makers<e_enamex>. It rained.
<ANNOTATION>
\t   (STORY CAN END HERE.)
</ANNOTATION>
</TEXT>
</BODY>
</DOC>
<DOC>
<DOCNO> APW19980314.0392 </DOCNO>
<BODY>
<TEXT>
Nothing.
</TEXT>
</BODY>
</DOC>
</IEER_DOC>
"""


def save_picture(path: Path, pixels: Any) -> None:
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels).save(path)


@pytest.fixture
def msrc(tmp_path: Path) -> Path:
    """Return a folder as MSRC unpacks: photographs and coloured label maps in two folders."""
    colours = np.array(list(MSRC_CLASSES.values()), np.uint8)
    numbers = np.arange(48).reshape(6, 8) % 24
    for name in ("1_1_s", "1_2_s", "1_4_s", "8_29_s", "9_1_s"):
        shade = np.full((6, 8, 3), 17 * int(name[0]), np.uint8)
        save_picture(tmp_path / "msrc" / "Images" / f"{name}.bmp", shade)
        save_picture(tmp_path / "msrc" / "GroundTruth" / f"{name}_GT.bmp", colours[numbers])
    return tmp_path / "msrc"


def test_photographs_get_maps_of_numbers(msrc: Path, tmp_path: Path) -> None:
    found = convert("msrc", msrc, tmp_path / "data")
    assert found.contents == "3 photographs with label maps"
    assert all(path.is_file() for path in found.paths)
    place = tmp_path / "data" / "images" / "msrc"
    names = {part: sorted(path.name for path in (place / part).iterdir()) for part in ("train", "devtest")}
    assert names["train"] == ["1_1_s.png", "1_1_s_GT.png", "8_29_s.png", "8_29_s_GT.png"]
    assert names["devtest"] == ["1_2_s.png", "1_2_s_GT.png"]
    np.testing.assert_array_equal(read_image(place / "train" / "1_1_s_GT.png"), np.arange(48).reshape(6, 8) % 24)
    images = read_labelled(place / "train")
    assert images.classes == tuple(json.loads((place / "classes.json").read_text())["v1_nine_classes"])
    assert images.colours is not None
    assert images.colours.tolist() == [list(MSRC_CLASSES[name]) for name in images.classes]
    assert (images.examples[1].image == 8 * 17).all()
    with data_folder(tmp_path / "data"):
        assert find_pictures(False)[1] != MADE_UP


def test_colours_of_no_class_are_void_and_counted(msrc: Path, tmp_path: Path) -> None:
    strange = np.full((6, 8, 3), (0, 128, 0), np.uint8)
    strange[0, :2] = (1, 2, 3), (255, 255, 255)
    save_picture(msrc / "GroundTruth" / "1_1_s_GT.bmp", strange)
    with pytest.warns(UserWarning, match="2 pixels of label maps have colours of no class"):
        convert("msrc", msrc, tmp_path)
    labels = read_image(tmp_path / "images" / "msrc" / "train" / "1_1_s_GT.png")
    assert (labels[0, :2] == 0).all()
    assert (labels.ravel()[2:] == 2).all()


def test_a_label_map_without_its_photograph_is_refused(msrc: Path, tmp_path: Path) -> None:
    (msrc / "Images" / "1_2_s.bmp").unlink()
    with pytest.raises(
        gs.errors.FormatError, match=r"1_2_s_GT\.bmp: the label map has no photograph; expected 1_2_s\.b"
    ):
        convert("msrc", msrc, tmp_path)


@pytest.mark.parametrize("kind", ["palette", "grey"])
def test_silhouettes_become_images_of_one_bit(kind: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    truth = np.zeros((40, 30), bool)
    truth[10:25, 5:20] = True
    picture = image.fromarray(truth.astype(np.uint8) * (1 if kind == "palette" else 255))
    if kind == "palette":
        picture = picture.convert("P")
        picture.putpalette([0, 0, 0, 255, 255, 255])
    (tmp_path / "gifs" / "original").mkdir(parents=True)
    picture.save(tmp_path / "gifs" / "original" / "beetle-1.gif")
    (path,) = convert("mpeg7", tmp_path / "gifs", tmp_path / "data").paths
    with image.open(path) as saved:
        assert saved.mode == "1"
    with data_folder(tmp_path / "data"):
        name, found = find_silhouette(1) or ("", np.zeros(0))
    assert name == "beetle-1"
    np.testing.assert_array_equal(found, truth)


def test_marked_names_become_labels(tmp_path: Path) -> None:
    (tmp_path / "ieer").mkdir()
    (tmp_path / "ieer" / "APW_19980314").write_bytes(ARTICLE.encode("latin-1"))
    (tmp_path / "ieer" / "README").write_text("no news")
    found = convert("ieer", tmp_path / "ieer", tmp_path)
    assert (found.contents, [path.name for path in found.paths]) == ("2 articles", ["APW_19980314.tsv.gz"])
    first, second = read_columns(found.paths[0], labelled=True)
    assert (first.name, second.name) == ("APW19980314.0391", "APW19980314.0392")
    assert [" ".join(sentence.tokens) for sentence in first.sentences] == [
        "NAIROBI , Kenya ( AT&T ) _ Thousands met José del Río of the Rome - based club on Saturday",
        "The firm is Acme Inc. The Makers .",
        "It rained .",
    ]
    names = [
        (" ".join(sentence.tokens[a:b]), label)
        for sentence in first.sentences
        for a, b, label in find_spans(sentence.labels or [])
    ]
    assert names == [
        ("NAIROBI", "LOCATION"),
        ("Kenya", "LOCATION"),
        ("AT&T", "ORGANIZATION"),
        ("José del Río", "PERSON"),
        ("Rome", "LOCATION"),
        ("Acme Inc. The Makers", "ORGANIZATION"),
    ]
    assert [sentence.tokens for sentence in second.sentences] == [["Nothing", "."]]


def test_articles_become_two_files_with_three_classes(tmp_path: Path) -> None:
    source = tmp_path / "newswire" / "processed_annotated"
    source.mkdir(parents=True)
    text = "Uganda\tB-Organization\tB-Location\n's\tI-Organization\nCourt\tI-Organization\nmet\tO\n\n"
    text += "David\tB-Person\nKato\tI-Person\n,\tO\nUgandan\tB-NORP\n\n"
    for number in range(22):
        (source / f"af_{number:02}.txt.tsv").write_text(text)
    train, development = convert("newswire", source.parent, tmp_path / "data").paths
    assert [document.name for document in read_columns(development)] == ["af_10", "af_21"]
    documents = read_columns(train)
    assert len(documents) == 20
    assert [sentence.labels for sentence in documents[0].sentences] == [
        ["B-ORGANIZATION", "I-ORGANIZATION", "I-ORGANIZATION", "O"],
        ["B-PERSON", "I-PERSON", "O", "O"],
    ]
    with data_folder(tmp_path / "data"):
        assert NEWS.missing() == list(NEWS.files[2:])  # those of IE-ER
    (source / "af_03.txt.tsv").write_text("David\tB-Person\nKato\n")
    with pytest.raises(gs.errors.FormatError, match=r"af_03.*sentence 1 has a line without a label"):
        convert("newswire", source, tmp_path / "data")


@pytest.mark.parametrize("name", CONVERTERS)
def test_folders_without_the_data_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(gs.errors.FormatError, match="at any depth; unpack the data first"):
        convert(name, tmp_path, tmp_path / "data")
    with pytest.raises(gs.errors.FormatError, match="there is no folder of this name"):
        convert(name, tmp_path / "nothing", tmp_path / "data")
    with pytest.raises(gs.errors.ArgumentError, match="mpeg7"):
        convert(f"{name}8", tmp_path, tmp_path)
