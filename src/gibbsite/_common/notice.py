"""Warnings that name the line of the user's code, whatever lies between it and the warning."""

from __future__ import annotations

import os
import sys
import warnings

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # the folder of the package


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn the code outside of the package that called it.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_user("mind the gap")
    >>> found[0].filename == __file__
    False
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HOME):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
