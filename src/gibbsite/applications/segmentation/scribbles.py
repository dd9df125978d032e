"""Segmentation from scribbles: labels of a few strokes are extended to all pixels.

The unary terms of the field (:mod:`.field`) are u_i(l) = a log p_l(c_i, x_i) - b log(d_l(i) + 3): the density
of the colour of pixel i for label l, learnt from its scribbles, and the geodesic distance from them (:mod:`.unary`).
Because neighbouring pixels are not independent observations of their label, the log-density has a weight below 1,
a = 0.2, and b = 3. Large images are solved coarse to fine (:mod:`.coarsening`): at finer levels, only pixels along
borders are sampled, and the others are evidence.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import gibbsite as gs
from gibbsite._common.arguments import check_integer, check_number, checked
from gibbsite._common.arrays import Array, Bools, Bytes, Floats32, Ints, Ints16
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.images import as_photograph
from gibbsite.applications.methods import SCRIBBLES
from gibbsite.applications.posterior import average
from gibbsite.applications.segmentation import field
from gibbsite.applications.segmentation.coarsening import (
    border_band,
    enlarge,
    find_superpixels,
    halve_image,
    halve_scribbles,
    label_of_regions,
    mean_of_regions,
    region_neighbourhood,
)
from gibbsite.applications.segmentation.rendering import Legend, Outputs, write_segmentation
from gibbsite.applications.segmentation.strokes import Strokes, read_scribbles
from gibbsite.applications.segmentation.unary import ColourModels, log_proximity, to_lab
from gibbsite.errors import ArgumentError

_AVERAGED = {"herded": "herded-site"}  # names of methods in gibbsite.applications.posterior
_BEST = ("annealed", "icm")
# Largest numbers of pixels of the coarsest level, and of the level on which distances along paths are computed.
_PIXELS, _PATHS = 300_000, 80_000
_COLOUR, _PROXIMITY = 0.2, 3.0


@dataclass(frozen=True, eq=False, repr=False)
class Segmented:
    """A segmented image.

    Attributes
    ----------
    labels : uint8 array (height, width)
        The label of every pixel, 0, 1, ...
    legend : Legend
        Names and colours of the labels: the colours or numbers of the scribbles.
    certainty : float32 array (height, width) or None
        The probability of the label; None if the method gives no probabilities.
    method : str
        The method used.
    coupling : float
        J, given or found.
    models : list of FactorGraph
        The fields of all levels, from the coarsest to the finest.
    result : Result, MeanFieldResult or None
        Of the finest level.
    image : uint8 array (height, width, 3)
        The image that was segmented.
    seconds : float
        Time taken.
    interrupted : bool
        Whether it was stopped early.
    """

    labels: Bytes
    legend: Legend
    certainty: Floats32 | None
    method: str
    coupling: float
    models: list[gs.FactorGraph]
    result: Any
    image: Bytes
    seconds: float
    interrupted: bool

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of the pixels of each label, by name."""
        counts = np.bincount(self.labels.ravel(), minlength=len(self.legend.names))
        return {name: float(c) / self.labels.size for name, c in zip(self.legend.names, counts, strict=True)}

    def line(self) -> str:
        """Return a summary in one line."""
        height, width = self.labels.shape
        shares = ", ".join(f"{name} {share:.1%}" for name, share in self.shares.items())
        sure = "" if self.certainty is None else f", mean certainty {float(self.certainty.mean()):.3f}"
        return (
            f"{width} x {height} pixels, {self.method}, coupling {self.coupling:.3g}: {shares}{sure}, "
            f"{self.seconds:.2g} s"
        )

    def facts(self) -> dict[str, Any]:
        """Return a summary as plain data."""
        height, width = self.labels.shape
        return {
            "width": width,
            "height": height,
            "method": self.method,
            "coupling": self.coupling,
            "shares": self.shares,
            "certainty": None if self.certainty is None else float(self.certainty.mean()),
            "sites": [model.n_sites for model in self.models],
            "seconds": self.seconds,
        }

    def save(self, path: Any) -> Outputs:
        """Write the label image (PNG), and beside it legend, certainty and overlay."""
        return write_segmentation(path, self.labels, self.legend, certainty=self.certainty, image=self.image)

    def __repr__(self) -> str:
        return f"Segmented({self.line()})"


