"""Agreement with a reference state: the share of sites that are as there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsite._common.arrays import Floats
from gibbsite.errors import ArgumentError
from gibbsite.sampling.recorders.base import labels_as_numbers
from gibbsite.sampling.recorders.observable import Observable

if TYPE_CHECKING:
    from gibbsite.models import Model


def _agree(x: Any, memory: Any) -> None:
    same = 0
    for i in range(x.size):
        if x[i] == memory[1 + i]:
            same += 1
    memory[0] = same / x.size


@dataclass(frozen=True, init=False)
class Agreement(Observable):
    """The share of free sites with the same state as in a reference, such as a ground state or an image.

    Observed sites do not count: they are as they are in every draw.

    Parameters
    ----------
    reference : mapping or array
        Labels of all free sites by name, or their state codes in the order of ``model.sites``.

    Examples
    --------
    >>> import gibbsite as gs
    >>> model = gs.ising_grid((4, 4), coupling=0.0, field=0.5)
    >>> up = gs.recorders.Agreement(dict.fromkeys(model.sites, 1))
    >>> result = gs.sample(model, sweeps=2000, rng=1, record=["marginals", up], progress=False)
    >>> share = result.observables["agreement"]
    >>> bool(abs(share.mean - 1 / (1 + np.exp(-1.0))) < 5 * share.mcse)
    True
    """

    reference: Any = None
    definition = "agreement, 1"

    def __init__(self, reference: Any, name: str = "agreement", series: bool = False) -> None:
        object.__setattr__(self, "reference", reference)
        super().__init__(name, _agree, series=series)

    @property
    def shape(self) -> str:
        """The function writes its value."""
        return "update"

    def start(self, model: Model) -> Floats:
        """Return the reference as numbers."""
        if isinstance(self.reference, dict):
            missing = [site for site in model.sites if site not in self.reference]
            if missing:
                raise ArgumentError(f"The reference of Agreement has no state of the site {missing[0]!r}.")
            codes = np.array([model.domains.code(i, self.reference[s]) for i, s in enumerate(model.sites)])
        else:
            try:
                codes = np.asarray(self.reference)
            except ValueError:  # lists of several lengths
                codes = np.zeros(0)
        if codes.shape != (model.n_sites,) or codes.dtype.kind not in "iu":
            raise ArgumentError(
                f"The reference of Agreement must be the labels of all sites by name, or {model.n_sites} "
                f"state codes, got {self.reference!r}."
            )
        if (codes < 0).any() or (codes >= model.cards).any():
            raise ArgumentError("The reference of Agreement holds codes that are not states of their sites.")
        label, label_at = labels_as_numbers(model)
        found: Floats = label[codes + (label_at if label_at.size else 0)]
        return found

    def describe(self) -> dict[str, Any]:
        """Return name and parameters, for plans."""
        return {**super().describe(), "reference": str(self.reference)}
