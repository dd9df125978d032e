"""Normal scores: the inverse of the standard normal distribution function.

Algorithm AS 241 of Wichura (1988), routine PPND16: one rational function of degree seven in the
middle and two in the tails, accurate to about one part in 10^16. A Newton step on top would lose
digits near the median, where the distribution function no longer resolves small arguments.

References
----------
Wichura, M. J. (1988). Algorithm AS 241: The percentage points of the normal distribution.
Applied Statistics 37(3), 477-484.
"""

from __future__ import annotations

import numpy as np

from gibbsite._common.arrays import Floats

# Coefficients from the highest power down; each pair is numerator and denominator.
_MIDDLE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
_SHOULDER = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)
_TAIL = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e0,
        5.46378491116411436990e0,
        6.65790464350110377720e0,
    ),
    (
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ),
)

_Coefficients = tuple[tuple[float, ...], tuple[float, ...]]


def _evaluate_ratio(coefficients: _Coefficients, at: Floats) -> Floats:
    above, below = np.zeros(at.shape), np.zeros(at.shape)
    for k in range(8):
        above = above * at + coefficients[0][k]
        below = below * at + coefficients[1][k]
    return above / below


def normal_quantiles(probabilities: Floats) -> Floats:
    """Return the standard normal quantiles of probabilities strictly between 0 and 1.

    Examples
    --------
    >>> normal_quantiles(np.array([0.5, 0.975])).round(6).tolist()
    [0.0, 1.959964]
    """
    centred = probabilities - 0.5
    middle = np.abs(centred) <= 0.425
    found = np.empty(probabilities.shape)
    found[middle] = centred[middle] * _evaluate_ratio(_MIDDLE, 0.180625 - centred[middle] ** 2)
    outer = probabilities[~middle]
    radius = np.sqrt(-np.log(np.where(centred[~middle] < 0.0, outer, 1.0 - outer)))
    near = radius <= 5.0
    size = np.empty(radius.shape)
    size[near] = _evaluate_ratio(_SHOULDER, radius[near] - 1.6)
    size[~near] = _evaluate_ratio(_TAIL, radius[~near] - 5.0)
    found[~middle] = np.copysign(size, centred[~middle])
    return found


def normal_scores(size: int) -> Floats:
    """Return the normal scores of all ranks among ``size`` values, ties included.

    Tied values share the average of their ranks (counted from 1), a multiple of one half; entry
    ``2 * rank`` is the score, the normal quantile of ``(rank - 3/8) / (size + 1/4)`` [1]_. The
    first two entries belong to no rank and are zero.

    References
    ----------
    .. [1] Blom, G. (1958). Statistical Estimates and Transformed Beta-Variables. Wiley.

    Examples
    --------
    >>> [round(score, 4) for score in normal_scores(2).tolist()]
    [0.0, 0.0, -0.5895, 0.0, 0.5895]
    """
    scores = np.zeros(2 * size + 1)
    ranks = np.arange(2, 2 * size + 1) / 2.0
    scores[2:] = normal_quantiles((ranks - 0.375) / (size + 0.25))
    return scores