@dataclass(frozen=True)
class _Settings:
    """Arguments of :func:`segment_scribbles`."""

    coupling: float | None
    contrast: bool
    neighbours: int
    colour: float
    proximity: float
    method: str | gs.kernels.Kernel
    sweeps: int
    states: bool
    rng: Any
    progress: Any


@dataclass
class _Solved:
    """Labels and certainty of nodes, with the model and its result."""

    labels: Bytes
    certainty: Floats32
    model: gs.FactorGraph
    coupling: float
    result: Any

    @property
    def interrupted(self) -> bool:
        return bool(getattr(self.result, "interrupted", False))


@checked
def segment_scribbles(
    image: Any,
    scribbles: Any,
    *,
    coupling: float | None = None,
    contrast: bool = True,
    neighbours: int = 8,
    colour: float = _COLOUR,
    proximity: float = _PROXIMITY,
    superpixels: int | None = None,
    method: str | gs.kernels.Kernel = "gibbs",
    sweeps: int = 40,
    average_states: bool = False,
    background: str | None = None,
    largest: int = _PIXELS,
    rng: Any = None,
    progress: Any = None,
) -> Segmented:
    """Label every pixel of an image, given scribbles of two or more labels.

    Parameters
    ----------
    image : array (height, width) or (height, width, channels)
        Grey or coloured, of any depth, see :func:`gibbsite.applications.images.as_photograph`.
    scribbles : array
        Whole numbers (height, width), 0 where there is no scribble; or colours (height, width, 3 or 4) of 8 bits: each
        that is not background is a label. Background is transparent; or unchanged, if the scribbles are a copy of the
        image that was painted on; otherwise black or white, whichever covers more.
    coupling : float, optional
        J, how strongly neighbours of the same colour prefer the same label. By default, equal neighbours outweigh the
        unary terms of nine in ten pixels.
    contrast : bool
        Weaken couplings where colours change.
    neighbours : {8, 4}
        Number of neighbours of each pixel.
    colour, proximity : float
        Weights of the log-density of the colour and of the logarithm of the distance from scribbles.
    superpixels : int, optional
        Label about this many superpixels instead of pixels; requires scikit-image.
    method : {"gibbs", "herded", "blocks", "mean-field", "annealed", "icm"} or Kernel
        Gibbs sampling; herded Gibbs sampling; Gibbs sampling of whole rows of pixels; mean field; the best labels of
        simulated annealing; ascent to the nearest local maximum; or a kernel.
    sweeps : int
        Number of sweeps at each level; all of them are averaged. The start is the label of each pixel that is best
        without its neighbours.
    average_states : bool
        Take the most frequent label, instead of the one with the largest mean conditional probability.
    background : str, optional
        The colour of the background of the scribbles, as "#rrggbb".
    largest : int
        Images with more pixels are solved coarse to fine.
    rng : int, Generator or SeedSequence, optional
        Seed.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    Segmented

    Examples
    --------
    >>> import gibbsite as gs
    >>> import numpy as np
    >>> disc = np.hypot(*np.indices((40, 40)) - 20.0) < 12
    >>> image = np.where(disc, 90, 60) + np.random.default_rng(1).normal(0, 5, disc.shape)
    >>> scribbles = np.zeros((40, 40), int)
    >>> scribbles[20, 14:26] = 1
    >>> scribbles[[3, 36], 3:36] = 2
    >>> found = gs.applications.segment_scribbles(image, scribbles, rng=1, progress=False)
    >>> bool(((found.labels == 0) == disc).mean() > 0.95)
    True
    """
    begun = time.monotonic()
    if not isinstance(method, gs.kernels.Kernel) and method not in SCRIBBLES:
        raise ArgumentError(unknown("method", method, SCRIBBLES))
    if neighbours not in field.NEIGHBOURS:
        raise ArgumentError(f"{argument('neighbours')} must be 4 or 8, got {neighbours!r}.")
    settings = _Settings(
        None if coupling is None else check_number("coupling", coupling, zero=True),
        bool(contrast),
        neighbours,
        check_number("colour", colour, zero=True),
        check_number("proximity", proximity, zero=True),
        method,
        check_integer("sweeps", sweeps, 1),
        average_states,
        rng,
        progress,
    )
    picture = as_photograph(image)
    strokes = scribbles if isinstance(scribbles, Strokes) else read_scribbles(scribbles, picture, background)
    labels = len(strokes.legend.names)
    if superpixels is not None:
        count = check_integer("superpixels", superpixels, 2)
        solved, models = _solve_regions(picture, strokes.labels, labels, count, settings)
    else:
        most = check_integer("largest", largest, 1)
        solved, models = _solve_levels(picture, strokes.labels, labels, most, settings)
    return Segmented(
        labels=solved.labels,
        legend=strokes.legend,
        certainty=None if method in _BEST else solved.certainty,
        method=method if isinstance(method, str) else type(method).__name__,
        coupling=solved.coupling,
        models=models,
        result=solved.result,
        image=picture,
        seconds=time.monotonic() - begun,
        interrupted=solved.interrupted,
    )


