"""Segmentation into classes that are learnt from whole images: a Markov field aspect model [1]_.

References
----------
.. [1] Verbeek, J. and Triggs, B. (2007). Region classification with Markov field aspect models. CVPR.
.. [2] Mitliagkas, I. and Mackey, L. (2017). Improving Gibbs sampler scan quality with DoGS. ICML.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsite._common.arguments import check_integer, checked, describe, is_number, read_integers
from gibbsite._common.arrays import Array, Bytes, Floats, Ints
from gibbsite._common.boundary import Wanted, between, fits, one_of
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.images import as_photograph, need_pillow
from gibbsite.applications.segmentation import features
from gibbsite.applications.segmentation.labelled import Example, HammingScore, LabelledImages, confuse
from gibbsite.applications.segmentation.patch_field import Labelled, Region, gather, label_field, learn_coupling
from gibbsite.applications.segmentation.rendering import MOST_LABELS, Legend, make_legend
from gibbsite.applications.storage import read_file, write_file
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.formats.parsing.text import PathLike
from gibbsite.learn.aspect.estimator import AspectModel

UNLABELLED = ("drop", "keep")
#: The default coupling, and those that "held-back" chooses from; docs/lab.md shows errors as a function of it.
STRONG = 2.0
COUPLINGS = (0.0, 0.25, 0.48, 1.0, 1.5, 2.0, 3.0, 4.0)


def _not_negative(given: Any) -> bool:
    return fits(given, float) and given >= 0


@dataclass(frozen=True, eq=False)
class Segmentation:
    """A labelled image.

    Attributes
    ----------
    labels : int array (height, width)
        Positions in ``classes``.
    certainty : float array (height, width)
        Probability of the label.
    classes : tuple of str
        Names of the labels.
    patches : Labelled
        Labels and probabilities of patches.
    method : str
        The method used.
    seconds : float
        Time taken.
    """

    labels: Ints
    certainty: Floats
    classes: tuple[str, ...]
    patches: Labelled
    method: str
    seconds: float

    def shares(self) -> dict[str, float]:
        """Return the share of pixels of every label that occurs, largest first."""
        counts = np.bincount(self.labels.ravel(), minlength=len(self.classes)) / self.labels.size
        order = np.argsort(-counts, kind="stable")
        return {self.classes[k]: float(counts[k]) for k in order if counts[k]}


@checked
class Segmenter:
    """A segmenter that learns classes from images whose sets of classes are known, and labels other images.

    Parameters
    ----------
    texture, colour : int
        Number of visual words.
    coupling : float, "learn" or "held-back"
        How strongly neighbouring patches prefer equal labels. "learn" maximises the pseudo-likelihood of the label maps
        of the training images, instead of using their sets of classes alone. "held-back" takes the coupling with the
        fewest wrong pixels in thirds of the training images, labelled by what the other two thirds teach.
    unlabelled : {"drop", "keep"}
        Whether patches of which more than half has no class in the label map are left out, or learnt as if they showed
        one of the classes of their image.
    neighbours : {4, 8}
        Number of neighbours of a patch.
    smoothing, starts
        Parameters of :class:`gibbsite.learn.AspectModel`.
    rng : int
        Seed.

    Attributes
    ----------
    classes : tuple of str
        The classes learnt.
    aspects : AspectModel
        Probabilities of visual words.
    words : VisualWords
        The vocabularies.
    longest : int
        Length of the longer side of training images in pixels, to which other images are scaled.

    Examples
    --------
    >>> from gibbsite.applications.segmentation import Segmenter, make_pictures
    >>> pictures = make_pictures(12, rng=1)
    >>> segmenter = Segmenter(texture=20, colour=10).fit(pictures)
    >>> found = segmenter.segment(pictures.examples[0].image)
    >>> found.labels.shape == pictures.examples[0].labels.shape
    True
    """

    @checked
    def __init__(
        self,
        texture: int = 1000,
        colour: int = 100,
        *,
        coupling: float | str = STRONG,
        unlabelled: str = "drop",
        neighbours: int = 4,
        smoothing: float = 0.01,
        starts: int = 1,
        rng: int = 0,
    ) -> None:
        self.texture, self.colour = check_integer("texture", texture, 1), check_integer("colour", colour, 1)
        learns = isinstance(coupling, str) and coupling in ("learn", "held-back")
        if not learns and not (is_number(coupling) and 0.0 <= float(coupling) < np.inf):
            raise ArgumentError(
                f'{argument("coupling")} must be a number of at least 0, "learn" or "held-back", got {coupling!r}.'
            )
        self.coupling: float | str = coupling if isinstance(coupling, str) else float(coupling)
        if unlabelled not in UNLABELLED:
            raise ArgumentError(unknown("unlabelled", unlabelled, UNLABELLED))
        self.unlabelled = unlabelled
        if not is_number(neighbours) or neighbours not in (4, 8):
            raise ArgumentError(f"{argument('neighbours')} must be 4 or 8, got {neighbours!r}.")
        self.neighbours, self.smoothing, self.starts = neighbours, smoothing, starts
        self.rng = check_integer("rng", rng, 0)
        self.classes: tuple[str, ...] = ()
        self.colours: Bytes | None = None
        self.longest = 0
        self.skipped = 0

    # ---- learning

    def fit(self, images: LabelledImages, described: Sequence[features.Descriptors] | None = None) -> Segmenter:
        """Learn from images.

        Of each label map only the set of classes is used, and which patches have none of them, unless a coupling is
        learnt or chosen.

        Parameters
        ----------
        images : LabelledImages
            Images without any class are left out.
        described : sequence of Descriptors, optional
            Descriptors of these images, which are computed by default.
        """
        self.longest = int(np.median([max(one.image.shape[:2]) for one in images.examples]))
        present = [one.present() for one in images.examples]
        kept = [k for k, each in enumerate(present) if each]
        self.skipped = len(present) - len(kept)
        if not kept:
            raise ModelError("no training image shows a class; there is nothing to learn.")
        if described is None:
            described = [features.describe(self._scaled(images.examples[k].image)) for k in kept]
        else:
            if len(described) != len(present):
                what = f"one item for each of the {len(present)} images"
                raise ArgumentError(f"{argument('described')} must have {what}, got {len(described)}.")
            described = [described[k] for k in kept]
        self.words = features.learn_words(described, self.texture, self.colour, self.rng)
        documents = [self.words.read(one) for one in described]
        self.classes, self.colours = images.classes, images.colours
        sets = [present[k] for k in kept]
        missing = sorted(set(range(len(images.classes))) - {c for each in sets for c in each})
        if missing:
            raise ModelError(f"no training image shows the class {images.classes[missing[0]]!r}; leave it out.")
        examples = [images.examples[k] for k in kept]
        learnt_from = [self._labelled(document, one) for document, one in zip(documents, examples, strict=True)]
        self.aspects = self._new_aspects().fit(learnt_from, sets, sizes=self.words.sizes)
        if self.coupling == "learn":
            self.coupling = self._learn_coupling(documents, described, examples)
        elif self.coupling == "held-back":
            shapes = [one.shape for one in described]
            self.coupling = self._choose_coupling(documents, learnt_from, sets, shapes, examples)
        return self

    def _new_aspects(self) -> AspectModel:
        return AspectModel(smoothing=self.smoothing, starts=self.starts, rng=self.rng)

    def _labelled(self, document: Ints, example: Example) -> Ints:
        """Return the words of the patches that classes are learnt from; of an image without any, those of all."""
        if self.unlabelled == "keep":
            return document
        height, width = example.labels.shape
        high, wide = self._scaled_size(height, width)
        y, x = np.arange(high) * height // high, np.arange(wide) * width // wide
        kept = features.labelled_shares(example.labels[np.ix_(y, x)]) >= 0.5
        return document[kept] if kept.any() else document

    def _choose_coupling(
        self,
        documents: list[Ints],
        learnt_from: list[Ints],
        sets: list[list[int]],
        shapes: list[tuple[int, int]],
        examples: list[Example],
    ) -> float:
        """Return the coupling with the fewest wrong pixels in images that were held back, the smallest of several."""
        parts = min(3, len(documents))
        if parts < 2:
            raise ModelError("a coupling cannot be chosen on images held back, because only one image shows a class.")
        turn = np.random.default_rng(self.rng).permutation(len(documents)) % parts
        wrong = np.zeros(len(COUPLINGS), np.int64)
        for part in range(parts):
            others = np.flatnonzero(turn != part)
            aspects = self._new_aspects().fit(
                [learnt_from[k] for k in others], [sets[k] for k in others], sizes=self.words.sizes
            )
            for k in np.flatnonzero(turn == part):
                fields = aspects.log_weights([documents[k]])[0].reshape(*shapes[k], -1)
                truth = examples[k].labels
                for number, coupling in enumerate(COUPLINGS):
                    found = label_field(
                        fields, "chromatic", coupling=coupling, neighbours=self.neighbours, rounds=25, rng=self.rng
                    )
                    pixels = self._enlarge(found, *truth.shape)[0]
                    wrong[number] += np.count_nonzero((truth >= 0) & (aspects.classes_[pixels] != truth))
        return COUPLINGS[int(wrong.argmin())]

    def _learn_coupling(
        self, documents: list[Ints], described: Sequence[features.Descriptors], examples: list[Example]
    ) -> float:
        """Learn the coupling from labels of patches, which are those of the pixels at their centres."""
        parts = []
        for document, found, example in zip(documents, described, examples, strict=True):
            rows, columns = found.shape
            height, width = example.labels.shape
            y = ((np.arange(rows) + 1) * features.STRIDE * height // ((rows + 1) * features.STRIDE)).clip(0, height - 1)
            x = ((np.arange(columns) + 1) * features.STRIDE * width // ((columns + 1) * features.STRIDE)).clip(
                0, width - 1
            )
            fields = self.aspects.log_weights([document])[0].reshape(rows, columns, -1)
            parts.append(gather(fields, example.labels[np.ix_(y, x)].astype(np.int64), self.neighbours))
        return learn_coupling(parts)

    # ---- labelling

    def fields(self, image: Any) -> Floats:
        """Return log(theta beta) of all patches of an image, an array (rows, columns, classes)."""
        return self.fields_of(features.describe(self._scaled(as_photograph(image))))

    def fields_of(self, described: features.Descriptors) -> Floats:
        """Return log(theta beta) of patches that have been described."""
        self._check()
        weights = self.aspects.log_weights([self.words.read(described)])[0]
        return weights.reshape(*described.shape, -1)

    def segment(
        self,
        image: Any,
        method: str = "systematic",
        *,
        region: tuple[int, int, int, int] | None = None,
        rounds: int = 50,
        label: str = "marginal",
        rng: Any = 1,
    ) -> Segmentation:
        """Label an image.

        Parameters
        ----------
        image : array (height, width) or (height, width, channels)
            A photograph of any size; it is scaled to that of the training images.
        method, rounds, label, rng
            As for :func:`label_field`.
        region : (x0, y0, x1, y1), optional
            The region for method "dogs", in pixels; the middle by default.
        """
        self._check()
        begun = time.perf_counter()
        photograph = as_photograph(image)
        height, width = photograph.shape[:2]
        patches = None if region is None else self._patches_in(region, height, width)
        fields = self.fields(photograph)
        assert not isinstance(self.coupling, str)
        found = label_field(
            fields,
            method,
            coupling=self.coupling,
            neighbours=self.neighbours,
            region=patches,
            rounds=rounds,
            label=label,
            rng=rng,
        )
        labels, certainty = self._enlarge(found, height, width)
        return Segmentation(labels, certainty, self.classes, found, method, time.perf_counter() - begun)

    def score(self, images: LabelledImages, method: str = "systematic", **how: Any) -> HammingScore:
        """Label images, and count the pixels whose labels differ from their label maps.

        Classes of the images that were not learnt count as wrong; ``how`` is passed to :meth:`segment`.
        """
        self._check()
        known = {name: k for k, name in enumerate(self.classes)}
        names = (*self.classes, *(name for name in images.classes if name not in known))
        number = {name: k for k, name in enumerate(names)}
        table = np.array([*(number[name] for name in images.classes), -1])
        confusion = np.zeros((len(names), len(names)), np.int64)
        for one in images.examples:
            found = self.segment(one.image, method, **how)
            confusion += confuse(table[one.labels], found.labels, len(names))
        return HammingScore(names, confusion)

    def legend(self) -> Legend:
        """Return names and colours of the classes."""
        return make_legend(self.classes, self.colours)

    def _scaled(self, image: Bytes) -> Bytes:
        """Scale an image to the size of the training images."""
        height, width = self._scaled_size(*image.shape[:2])
        if (height, width) == image.shape[:2]:
            return image
        pillow = need_pillow()
        return np.asarray(pillow.fromarray(image).resize((width, height), pillow.Resampling.BILINEAR))

    def _scaled_size(self, height: int, width: int) -> tuple[int, int]:
        if max(height, width) == self.longest:
            return height, width
        share = self.longest / max(height, width)
        return max(features.PATCH, round(height * share)), max(features.PATCH, round(width * share))

    def _enlarge(self, found: Labelled, height: int, width: int) -> tuple[Ints, Floats]:
        """Return labels and certainty of pixels."""
        high, wide = self._scaled_size(height, width)
        y, x = np.arange(height) * high // height, np.arange(width) * wide // width
        places = features.spread(np.arange(found.labels.size).reshape(found.labels.shape), high, wide)[np.ix_(y, x)]
        return found.labels.ravel()[places], found.certainty.ravel()[places]

    def _patches_in(self, region: tuple[int, int, int, int], height: int, width: int) -> Region:
        """Return the patches whose centres lie in a region of pixels."""
        corners = read_integers("region", region)
        if corners.shape != (4,):
            raise ArgumentError(f"{argument('region')} must be x0, y0, x1, y1, got {describe(region)}.")
        left, top, right, bottom = corners.tolist()
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            raise ArgumentError(
                f"{argument('region')} {left},{top},{right},{bottom} is not in the picture, which has "
                f"{width} x {height} pixels; give x0,y0,x1,y1 with 0 <= x0 < x1 <= {width} and "
                f"0 <= y0 < y1 <= {height}."
            )
        high, wide = self._scaled_size(height, width)
        rows, columns = features.patch_shape(high, wide)
        found = []
        for low, up, pixels, scaled, many in ((left, right, width, wide, columns), (top, bottom, height, high, rows)):
            centres = (np.arange(many) + 1) * features.STRIDE * pixels / scaled
            inside = np.flatnonzero((centres >= low) & (centres < up))
            if not inside.size:
                raise ArgumentError(
                    f"{argument('region')} {left},{top},{right},{bottom} contains the centre of no patch; "
                    "choose a larger one."
                )
            found.append((int(inside[0]), int(inside[-1]) + 1))
        return found[0][0], found[1][0], found[0][1], found[1][1]

    def _check(self) -> None:
        if not self.classes:
            raise ModelError("this Segmenter has learnt nothing yet; call fit first.")

    # ---- files

    def save(self, path: PathLike) -> None:
        """Write what was learnt to a file."""
        self._check()
        header = {
            "classes": list(self.classes),
            "coupling": self.coupling,
            "neighbours": self.neighbours,
            "longest": self.longest,
            "smoothing": self.smoothing,
            "rng": self.rng,
        }
        arrays: dict[str, Array] = {"texture": self.words.texture, "colour": self.words.colour}
        arrays |= {f"beta{k}": table for k, table in enumerate(self.aspects.words_)}
        arrays["topics"] = self.aspects.classes_.astype(np.int64)
        if self.colours is not None:
            arrays["colours"] = self.colours
        write_file("segment", path, header, arrays)

    @classmethod
    def load(cls, path: PathLike) -> Segmenter:
        """Read what was learnt from a file."""
        header, arrays = read_file("segment", path, _HEADER, _expect)
        made = cls(
            coupling=header["coupling"],
            neighbours=header["neighbours"],
            smoothing=header["smoothing"],
            rng=header["rng"],
        )
        made.classes, made.longest = tuple(header["classes"]), header["longest"]
        made.colours = arrays.get("colours")
        made.words = features.VisualWords(arrays["texture"], arrays["colour"])
        tables = [arrays[f"beta{k}"] for k in range(3)]
        made.aspects = AspectModel.from_words(tables, arrays["topics"], smoothing=header["smoothing"])
        return made


_LONGEST = 1 << 13  # largest side in pixels to which images are scaled

# The pattern of a header; see gibbsite._common.boundary.fits.
_HEADER = {
    "classes": lambda names: fits(names, [str]) and 0 < len(names) <= MOST_LABELS,
    "coupling": _not_negative,
    "neighbours": one_of(4, 8),
    "longest": between(features.PATCH, _LONGEST),
    "smoothing": lambda given: (
        _not_negative(given) or (isinstance(given, list) and len(given) == 2 and all(map(_not_negative, given)))
    ),
    "rng": lambda seed: fits(seed, int) and seed >= 0,
}


def _expect(header: dict[str, Any]) -> dict[str, Wanted]:
    """Return the arrays that belong to a header."""
    topics, real = len(header["classes"]), (np.float32, np.float64)
    return {
        "texture": Wanted(real, ("texture", 16 * features.DIRECTIONS)),
        "colour": Wanted(real, ("colour", features.HUES)),
        "beta0": Wanted(np.float64, (topics, "texture"), 0, 1),
        "beta1": Wanted(np.float64, (topics, "colour"), 0, 1),
        "beta2": Wanted(np.float64, (topics, features.PLACES**2), 0, 1),
        "topics": Wanted(np.int64, (topics,), 0, topics - 1),
        "colours": Wanted(np.uint8, (topics, 3), optional=True),
    }
