"""Data of the papers as they are distributed, converted to the layout of the folder that experiments read.

``docs/data.md`` describes the layout. Each converter takes the unpacked distribution, in which files are found at any
depth, and writes its part of the data folder.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Bytes
from gibbsite._common.notice import warn_user
from gibbsite._common.wording import unknown
from gibbsite.applications.entities.documents import Document, Sentence, read_text, tokenize
from gibbsite.applications.images import read_photograph, write_image
from gibbsite.errors import ArgumentError, FormatError
from gibbsite.formats.parsing.text import PathLike, load, save
from gibbsite.lab.experiment import make_folder
from gibbsite.learn.crf.labels import Span, find_spans, write_spans

#: Classes of MSRC, version 2, in the order of their numbers, with the colours of the label maps; 0 is void.
MSRC_CLASSES = {
    "void": (0, 0, 0),
    "building": (128, 0, 0),
    "grass": (0, 128, 0),
    "tree": (128, 128, 0),
    "cow": (0, 0, 128),
    "horse": (128, 0, 128),
    "sheep": (0, 128, 128),
    "sky": (128, 128, 128),
    "mountain": (64, 0, 0),
    "aeroplane": (192, 0, 0),
    "water": (64, 128, 0),
    "face": (192, 128, 0),
    "car": (64, 0, 128),
    "bicycle": (192, 0, 128),
    "flower": (64, 128, 128),
    "sign": (192, 128, 128),
    "bird": (0, 64, 0),
    "book": (128, 64, 0),
    "chair": (0, 192, 0),
    "road": (128, 64, 128),
    "cat": (0, 192, 128),
    "dog": (128, 192, 128),
    "body": (64, 64, 0),
    "boat": (192, 64, 0),
}
#: The classes of version 1, which the experiment uses.
_NINE = ("building", "grass", "tree", "cow", "sky", "aeroplane", "face", "car", "bicycle")
_CATEGORIES = range(1, 9)  # the images of version 1
_TYPES = ("PERSON", "LOCATION", "ORGANIZATION")
_EVERY = 11  # one of each eleven articles of the newswire is in the development set
_PART = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>.*?<TEXT>(.*?)</TEXT>", re.S)
_TAG = re.compile(r"<([^<>]*)>")


class Converted(NamedTuple):
    """What a converter has written: files, and what they contain."""

    paths: list[Path]
    contents: str


@checked
def convert(name: str, source: PathLike, folder: PathLike) -> Converted:
    """Convert the data of a name.

    Parameters
    ----------
    name : {"msrc", "mpeg7", "ieer", "newswire"}
        The data.
    source : str or path
        The folder with the unpacked distribution.
    folder : str or path
        The data folder, which is made if it does not exist.

    Raises
    ------
    FormatError
        If the source is no folder, or has no files of this kind.

    Examples
    --------
    >>> convert("msrc", "no/such/folder", "data")
    Traceback (most recent call last):
    gibbsite.errors.FormatError: no/such/folder: there is no folder of this name; unpack the data and give their folder.
    """
    if name not in CONVERTERS:
        raise ArgumentError(unknown("data", name, tuple(CONVERTERS)))
    if not Path(source).is_dir():
        raise FormatError("there is no folder of this name; unpack the data and give their folder.", str(source))
    return CONVERTERS[name](Path(source), Path(folder))


def _find(source: Path, pattern: str, what: str) -> list[Path]:
    """Return the files of a pattern at any depth, sorted by name; refuse a folder that has none."""
    found = sorted((path for path in source.rglob(pattern) if path.is_file()), key=lambda path: path.name)
    if not found:
        raise FormatError(f"the folder has no {what} at any depth; unpack the data first.", str(source))
    return found


def _convert_msrc(source: Path, folder: Path) -> Converted:
    """Convert photographs and coloured label maps."""
    place, paths, unknown_colours = make_folder(folder / "images" / "msrc"), [], 0
    for truth in _find(source, "*_GT.bmp", "label maps (NAME_GT.bmp)"):
        name = truth.stem.removesuffix("_GT")
        match = re.fullmatch(r"(\d+)_(\d+)_s", name)
        if match is None or int(match[1]) not in _CATEGORIES or not (part := _part_of(int(match[2]))):
            continue
        photograph = next(iter(sorted(source.rglob(f"{name}.bmp"))), None)
        if photograph is None:
            raise FormatError(f"the label map has no photograph; expected {name}.bmp in {source}.", str(truth))
        labels, strange = _read_colours(truth)
        unknown_colours += strange
        target = make_folder(place / part)
        write_image(read_photograph(photograph), target / f"{name}.png")
        write_image(labels, target / f"{name}_GT.png")
        paths += [target / f"{name}.png", target / f"{name}_GT.png"]
    if not paths:
        raise FormatError("the folder has no label maps of categories 1 to 8 (1_1_s_GT.bmp and so on).", str(source))
    if unknown_colours:
        warn_user(f"{unknown_colours:,} pixels of label maps have colours of no class; they are taken for void.")
    classes = [{"index": k, "name": name, "rgb": list(rgb)} for k, (name, rgb) in enumerate(MSRC_CLASSES.items())]
    save(place / "classes.json", json.dumps({"classes": classes, "v1_nine_classes": _NINE}, indent=1) + "\n")
    return Converted([*paths, place / "classes.json"], f"{len(paths) // 2} photographs with label maps")


def _part_of(number: int) -> str:
    """Return the folder of a photograph by its number in its category; the experiment does not use all of them."""
    return "train" if number % 2 else "devtest" if number % 6 == 2 else ""


def _read_colours(path: Path) -> tuple[Bytes, int]:
    """Return a label map with numbers instead of colours, and how many pixels have a colour of no class."""
    weights = np.array([65536, 256, 1])
    code = read_photograph(path).astype(np.int64) @ weights
    known = np.array(list(MSRC_CLASSES.values())) @ weights
    order = np.argsort(known)
    at = order[np.searchsorted(known[order], code).clip(max=known.size - 1)]
    strange = known[at] != code
    return np.where(strange, 0, at).astype(np.uint8), int(strange.sum())


def _convert_mpeg7(source: Path, folder: Path) -> Converted:
    """Convert silhouettes to images of one bit."""
    place, paths = make_folder(folder / "images" / "mpeg7"), []
    for path in _find(source, "*.gif", "silhouettes (NAME.gif)"):
        paths.append(place / f"{path.stem}.png")
        write_image(read_photograph(path).mean(axis=2) > 127.0, paths[-1])
    return Converted(paths, f"{len(paths)} silhouettes")


def _convert_ieer(source: Path, folder: Path) -> Converted:
    """Convert news with marks to tokens with labels."""
    place, paths, many = make_folder(folder / "ner" / "ieer"), [], 0
    for path in _find(source, "*_1998????", "news (APW_19980314 and so on)"):
        text = load(path, text=False).data.decode("latin-1")
        documents = [_read_marked(body, number) for number, body in _PART.findall(text)]
        if not documents:
            raise FormatError("the file has no document (<DOCNO> and <TEXT>).", str(path))
        paths.append(place / f"{path.name}.tsv.gz")
        save(paths[-1], _columns(documents))
        many += len(documents)
    return Converted(paths, f"{many} articles")


def _read_marked(body: str, name: str) -> Document:
    """Return the sentences of a text with ``<b_enamex type="...">`` and ``<e_enamex>`` around names.

    A token ends where a mark is. A sentence that would end within a name goes on.
    """
    text, spans = _take_marks(re.sub(r"<ANNOTATION>.*?</ANNOTATION>", "", body, flags=re.S).replace("\n\t", "\n\n\t"))
    document = Document(name, [], text)
    places: list[list[tuple[int, int]]] = []
    for sentence in read_text(text, name).sentences:
        if places and any(span.start < places[-1][-1][1] < span.end for span in spans):
            places[-1].extend(_cut(text, sentence.offsets or [], spans))
        else:
            places.append(list(_cut(text, sentence.offsets or [], spans)))
    for offsets in places:
        inside = [[k for k, (a, b) in enumerate(offsets) if s.start <= a and b <= s.end] for s in spans]
        found = [Span(at[0], at[-1] + 1, s.label) for s, at in zip(spans, inside, strict=True) if at]
        tokens = [text[a:b] for a, b in offsets]
        document.sentences.append(Sentence(tokens, write_spans(found, len(tokens)), offsets))
    return document


def _take_marks(body: str) -> tuple[str, list[Span]]:
    """Return a text without marks, and where names of the three classes are that are in no other one."""
    text, at = "", 0
    spans: list[Span] = []
    opened: list[tuple[int, str]] = []
    for tag in _TAG.finditer(body):
        text += html.unescape(body[at : tag.start()])
        at = tag.end()
        if tag[1].startswith("b_"):
            kind = re.fullmatch(r'b_enamex type="(\w+)"', tag[1])
            opened.append((len(text), kind[1] if kind else ""))
        elif tag[1].startswith("e_") and opened:
            begin, label = opened.pop()
            if label in _TYPES and text[begin:].strip():
                spans.append(Span(begin, len(text), label))
    return text + html.unescape(body[at:]), _outermost(spans)


def _outermost(spans: Iterable[Span]) -> list[Span]:
    """Return the spans that are in no other one, in their order."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if not found or span.start >= found[-1].end:
            found.append(span)
    return found