class _Terms:
    """Unary terms of pixels of all levels; seeds and distances are computed on coarse levels."""

    def __init__(self, levels: list[tuple[Bytes, Ints16]], labels: int, settings: _Settings) -> None:
        image, scribbles = levels[-1]
        self.settings, self.longest = settings, max(levels[0][0].shape[:2])
        self.colours = to_lab(image)
        self.depth = len(levels) - 1
        height, width = scribbles.shape
        rows, columns = np.indices((height, width), np.float32)
        places = np.stack([rows, columns], axis=-1) * np.float32(2**self.depth / self.longest)
        self.models = ColourModels.learn(self.colours, places, scribbles, labels)
        # distances vary slowly, so those of a coarse level suffice
        small, marks, self.path_depth = image, scribbles, self.depth
        while small.shape[0] * small.shape[1] > _PATHS:
            small, marks, self.path_depth = halve_image(small), halve_scribbles(marks), self.path_depth + 1
        around = field.grid_neighbourhood(np.ones(marks.shape, bool), 8)
        self.near = log_proximity(around, to_lab(small).reshape(-1, 3), marks.ravel(), labels).reshape(
            *marks.shape, labels
        )

    def unary(self, depth: int, positions: Ints, width: int, colours: Floats32) -> Floats32:
        """Return the unary terms of some pixels of a level."""
        y, x = np.divmod(positions, width)
        places = np.stack([y, x], axis=1).astype(np.float32) * np.float32(2**depth / self.longest)
        logs = self.models.log_densities(colours, places)
        logs *= np.float32(self.settings.colour)
        down = self.path_depth - depth
        logs += np.float32(self.settings.proximity) * self.near[y >> down, x >> down]
        return logs


def _solve_levels(
    image: Bytes, scribbles: Ints16, labels: int, most: int, settings: _Settings
) -> tuple[_Solved, list[gs.FactorGraph]]:
    """Label the coarsest level, and then the borders of finer levels."""
    levels = [(image, scribbles)]
    while levels[-1][1].size > most and min(levels[-1][1].shape) > 1:
        levels.append((halve_image(levels[-1][0]), halve_scribbles(levels[-1][1])))
    terms = _Terms(levels, labels, settings)
    models: list[gs.FactorGraph] = []
    solved: _Solved | None = None
    for depth in range(len(levels) - 1, -1, -1):
        picture, marks = levels.pop()
        if solved is None:
            found, free = np.zeros(marks.shape, np.uint8), np.ones(marks.shape, bool)
            certainty = np.ones(marks.shape, np.float32)
        else:
            free = enlarge(border_band(solved.labels), marks.shape)
            found = enlarge(solved.labels, marks.shape)
            certainty = enlarge(solved.certainty, marks.shape)
            wrong = (marks >= 0) & (marks != found)
            if wrong.any():  # a scribble was lost at coarser levels
                free |= enlarge(border_band(halve_scribbles(np.where(wrong, 1, 0))), marks.shape)
        drawn = marks >= 0
        found[drawn], certainty[drawn] = marks[drawn], 1.0
        free &= ~drawn
        if solved is not None and solved.interrupted:
            solved.labels, solved.certainty = found, certainty
            continue
        coupling = settings.coupling if solved is None else solved.coupling
        one = _solve_pixels(picture, found, free, depth, terms, coupling, settings)
        found[free], certainty[free] = one.labels, one.certainty
        one.labels, one.certainty = found, certainty
        models.append(one.model)
        solved = one
    assert solved is not None
    return solved, models


