"""Estimates of the noise of an image from the image alone.

Noise that is independent from pixel to pixel cancels in averages of products of *different* pixels. The remaining
moments of the clean image are extrapolated from distances of 1 and 2 pixels to distance 0, because for a picture with
few edges they change linearly with the distance.
"""

from __future__ import annotations

import math

import numpy as np

from gibbsite._common.arguments import checked
from gibbsite._common.arrays import Floats
from gibbsite._common.reals import read_reals
from gibbsite._common.wording import argument
from gibbsite.errors import ArgumentError

_MEDIAN_OF_NORMAL = 0.6744897501960817  # of the absolute value of a standard normal variable
_FLIP_RANGE = (1e-3, 0.49)
_STANDARD_ERRORS = 6.0
# relative to the (squared) difference of two levels:
_NOT_TWO = 0.03  # excess of the mean square distance from the nearer level that is refused
_WITHIN = 0.05  # largest variance around dark and bright of a scan
_SMALLEST = 1e-2  # least sigma


@checked
def estimate_flip(spins: Floats) -> float:
    """Estimate the probability with which pixels of a two-valued image were flipped.

    With x the clean and y the noisy pixels in {-1, +1}, the mean of ``y_i y_j`` is (1 - 2P)^2 times that of ``x_i
    x_j``, which tends to one as j approaches i.

    Parameters
    ----------
    spins : float array (height, width)
        Values -1 and +1.

    Returns
    -------
    float
        P, between 0.001 and 0.49.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> clean = np.where(np.hypot(*np.indices((200, 200)) - 100.0) < 60, 1.0, -1.0)
    >>> noisy = np.where(rng.random(clean.shape) < 0.2, -clean, clean)
    >>> round(estimate_flip(noisy), 2)
    0.2
    """
    spins = read_reals(spins, "spins", dimensions=2)
    square = _product_at_no_distance(spins, 2)
    flip = 0.5 * (1.0 - math.sqrt(min(max(square, 0.0), 1.0)))
    return min(max(flip, _FLIP_RANGE[0]), _FLIP_RANGE[1])


@checked
def estimate_two_levels(image: Floats) -> tuple[float, float, float]:
    """Estimate the dark and the bright level of a two-level image, and the noise around them.

    Mean, variance and third central moment of the clean image determine its two levels and their shares. The noise
    accounts for the rest of the variance. In a picture that does not have two levels, it is at least the distance of
    the pixels from the nearer level.

    Parameters
    ----------
    image : float array (height, width)
        The noisy image.

    Returns
    -------
    tuple of float
        Dark level, bright level, sigma.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> clean = np.where(np.hypot(*np.indices((200, 200)) - 100.0) < 60, 180.0, 60.0)
    >>> low, high, sigma = estimate_two_levels(clean + rng.normal(0, 90, clean.shape))
    >>> abs(low - 60) < 6, abs(high - 180) < 6, abs(sigma - 90) < 2
    (True, True, True)
    """
    image = read_reals(image, "image", dimensions=2)
    mean = float(image.mean())
    rest = image - mean
    total = float(np.mean(rest**2))
    variance = _product_at_no_distance(rest, 2)
    if variance <= 1e-9 * total or total == 0.0:
        raise ArgumentError(
            f"two levels cannot be distinguished in the image; give {argument('means')} and {argument('sigma')}, "
            "or use a less noisy image."
        )
    skewness = _product_at_no_distance(rest, 3) / variance**1.5
    # share w of bright pixels: skewness = (1 - 2w) / sqrt(w (1 - w))
    spread = 1.0 / (4.0 + skewness**2)  # w (1 - w)
    bright = 0.5 * (1.0 - math.copysign(math.sqrt(1.0 - 4.0 * spread), skewness))
    gap = math.sqrt(variance / spread)
    low = mean - bright * gap
    off = 0.5 * gap - np.abs(image - (low + 0.5 * gap))  # from the nearer level
    noise = max(total - variance, float(np.mean(off**2)), (_SMALLEST * gap) ** 2)
    return low, low + gap, math.sqrt(noise)


