"""Numbers as people read them: never as nan, inf or None, and with the digits that are known."""

from __future__ import annotations

import math

_SMALL, _LARGE = 1e-4, 1e7  # numbers outside are written with powers of ten


def verdict_word(converged: bool | None, errors: str = "") -> str:
    """Return a verdict in a word or two; ``errors`` is "none" where a run could not be judged."""
    if converged is None:
        return "settled"
    return "converged" if converged else "NOT JUDGED" if errors == "none" else "NOT CONVERGED"


def in_words(value: float | None, spec: str = ".4g") -> str:
    """Return a number as text; what is not a number is "not known", what has no bound "infinite".

    Parameters
    ----------
    value : float or None
        The number.
    spec : str
        How to write it, as in a format string.

    Examples
    --------
    >>> in_words(1.25, ".1f"), in_words(None), in_words(float("nan")), in_words(float("-inf"))
    ('1.2', 'not known', 'not known', 'minus infinite')
    """
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "infinite" if value > 0 else "minus infinite"
    return format(value, spec)


def rhat_text(value: float | None, spec: str = ".3f") -> str:
    """Return an R-hat as text: above 100 its digits say nothing.

    Examples
    --------
    >>> rhat_text(1.0234), rhat_text(7178769.89), rhat_text(float("inf"))
    ('1.023', 'above 100', 'infinite')
    """
    if value is None or not math.isfinite(value):
        return in_words(value, spec)
    return "above 100" if value > 100.0 else format(value, spec)


def with_sign(error: float) -> str:
    """Return a standard error as text to put behind a probability; nothing if it is not known.

    Examples
    --------
    >>> f"0.25{with_sign(0.01)}", f"0.25{with_sign(float('nan'))}"
    ('0.25 ±0.0100', '0.25')
    """
    return f" ±{error:.4f}" if math.isfinite(error) else ""


def probability_text(value: float, error: float) -> str:
    """Return a probability with its standard error.

    Examples
    --------
    >>> probability_text(0.25, 0.01)
    '0.2500 ±0.0100'
    """
    return in_words(value, ".4f") + with_sign(error)


def number_text(value: float, error: float) -> str:
    """Return a number of any size with its standard error: as many digits as the error leaves.

    Examples
    --------
    >>> number_text(1234.5678, 0.0123), number_text(2.5e-9, 1e-11), number_text(12.0, 1500.0)
    ('1234.568 ±0.012', '2.5e-09 ±1e-11', '12 ±1500')
    >>> number_text(0.5, float("nan"))
    '0.5'
    """
    if not math.isfinite(error) or not math.isfinite(value):
        return in_words(value, ".6g")
    size = max(abs(value), error)
    if error == 0.0 or not _SMALL <= size < _LARGE:
        return f"{value:.6g} ±{error:.2g}"
    digits = min(max(1 - math.floor(math.log10(error)), 0), 12)
    return f"{value:.{digits}f} ±{error:.{digits}f}"


def tell_apart(one: float, other: float) -> tuple[str, str]:
    """Return two different numbers as texts with enough digits to show the difference.

    Examples
    --------
    >>> tell_apart(69.0776, 69.0745), tell_apart(3.0, -0.0991)
    (('69.0776', '69.0745'), ('3', '-0.099'))
    """
    apart = abs(one - other)
    ratio = max(abs(one), abs(other)) / apart if apart > 0.0 else 1.0
    digits = min(2 + max(math.ceil(math.log10(ratio)), 0), 17) if math.isfinite(ratio) else 2
    return format(one, f".{digits}g"), format(other, f".{digits}g")
