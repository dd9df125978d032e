"""Denoising of images: the clean image is a Markov random field, observed with noise [1]_.

References
----------
.. [1] Geman, S. and Geman, D. (1984). Stochastic relaxation, Gibbs distributions, and the Bayesian
   restoration of images. IEEE Transactions on Pattern Analysis and Machine Intelligence 6(6).
.. [2] Bornn, L. et al. (2013). Herded Gibbs sampling. ICLR.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import gibbsite as gs
from gibbsite._common.arguments import check_integer, check_number, checked
from gibbsite._common.arrays import Array, Floats, Ints16
from gibbsite._common.wording import argument, unknown
from gibbsite.applications.images import Pixels, nearest_level, read_pixels
from gibbsite.applications.methods import DENOISING, PRIORS
from gibbsite.applications.noise import (
    estimate_flip,
    estimate_sigma,
    estimate_two_levels,
    find_two_levels,
    may_lie_between,
    sigma_around,
)
from gibbsite.applications.posterior import average, flip_strength, grey_model, two_level_model
from gibbsite.errors import ArgumentError, ModelError
from gibbsite.models.domain import MOST_STATES


@dataclass(frozen=True, eq=False, repr=False)
class Denoised:
    """A denoised image.

    Attributes
    ----------
    image : array
        Most probable value of every pixel, in the type of the noisy image.
    probability : float array
        For two levels, the posterior probability of the bright one; for more, the expected value of each pixel in the
        units of the image.
    method : str
        The method used.
    sigma, flip : float or None
        The noise level, given or estimated; the other one is None.
    means : tuple of float
        The dark and the bright level; if there are more than two, the lowest and the highest.
    error : dict or None
        If a clean image was given: the ``mean_squared`` error of ``probability``, with dark at 0 and bright at 1; the
        share ``wrong`` of wrong pixels of ``image`` (for grey images, pixels that are not at the level nearest to the
        clean value); and the same figures of the noisy image, ``mean_squared_before`` and ``wrong_before``, with every
        pixel set to the nearer level if there are two.
    model : FactorGraph
        The posterior.
    result : Result, MeanFieldResult or None
        The run behind the average. It has no verdict, because a few sweeps from the noisy image do not converge.
    seconds : float
        Time taken.
    """

    image: Array
    probability: Floats
    method: str
    sigma: float | None
    flip: float | None
    means: tuple[float, float]
    error: dict[str, float] | None
    model: gs.FactorGraph
    result: Any
    seconds: float

    def line(self) -> str:
        """Return a summary in one line."""
        height, width = self.image.shape
        noise = f"sigma {self.sigma:.4g}" if self.flip is None else f"flip {self.flip:.4g}"
        text = f"{width} x {height} pixels, {self.method}, {noise}"
        text += f" around {self.means[0]:.4g} and {self.means[1]:.4g}, {self.seconds:.2g} s"
        if self.error is not None:
            e = self.error
            text += f"; wrong pixels {e['wrong']:.2%} (before: {e['wrong_before']:.2%}), mean squared error "
            text += f"{e['mean_squared']:.4g} (before: {e['mean_squared_before']:.4g})"
        return text

    def __repr__(self) -> str:
        return f"Denoised({self.line()})"


class _Task(NamedTuple):
    """The posterior, and the mapping from codes to values."""

    model: gs.FactorGraph
    noisy: Ints16  # the nearest level of every pixel
    levels: Floats
    shown: Floats  # values of the levels in the answer
    sigma: float | None
    flip: float | None


@checked
def denoise(
    image: Any,
    *,
    sigma: float | None = None,
    flip: float | None = None,
    means: Sequence[float] | None = None,
    coupling: float = 1.0,
    levels: int | None = None,
    prior: str = "potts",
    truncation: int | None = None,
    method: str | gs.kernels.Kernel | None = None,
    sweeps: int = 30,
    scan: gs.scans.Scan | None = None,
    start: Any = "noisy",
    damping: float = 0.5,
    average_states: bool = False,
    rng: Any = None,
    reference: Any = None,
    progress: Any = None,
) -> Denoised:
    """Remove noise from an image of two levels, or of a few grey levels.

    Parameters
    ----------
    image : array (height, width)
        An array of bool, of 8- or 16-bit whole numbers in any type with black at 0, or of floats, which are expected to
        lie around 0 and 1 unless ``means`` is given or estimated. Coloured images are refused (files are read as grey,
        see :func:`read_image`).
    sigma : float, optional
        Standard deviation of Gaussian noise, in the units of the image. With ``means`` of (-1, 1) it is the sigma of
        the literature.
    flip : float, optional
        Probability, in (0, 0.5), that a pixel of a two-valued image was flipped. If neither is given, the
        noise is estimated: flips if the image has two values, otherwise sigma.
    means : pair of float, optional
        Values of dark and bright pixels without noise; with ``levels``, the lowest and highest level. By default, they
        are 0 and 1 for floats. For two levels they are estimated if pixels are 8- or 16-bit numbers, because noise in
        files is clipped at black and white, or if pixels are floats whose mean or contrast is impossible for an image
        between 0 and 1. For more levels they are black and white, and such floats are refused.
    coupling : float
        J, the strength of the preference for equal neighbours: each one adds 2 J to the log-odds of its level.
    levels : int, optional
        Number of equidistant grey levels; two by default.
    prior : {"potts", "truncated-linear"}
        For grey levels: unequal neighbours cost the same whatever their difference, or in proportion to it, up to
        ``truncation``.
    truncation : int, optional
        Difference of levels at which the cost stops growing; a quarter of the levels by default.
    method : str or Kernel, optional
        "herded-shared", "herded", "herded-site": herded Gibbs sampling with a weight for each number of bright
        neighbours, for each configuration of the neighbours, or for each pixel; "gibbs"; "mean-field", in place, and
        "mean-field-parallel"; "icm": ascent to the nearest local maximum; "annealed": the best image seen in Gibbs
        sampling at temperatures that fall from 1 to 0; or a kernel. By default "herded-shared" for two levels and
        "herded-site" for more.
    sweeps : int
        Number of sweeps, all of which are averaged; there is no warmup.
    scan : Scan, optional
        Order of the pixels; by default, one color of a checkerboard after the other.
    start : "noisy", "random" or array
        Start at the nearest level of every noisy pixel, at random, or at a given image like the noisy one. Mean field
        uses its own start instead of "noisy" or an image.
    damping : float
        Step of mean field, in (0, 1].
    average_states : bool
        Average the states of a sampler instead of their conditional probabilities.
    rng : int, Generator or SeedSequence, optional
        Seed; herded methods do not need it.
    reference : array (height, width), optional
        The clean image; errors are reported against it. For two levels it is cut midway between its extremes.
    progress : optional
        As in :func:`gibbsite.sample`.

    Returns
    -------
    Denoised

    Notes
    -----
    Two levels are estimated from mean products of adjacent pixels (:func:`estimate_two_levels`, :func:`estimate_flip`),
    sigma with given means from the mean square, and sigma of grey images from the median of their roughness
    (:func:`estimate_sigma`) plus the error of rounding grey values to levels.

    Examples
    --------
    >>> import gibbsite as gs
    >>> import numpy as np
    >>> disc = np.hypot(*np.indices((60, 60)) - 30.0) < 20
    >>> noisy = disc ^ (np.random.default_rng(1).random(disc.shape) < 0.2)
    >>> clean = gs.applications.denoise(noisy, reference=disc, progress=False)
    >>> clean.image.dtype, clean.error["wrong"] < 0.02 < 0.15 < clean.error["wrong_before"]
    (dtype('bool'), True)
    """
    begun = time.monotonic()
    pixels = read_pixels(image)
    clean = None if reference is None else _read_like(pixels, reference, "the reference")
    coupling = check_number("coupling", coupling, zero=True)
    task = _pose(pixels, sigma, flip, means, coupling, levels, prior, truncation)
    if method is None:
        method = "herded-shared" if task.levels.size == 2 else "herded-site"
    if not isinstance(method, gs.kernels.Kernel) and method not in DENOISING:
        raise ArgumentError(unknown("method", method, DENOISING))
    cells, result = average(
        task.model,
        method,
        sweeps=check_integer("sweeps", sweeps, 1),
        start=_read_start(pixels, task, start),
        scan=scan,
        damping=damping,
        states=average_states,
        rng=rng,
        progress=progress,
    )
    codes, expected = _read_cells(cells, task, pixels.values.shape)
    return Denoised(
        image=pixels.like(task.shown[codes]),
        probability=expected,
        method=method if isinstance(method, str) else type(method).__name__,
        sigma=task.sigma,
        flip=task.flip,
        means=(float(task.levels[0]), float(task.levels[-1])),
        error=None if clean is None else _measure_error(pixels, task, codes, expected, clean),
        model=task.model,
        result=result,
        seconds=time.monotonic() - begun,
    )


def _pose(
    pixels: Pixels, sigma: Any, flip: Any, means: Any, coupling: float, levels: Any, prior: Any, truncation: Any
) -> _Task:
    """Read the parameters of the noise, estimate the others, and build the posterior."""
    if sigma is not None and flip is not None:
        raise ArgumentError(
            f"give {argument('sigma')} for Gaussian noise or {argument('flip')} for flipped pixels, not both."
        )
    sigma = None if sigma is None else check_number("sigma", sigma)
    flip = None if flip is None else check_number("flip", flip, below=0.5)
    if prior not in PRIORS:
        raise ArgumentError(unknown("prior", prior, PRIORS))
    ends = None if means is None else _read_means(means)
    count = 2 if levels is None else check_integer("levels", levels, 2, MOST_STATES)
    if count == 2:
        return _pose_two(pixels, sigma, flip, ends, coupling)
    if flip is not None:
        raise ArgumentError(
            f"{argument('flip')} is for images of two values; with {count} levels give {argument('sigma')}."
        )
    if ends is None and not (pixels.counted or may_lie_between(pixels.values, 0.0, 1.0)):
        raise ArgumentError(
            f"the image has values from {pixels.low:.4g} to {pixels.high:.4g}, and grey values are expected "
            f"between 0 and 1; give {argument('means')}, the values of black and white."
        )
    low, high = ends or (0.0, pixels.top)
    steps = np.linspace(low, high, count)
    if sigma is None:
        # rounding to levels adds uniform noise as wide as the spacing of the levels
        sigma = math.hypot(estimate_sigma(pixels.values), (steps[1] - steps[0]) / math.sqrt(12.0))
    reach = 1
    if prior == "truncated-linear":
        reach = max(2, count // 4) if truncation is None else check_integer("truncation", truncation, 1)
    model = grey_model(pixels.values, steps, coupling, sigma, reach)
    return _Task(model, nearest_level(pixels.values, steps), steps, steps, sigma, None)


def _pose_two(
    pixels: Pixels, sigma: float | None, flip: float | None, ends: tuple[float, float] | None, coupling: float
) -> _Task:
    """Build the posterior of an image of two levels."""
    values = pixels.values
    if flip is not None or (sigma is None and ends is None and pixels.two_valued):
        if not pixels.two_valued:
            raise ArgumentError(
                f"{argument('flip')} is for images of two values, and this one has "
                f"{np.unique(values).size:,}; give {argument('sigma')} for Gaussian noise around two levels, "
                f"or {argument('levels')} for a grey image."
            )
        low, high = pixels.pair
        spins = _as_spins(values, low, high)
        flip = estimate_flip(spins) if flip is None else flip
        strength = flip_strength(flip)
        shown = np.array([low, high])
    else:
        if ends is None and (pixels.counted or not may_lie_between(values, 0.0, 1.0)):
            low, high, found = (find_two_levels if sigma is None else estimate_two_levels)(values)
            sigma = found if sigma is None else sigma
        else:
            low, high = ends or (0.0, 1.0)
        spins = _as_spins(values, low, high)
        half = 0.5 * (high - low)
        if sigma is None:
            around = "the given means" if ends else "0 and 1, which is assumed for pixels in that range"
            sigma = half * sigma_around(spins, around)
        strength = (half / sigma) ** 2
        shown = np.array([0.0, pixels.top]) if pixels.counted else np.array([low, high])
    model = two_level_model(spins, coupling, strength)
    return _Task(model, (spins > 0).astype(np.int16), np.array([low, high]), shown, sigma, flip)


def _as_spins(values: Floats, low: float, high: float) -> Floats:
    """Return pixels rescaled so that dark is -1 and bright is +1."""
    return (values - 0.5 * (low + high)) / (0.5 * (high - low))


def _read_cells(cells: Floats, task: _Task, shape: tuple[int, ...]) -> tuple[Array, Floats]:
    """Return most probable levels, and the probability of bright or the expected values."""
    if task.levels.size == 2:
        bright = cells.reshape(shape)
        # undecided pixels stay as they are in the noisy image
        return np.where(bright == 0.5, task.noisy, bright > 0.5).astype(np.int16), bright
    weights = cells.reshape(*shape, task.levels.size)
    return weights.argmax(axis=-1), weights @ task.levels


def _measure_error(pixels: Pixels, task: _Task, codes: Array, expected: Floats, clean: Pixels) -> dict[str, float]:
    """Return errors against the clean image."""
    if task.levels.size == 2:
        low, high = clean.pair
        aim: Floats = (clean.values > 0.5 * (low + high)).astype(np.float64)
        truth, noisy, span = aim, task.noisy.astype(np.float64), 1.0
    else:
        aim, noisy, span = clean.values, pixels.values, float(task.levels[-1] - task.levels[0])
        truth = nearest_level(aim, task.levels).astype(np.float64)
    return {
        "mean_squared": float(np.mean((expected - aim) ** 2)) / span**2,
        "mean_squared_before": float(np.mean((noisy - aim) ** 2)) / span**2,
        "wrong": float(np.mean(codes != truth)),
        "wrong_before": float(np.mean(task.noisy != truth)),
    }


def _read_start(pixels: Pixels, task: _Task, start: Any) -> Ints16 | None:
    if isinstance(start, str):
        if start not in ("noisy", "random"):
            raise ArgumentError(unknown("start", start, ("noisy", "random"), ", or give an image"))
        return task.noisy if start == "noisy" else None
    return nearest_level(_read_like(pixels, start, "the start").values, task.shown)


def _read_like(pixels: Pixels, image: Any, name: str) -> Pixels:
    """Read a second image, which must have the size of the first."""
    found = read_pixels(image, name)
    if found.values.shape != pixels.values.shape:
        (h, w), (height, width) = found.values.shape, pixels.values.shape
        raise ModelError(f"{name} has {w} x {h} pixels and the image {width} x {height}; they must be equal.")
    return found


def _read_means(means: Any) -> tuple[float, float]:
    try:
        low, high = (float(mean) for mean in means)
    except (TypeError, ValueError):
        raise ArgumentError(f"{argument('means')} must be two numbers, dark and bright, got {means!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ArgumentError(f"{argument('means')} must be two numbers, the darker first, got {low:g} and {high:g}.")
    return low, high