def may_lie_between(image: Floats, low: float, high: float) -> bool:
    """Return whether an image may be noise around levels between two bounds.

    The mean of the clean image lies between them. Its variance is at most that of an image with half of the pixels at
    each bound, and the extrapolation of products to distance zero is at most 1.5 times as large. A margin of six
    standard errors makes the probability of rejecting a picture between the bounds smaller than 1e-8.
    """
    mean, total = float(image.mean()), float(image.var())
    slack = _STANDARD_ERRORS * math.sqrt(total / image.size)
    if not low - slack <= mean <= high + slack:
        return False
    if max(image.shape) < 3:
        return True
    most = 1.5 * 0.25 * (high - low) ** 2
    # of 2 a - b for mean products a and b of as many pixels, along rows and columns: sqrt(5 / 2) for each
    error = 2.0 * total / math.sqrt(image.size)
    return _product_at_no_distance(image - mean, 2) <= most + _STANDARD_ERRORS * error


def find_two_levels(image: Floats) -> tuple[float, float, float]:
    """Return the two levels of an image and the noise around them; refuse an image that has no two levels.

    If the estimates for independent noise do not fit, the pixels of a scan may still fall into dark and bright ones.
    """
    low, high, sigma = estimate_two_levels(image)
    try:
        check_two_levels(image, low, high)
    except ArgumentError:
        split = split_two_levels(image)
        if split is None:
            raise
        return split
    return low, high, sigma


def check_two_levels(image: Floats, low: float, high: float) -> None:
    """Refuse an image that is not noise around two levels.

    If there are two levels, the mean squared distance of pixels from the nearer one is at most the variance of the
    noise, which is the variance of the image minus the extrapolated products of different pixels. Images are refused
    that exceed it by 3 % of the squared difference of the levels (a uniform gradient has 7 %) plus six standard errors.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> gradient = np.tile(np.linspace(0.0, 255.0, 200), (200, 1)) + rng.normal(0, 5, (200, 200))
    >>> try:
    ...     check_two_levels(gradient, 50.0, 200.0)
    ... except ArgumentError as error:
    ...     print(str(error)[:45])
    the pixels do not lie around two levels: they
    """
    if min(image.shape) < 3:
        return
    total = float(image.var())
    noise = max(total - _product_at_no_distance(image - image.mean(), 2), 0.0)
    off = np.minimum(np.abs(image - low), np.abs(image - high))
    error = 2.0 * math.sqrt(noise * total / image.size)
    if float(np.mean(off**2)) > noise + _NOT_TWO * (high - low) ** 2 + _STANDARD_ERRORS * error:
        raise ArgumentError(
            "the pixels do not lie around two levels: they are "
            f"{math.sqrt(np.mean(off**2)):.3g} from the nearer of {low:.4g} and {high:.4g} (root mean "
            f"square), and their noise is about {math.sqrt(noise):.3g}; give {argument('levels')} for a grey "
            f"image, or {argument('means')} and {argument('sigma')} for two levels."
        )