def _cut(text: str, offsets: Iterable[tuple[int, int]], spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Cut tokens where a span begins or ends within them; what is cut off is divided again."""
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    for begin, end in offsets:
        cuts = [begin, *(edge for edge in edges if begin < edge < end), end]
        for a, b in pairwise(cuts):
            yield from ((a + first, a + last) for first, last in tokenize(text[a:b]))


def _columns(documents: Iterable[Document]) -> Iterator[str]:
    """Yield the lines of documents in columns."""
    for document in documents:
        yield f"-DOCSTART-\t{document.name}\n\n"
        for sentence in document.sentences:
            yield "".join(f"{t}\t{label}\n" for t, label in zip(sentence.tokens, sentence.labels or [], strict=True))
            yield "\n"


def _convert_newswire(source: Path, folder: Path) -> Converted:
    """Convert articles in columns, of which nested names are in further columns, to two files with three classes."""
    place = make_folder(folder / "ner" / "worldwide-newswire")
    parts: dict[str, list[Document]] = {"train": [], "devtest": []}
    for number, path in enumerate(_find(source, "*.txt.tsv", "articles (NAME.txt.tsv)")):
        name = path.name.removesuffix(".txt.tsv")
        parts["devtest" if number % _EVERY == _EVERY - 1 else "train"].append(_read_article(path, name))
    paths = [place / f"{part}.tsv.gz" for part in parts]
    for path, documents in zip(paths, parts.values(), strict=True):
        save(path, _columns(documents))
    return Converted(paths, " and ".join(f"{len(each)} articles for {part}" for part, each in parts.items()))


def _read_article(path: Path, name: str) -> Document:
    """Read an article; of nested names the outermost one counts, and classes other than the three are dropped."""
    kept, document = {each.title(): each for each in _TYPES}, Document(name)
    for number, block in enumerate(re.split(r"\n[ \t]*\n", load(path).decoded().replace("\r", "")), 1):
        rows = [line.split("\t") for line in block.split("\n") if line.strip()]
        if any(len(row) < 2 for row in rows):
            raise FormatError(f"sentence {number} has a line without a label.", str(path))
        if rows:
            spans = find_spans([row[1] for row in rows])
            known = [span._replace(label=kept[span.label]) for span in spans if span.label in kept]
            document.sentences.append(Sentence([row[0] for row in rows], write_spans(known, len(rows))))
    return document


#: The converters, by the name of their data.
CONVERTERS: dict[str, Callable[[Path, Path], Converted]] = {
    "msrc": _convert_msrc,
    "mpeg7": _convert_mpeg7,
    "ieer": _convert_ieer,
    "newswire": _convert_newswire,
}
