"""What speaks against a run of a kernel that is not exact: a bias that is too large, or not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsite.kernels.density.bias import Bias
from gibbsite.kernels.protocols import Biased

if TYPE_CHECKING:
    from gibbsite.results.result import Result
    from gibbsite.sampling.driver import Recording

_ERRORS = 2.0  # standard errors that a bias may have
_SMALL_MEAN, _SMALL_SD = 0.02, 0.05  # standard deviations, and shares of them, that a bias may have
_LIKE = 0.25  # share by which the standard deviations of a run may differ from the computed ones


def find_bias(recording: Recording, result: Result) -> tuple[str | None, str]:
    """Return what speaks against a run because of the bias of its kernel, and a remark on it.

    None and no remark for kernels that are exact, and for those whose errors come from the spread of chains.
    """
    setup = recording.setup
    kernel = setup.kernel
    if kernel.exact or not kernel.estimates or kernel.error_source != "draws":
        return None, ""
    name = type(kernel).__name__
    unknown = f"{name} is biased, and how much is not known; use a kernel that is exact."
    if setup.graph.discrete:
        return (unknown, "") if any(remark.grave for remark in setup.remarks) else (None, "")
    cells = np.cumsum(np.asarray(setup.model.cards, np.intp)) - setup.model.cards
    if result.totals.shape[1] < int(np.sum(setup.model.cards)):
        return unknown, ""
    numbers = result.numbers
    mean, sds = numbers.mean[cells], numbers.mean[cells + 1]
    if not (np.isfinite(mean).all() and (sds > 0.0).all()):
        return unknown, ""
    bias: Bias | None = kernel.bias(setup.graph, mean, sds, recording.memories) if isinstance(kernel, Biased) else None
    if bias is None:
        return unknown, ""
    off = np.abs(bias.mean) / sds - np.maximum(_ERRORS * numbers.error[cells] / sds, _SMALL_MEAN)
    wide = np.abs(bias.sd) - np.maximum(_ERRORS * numbers.error[cells + 1] / sds, _SMALL_SD)
    names = setup.model.domains.names
    noise = f" (g V / 2 is about {bias.noise:.3g})" if bias.noise > 1e-6 else ""
    if not np.isfinite(bias.sd).all():
        return (f"the steps of {name} are too large for this target: they are not stable; take smaller ones.", "")
    worst = int(np.argmax(wide))
    said = _share(float(bias.sd[int(np.argmax(np.abs(bias.sd)))]))
    if wide[worst] > 0.0:
        said = _share(float(bias.sd[worst]))
        return (
            f"{name} is biased: the standard deviation of {names[worst]} is {said}{noise}; take a smaller "
            "step, or a gradient with less noise (larger batches, control variates).",
            "",
        )
    worst = int(np.argmax(off))
    if off[worst] > 0.0:
        return (
            f"{name} is biased: the mean of {names[worst]} is off by about {bias.mean[worst]:.2g}, more than "
            "its error; take a smaller step.",
            "",
        )
    unlike = np.abs(sds / bias.spread - 1.0) - _ERRORS * numbers.error[cells + 1] / sds
    if unlike.max() > _LIKE:
        return unknown, ""
    return (None, f"The bias was computed: standard deviations are {said}{noise}, means off by less than errors.")


def _share(sd: float) -> str:
    if sd < 1.0:
        return f"about {100.0 * sd:.2g} % too large"
    return f"about {1.0 + sd:.3g} times as large as it should be"