def split_two_levels(image: Floats) -> tuple[float, float, float] | None:
    """Return the levels of an image that falls into dark and bright pixels, and the spread around them.

    A scan has little noise, but its paper and ink vary from place to place. Neighbouring pixels share this variation,
    so :func:`estimate_two_levels` mistakes it for a part of the clean image. Here the pixels are divided by the
    threshold with the least variance on its two sides [1]_, and the means of the two parts are the levels.

    ``image`` (height, width): the image.

    Returns
    -------
    (float, float, float) or None
        Dark level, bright level, sigma; None if the variance within the two parts is more than 5 % of the squared
        difference of the levels, of which a uniform gradient has 8 % and a normal distribution 14 %.

    References
    ----------
    .. [1] Otsu, N. (1979). A threshold selection method from gray-level histograms. IEEE Transactions on
       Systems, Man, and Cybernetics 9(1).
    """
    values = np.sort(image, axis=None)
    many = np.arange(1, values.size)
    sums = np.cumsum(values)
    below, above = sums[:-1] / many, (sums[-1] - sums[:-1]) / (values.size - many)
    between = many * (values.size - many) * (above - below) ** 2
    between[values[1:] == values[:-1]] = -1.0  # equal pixels are on the same side
    if between.max(initial=-1.0) <= 0.0:
        return None
    best = int(np.argmax(between))
    low, high = float(below[best]), float(above[best])
    within = float(np.mean((image - np.where(image <= values[best], low, high)) ** 2))
    if within > _WITHIN * (high - low) ** 2:
        return None
    return low, high, max(math.sqrt(within), _SMALLEST * (high - low))


def sigma_around(spins: Floats, levels: str = "the given means") -> float:
    """Return the noise around -1 and +1, from the mean square, which is that of the noise plus one."""
    excess = float(np.mean(spins**2)) - 1.0
    if excess <= 0.0:
        raise ArgumentError(
            f"the pixels are too close to each other to lie around {levels}; give other "
            f"{argument('means')}, or {argument('levels')} for a grey image."
        )
    return max(math.sqrt(excess), 2.0 * _SMALLEST)


@checked
def estimate_sigma(image: Floats) -> float:
    """Estimate the noise of a grey image from its roughness.

    The difference of two Laplacians [1]_ vanishes on planes and on edges along the axes, and turns noise of standard
    deviation sigma into noise of 6 sigma. Sigma follows from the median of its absolute values, which is robust to
    edges, or from the mean if more than half of the picture has no noise at all.

    Parameters
    ----------
    image : float array (height, width)
        The noisy image.

    Returns
    -------
    float
        The standard deviation.

    References
    ----------
    .. [1] Immerkær, J. (1996). Fast noise variance estimation. Computer Vision and Image Understanding 64(2).

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> slope = np.add.outer(np.arange(100.0), np.arange(100.0))
    >>> abs(estimate_sigma(slope + rng.normal(0, 5, slope.shape)) - 5) < 0.2
    True
    """
    image = read_reals(image, "image", dimensions=2)
    if min(image.shape) < 3:
        raise ArgumentError(
            f"an image of {_size(image)} pixels is too small to estimate {argument('sigma')} from; give it."
        )
    rows = image[:-2] - 2.0 * image[1:-1] + image[2:]
    rough = np.abs(rows[:, :-2] - 2.0 * rows[:, 1:-1] + rows[:, 2:])
    sigma = float(np.median(rough)) / (6.0 * _MEDIAN_OF_NORMAL)
    if sigma == 0.0:
        sigma = math.sqrt(math.pi / 2.0) * float(rough.mean()) / 6.0
    return sigma


def _product_at_no_distance(values: Floats, order: int) -> float:
    """Return the mean product of ``order`` pixels in a row, extrapolated from distances 1 and 2 to 0."""
    found = []
    for lines in (values, values.T):
        if len(lines) > 2 * (order - 1):
            at = [_mean_product(lines, order, distance) for distance in (1, 2)]
            found.append(2.0 * at[0] - at[1])
    if not found:
        raise ArgumentError(
            f"an image of {_size(values)} pixels is too small to estimate its noise from; give "
            f"{argument('sigma')} or {argument('flip')}."
        )
    return float(np.mean(found))


def _mean_product(lines: Floats, order: int, distance: int) -> float:
    length = len(lines) - distance * (order - 1)
    product = lines[:length] * lines[distance : distance + length]
    for k in range(2, order):
        product *= lines[k * distance : k * distance + length]
    return float(product.mean())


def _size(image: Floats) -> str:
    return f"{image.shape[1]} x {image.shape[0]}"