def _solve_pixels(
    image: Bytes, found: Bytes, free: Bools, depth: int, terms: _Terms, coupling: float | None, settings: _Settings
) -> _Solved:
    """Label the free pixels of a level, given the labels of the others."""
    width = free.shape[1]
    around = field.grid_neighbourhood(free, settings.neighbours)
    colours = to_lab(image.reshape(-1, 3)[around.nodes])
    known = np.where(free.ravel()[around.nodes], -1, found.ravel()[around.nodes].astype(np.int64))
    unary = terms.unary(depth, around.nodes[known < 0], width, colours[known < 0])
    rows = around.nodes[known < 0] // width
    return _solve(around, colours, known, unary, coupling, rows, settings)


def _solve_regions(
    image: Bytes, scribbles: Ints16, labels: int, count: int, settings: _Settings
) -> tuple[_Solved, list[gs.FactorGraph]]:
    """Label superpixels; scribbled pixels keep their labels."""
    regions = find_superpixels(image, count)
    around = region_neighbourhood(regions, settings.neighbours)
    lab = to_lab(image)
    colours = mean_of_regions(lab, regions)
    known = label_of_regions(scribbles, regions, labels)
    longest = max(image.shape[:2])
    rows, columns = np.indices(regions.shape, np.float32)
    places = np.stack([rows, columns], axis=-1) / np.float32(longest)
    models = ColourModels.learn(lab, places, scribbles, labels)
    unary = settings.colour * models.log_densities(colours, mean_of_regions(places, regions))
    unary += settings.proximity * log_proximity(around, colours, known, labels)
    alone = np.arange(np.count_nonzero(known < 0))  # superpixels have no rows, so each one is a block
    solved = _solve(around, colours, known, unary[known < 0], settings.coupling, alone, settings)
    each, sure = known.copy(), np.ones(known.size, np.float32)
    each[known < 0], sure[known < 0] = solved.labels, solved.certainty
    drawn = scribbles >= 0
    solved.labels, solved.certainty = each.astype(np.uint8)[regions], sure[regions]
    solved.labels[drawn], solved.certainty[drawn] = scribbles[drawn], 1.0
    return solved, [solved.model]


def _solve(
    around: field.Neighbourhood,
    colours: Floats32,
    known: Array,
    unary: Floats32,
    coupling: float | None,
    rows: Ints,
    settings: _Settings,
) -> _Solved:
    """Label the nodes whose labels are unknown."""
    square = float(field.squared_steps(colours, around.pairs).mean()) if len(around.pairs) else 0.0
    weights = field.pair_weights(around, colours, square if settings.contrast else None)
    if coupling is None:
        coupling = field.natural_coupling(unary, weights, around.pairs)
    model = field.potts_field(around.pairs, coupling * weights, unary, known)
    if not model.n_sites:
        return _Solved(np.zeros(0, np.uint8), np.zeros(0, np.float32), model, coupling, None)
    cells, result = average(
        model,
        _kernel(settings.method, rows),
        sweeps=settings.sweeps,
        start=unary.argmax(axis=1).astype(np.int16),
        scan=None,
        damping=0.5,
        states=settings.states,
        rng=settings.rng,
        progress=settings.progress,
    )
    labels = unary.shape[1]
    chances = np.stack([1.0 - cells, cells], axis=1) if labels == 2 else cells.reshape(-1, labels)
    best = chances.argmax(axis=1)
    certainty = chances[np.arange(best.size), best].astype(np.float32)
    return _Solved(best.astype(np.uint8), certainty, model, coupling, result)


def _kernel(method: str | gs.kernels.Kernel, rows: Ints) -> str | gs.kernels.Kernel:
    """Return the kernel of a method, or its name; blocks are rows of pixels."""
    if isinstance(method, gs.kernels.Kernel) or method != "blocks":
        return method if isinstance(method, gs.kernels.Kernel) else _AVERAGED.get(method, method)
    ends = np.flatnonzero(np.diff(rows)) + 1
    return gs.BlockGibbs(blocks=np.split(np.arange(rows.size), ends))
